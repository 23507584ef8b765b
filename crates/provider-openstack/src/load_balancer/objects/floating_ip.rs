//! The wanted floating IP.

use std::net::IpAddr;

use super::Tags;

/// How clients outside the network reach the VIP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FloatingIpGoal {
    /// Not at all: the Service is internal. A floating IP of its own is detached from the VIP.
    Internal {
        /// `keep-floatingip`: detach the Service's floating IP without deleting it; leave a foreign one attached.
        keep: bool,
        /// Whether a foreign floating IP is detached too, because the Service has become internal.
        takes_off_others: bool,
    },
    /// Directly: an IPv6 VIP needs no floating IP. Existing ones are ignored.
    NotNeeded,
    /// As it is, because the present floating IPs could not be read.
    Unknown {
        /// The address that clients have used so far.
        address: Option<IpAddr>,
    },
    /// Through a floating IP.
    External(FloatingIpSpec),
}

/// The floating IP of an external Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FloatingIpSpec {
    /// External network; absent where none is configured or found.
    pub(crate) network_id: Option<String>,
    /// The network's subnet that the address is taken from.
    pub(crate) subnet: SubnetChoice,
    /// The address that the user asked for.
    pub(crate) address: Option<IpAddr>,
    /// The field or annotation that asks for `address`.
    pub(crate) asked_by: &'static str,
    /// Whether an attached floating IP is exchanged for `address`.
    pub(crate) exchanges: bool,
    /// Description of a floating IP that this controller creates. It must be exact, since it identifies the floating IP.
    pub(crate) description: String,
    /// Tags of a floating IP that this controller creates.
    pub(crate) tags: Tags,
    /// Whether the cloud supports tags of floating IPs.
    pub(crate) takes_tags: bool,
    /// `keep-floatingip`: never delete the floating IP.
    pub(crate) keep: bool,
    /// Whether the settings of a new floating IP are invalid: then an attached one stays, and none is created or attached.
    pub(crate) unreadable: bool,
}

/// Subnet of a new floating IP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SubnetChoice {
    /// Neutron chooses.
    Any,
    Id(String),
    /// The first of these that has a free address; never empty.
    FirstFree(Vec<String>),
}

//! Which floating IP is wanted.

use std::net::IpAddr;

use super::Tags;

/// How clients outside the network reach the VIP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FloatingIpGoal {
    /// Not at all: the Service is internal. A floating IP of its own on the VIP is taken off.
    Internal {
        /// `keep-floatingip`: take it off, but do not delete it; leave one of somebody else where it is.
        keep: bool,
        /// Whether one of somebody else is taken off, too: the Service has become internal.
        takes_off_others: bool,
    },
    /// Directly: an IPv6 VIP needs no translation. Floating IPs are not looked at.
    NotNeeded,
    /// As it is: what is there could not be read.
    Unknown {
        /// The address that clients use so far.
        address: Option<IpAddr>,
    },
    /// Through a floating IP.
    External(FloatingIpSpec),
}

/// The floating IP of an external Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FloatingIpSpec {
    /// External network; absent where none is configured and none was found.
    pub(crate) network_id: Option<String>,
    /// From which of the network's subnets the address is taken.
    pub(crate) subnet: SubnetChoice,
    /// The address that the user asked for.
    pub(crate) address: Option<IpAddr>,
    /// By which field or annotation.
    pub(crate) asked_by: &'static str,
    /// Whether one that is attached makes way for it.
    pub(crate) exchanges: bool,
    /// Description of one that is made here. It identifies it, so it is exact.
    pub(crate) description: String,
    /// Tags of one that is made here.
    pub(crate) tags: Tags,
    /// Whether the cloud has tags of floating IPs.
    pub(crate) takes_tags: bool,
    /// `keep-floatingip`: never delete it.
    pub(crate) keep: bool,
    /// Where a new one would come from cannot be read: one that is attached stays, and none is made or attached.
    pub(crate) unreadable: bool,
}

/// Subnet of a new floating IP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SubnetChoice {
    /// Neutron chooses.
    Any,
    Id(String),
    /// The first of these that has a free address. Never empty.
    FirstFree(Vec<String>),
}

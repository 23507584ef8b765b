//! The steps that Neutron carries out: they lock nothing.

use std::net::IpAddr;

use super::handle::Handle;
use crate::load_balancer::model::Tags;
use crate::load_balancer::model::floating_ip::SubnetChoice;

/// A step on a floating IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FloatingIpStep {
    /// Makes a floating IP that leads to a port.
    Create {
        /// External network.
        network_id: String,
        /// Subnet of that network. With [`SubnetChoice::FirstFree`] one call for each until one works.
        subnet: SubnetChoice,
        /// The wanted address.
        address: Option<IpAddr>,
        /// Description.
        description: String,
        /// Tags. Neutron takes none in the creation: they follow in a second call, and if that is never made the
        /// next plan tags what hangs on the VIP port.
        tags: Tags,
        /// The VIP port.
        port: Handle,
    },
    /// Lets a floating IP lead to a port.
    Attach {
        /// Id.
        id: String,
        /// Its address, for display.
        address: IpAddr,
        /// The VIP port.
        port: Handle,
    },
    /// Takes a floating IP off its port.
    Detach {
        /// Id.
        id: String,
        /// Its address, for display.
        address: IpAddr,
    },
    /// Replaces the tags of a floating IP.
    Tag {
        /// Id.
        id: String,
        /// All tags from now on.
        tags: Tags,
    },
    /// Deletes a floating IP.
    Delete {
        /// Id.
        id: String,
        /// Its address, for display.
        address: IpAddr,
    },
}

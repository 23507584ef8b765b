//! The address of a node to which load balancers send, and helpers for networks and IP families.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use openstack_ccm_core::node::Node;
use openstack_ccm_core::service::IpFamily;

pub use crate::load_balancer::objects::address_choice::{AddressChoice, NodeAddressKind};

/// Returns the default address of a member: the node's first InternalIP of the family, else its first ExternalIP.
pub fn of(node: &Node, family: Option<IpFamily>) -> Option<IpAddr> {
    AddressChoice { family, ..AddressChoice::default() }.of(node)
}

pub fn family_of(address: IpAddr) -> IpFamily {
    match address {
        IpAddr::V4(_) => IpFamily::V4,
        IpAddr::V6(_) => IpFamily::V6,
    }
}

/// Returns the network of all addresses of a family.
pub(crate) fn everybody(family: IpFamily) -> IpNet {
    match family {
        IpFamily::V4 => IpNet::V4(Ipv4Net::default()),
        IpFamily::V6 => IpNet::V6(Ipv6Net::default()),
    }
}

/// Parses a network as Neutron does: host bits and single addresses are allowed.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    let parsed: Option<IpNet> = text.parse().ok();
    parsed.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from)).map(|network| network.trunc())
}

/// Returns the name of an IP family for messages.
pub(crate) fn family_name(family: IpFamily) -> &'static str {
    match family {
        IpFamily::V4 => "IPv4",
        IpFamily::V6 => "IPv6",
    }
}

//! The address of a node to which load balancers send, and networks and families of addresses.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use openstack_ccm_core::node::Node;
use openstack_ccm_core::service::IpFamily;

pub use crate::load_balancer::objects::address_choice::{AddressChoice, NodeAddressKind};

/// The address by which a node becomes a member where nothing else is known: its first InternalIP of the family, else its first ExternalIP.
pub fn of(node: &Node, family: Option<IpFamily>) -> Option<IpAddr> {
    AddressChoice { family, ..AddressChoice::default() }.of(node)
}

pub fn family_of(address: IpAddr) -> IpFamily {
    match address {
        IpAddr::V4(_) => IpFamily::V4,
        IpAddr::V6(_) => IpFamily::V6,
    }
}

/// The network of all addresses of a family.
pub(crate) fn everybody(family: IpFamily) -> IpNet {
    match family {
        IpFamily::V4 => IpNet::V4(Ipv4Net::default()),
        IpFamily::V6 => IpNet::V6(Ipv6Net::default()),
    }
}

/// A network as Neutron takes it: also with host bits, and as a single address.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    let parsed: Option<IpNet> = text.parse().ok();
    parsed.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from)).map(|network| network.trunc())
}

/// What messages call a family.
pub(crate) fn family_name(family: IpFamily) -> &'static str {
    match family {
        IpFamily::V4 => "IPv4",
        IpFamily::V6 => "IPv6",
    }
}

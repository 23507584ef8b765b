//! Chooses the address with which a node becomes a member.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use openstack_ccm_core::node::{AddressKind, Node};
use openstack_ccm_core::service::IpFamily;

/// How the address of a member is chosen among those of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressChoice {
    /// The required IP family; absent, any.
    pub family: Option<IpFamily>,
    /// The address type that the user prefers.
    pub kind: Option<NodeAddressKind>,
    /// The subnet of the members, if it is configured and was looked up.
    pub member_network: Option<IpNet>,
    /// Addresses of existing members. A node keeps its member's address, unless the user prefers a type.
    pub present: BTreeSet<IpAddr>,
}

/// `node-address-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeAddressKind {
    /// `InternalIP`
    Internal,
    /// `ExternalIP`
    External,
}

impl NodeAddressKind {
    /// The values of the annotation.
    pub(crate) const WORDS: [(&str, Self); 2] =
        [("InternalIP", Self::Internal), ("ExternalIP", Self::External)];
}

impl AddressChoice {
    /// Returns the address with which a node becomes a member; `None` where it has no address of the family.
    ///
    /// An InternalIP is preferred to an ExternalIP, unless the user prefers ExternalIP. Of several, the one in the members' subnet
    /// is taken, else the first. If the user prefers no type, the subnet also decides between types.
    pub fn of(&self, node: &Node) -> Option<IpAddr> {
        let in_order = self.in_order(node);
        let preferred =
            |wanted: &dyn Fn(IpAddr) -> bool| in_order.iter().copied().find(|(_, ip)| wanted(*ip));
        let first = in_order.first().copied();
        let in_subnet = |ip: IpAddr| self.member_network.is_some_and(|network| network.contains(&ip));
        let chosen = match (self.kind, first) {
            (None, _) => preferred(&|ip| self.present.contains(&ip)).or_else(|| preferred(&in_subnet)),
            (Some(_), Some((kind, _))) => {
                in_order.iter().copied().find(|(of, ip)| *of == kind && in_subnet(*ip))
            }
            (Some(_), None) => None,
        };
        chosen.or(first).map(|(_, ip)| ip)
    }

    /// Returns whether the choice for this node depends on the members' subnet.
    pub(crate) fn depends_on_subnet(&self, node: &Node) -> bool {
        let in_order = self.in_order(node);
        let Some((first, _)) = in_order.first() else { return false };
        match self.kind {
            None => in_order.len() > 1 && !in_order.iter().any(|(_, ip)| self.present.contains(ip)),
            Some(_) => in_order.iter().filter(|(kind, _)| kind == first).count() > 1,
        }
    }

    /// Returns the addresses of the family, those of the preferred type first.
    fn in_order(&self, node: &Node) -> Vec<(AddressKind, IpAddr)> {
        let kinds = match self.kind {
            None | Some(NodeAddressKind::Internal) => [AddressKind::InternalIp, AddressKind::ExternalIp],
            Some(NodeAddressKind::External) => [AddressKind::ExternalIp, AddressKind::InternalIp],
        };
        let of_kind = |kind: AddressKind| {
            let addresses = node.addresses.iter().filter(move |address| address.kind == kind);
            addresses.filter_map(move |address| Some((kind, address.address.parse::<IpAddr>().ok()?)))
        };
        let wanted = |ip: &IpAddr| match self.family {
            None => true,
            Some(IpFamily::V4) => ip.is_ipv4(),
            Some(IpFamily::V6) => ip.is_ipv6(),
        };
        kinds.into_iter().flat_map(of_kind).filter(|(_, ip)| wanted(ip)).collect()
    }
}

//! By which of its addresses a node becomes a member.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use openstack_ccm_core::node::{AddressKind, Node};
use openstack_ccm_core::service::IpFamily;

/// By which of its addresses a node becomes a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressChoice {
    /// The family that it has; absent, any.
    pub family: Option<IpFamily>,
    /// The kind that the user prefers.
    pub kind: Option<NodeAddressKind>,
    /// The subnet of the members, where somebody names it and it was looked up.
    pub member_network: Option<IpNet>,
    /// Addresses of the members that are there. A node that is a member stays what it is, unless the user names a kind.
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
    /// The words of the annotation, and what they mean.
    pub(crate) const WORDS: [(&str, Self); 2] =
        [("InternalIP", Self::Internal), ("ExternalIP", Self::External)];
}

impl AddressChoice {
    /// The address by which a node becomes a member; absent where it has none of the family, so that it cannot be one.
    ///
    /// An InternalIP goes before an ExternalIP, unless the user prefers the latter. Of several, that in the subnet of the members is taken, else the
    /// first. Where no kind is preferred, the subnet decides between the kinds too.
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

    /// Whether it takes the subnet of the members to choose.
    pub(crate) fn depends_on_subnet(&self, node: &Node) -> bool {
        let in_order = self.in_order(node);
        let Some((first, _)) = in_order.first() else { return false };
        match self.kind {
            None => in_order.len() > 1 && !in_order.iter().any(|(_, ip)| self.present.contains(ip)),
            Some(_) => in_order.iter().filter(|(kind, _)| kind == first).count() > 1,
        }
    }

    /// The addresses of the family, those of the preferred kind first.
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

//! Which routes are wanted, kept and removed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::range::ClusterRanges;
use super::{ListedRoute, NodeRoute, RoutedNode};
use crate::node::AddressKind;

/// The changes to make to the routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Wanted routes that exist.
    pub keep: Vec<NodeRoute>,
    /// Wanted routes that are missing.
    pub add: Vec<NodeRoute>,
    /// Routes that no node wants any more.
    pub remove: Vec<Removal>,
}

/// A route that no node wants any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The route.
    pub route: ListedRoute,
    /// The parsed route, if its next hop is an address of a node of the cluster. Nothing is known of any other next hop.
    pub of_node: Option<NodeRoute>,
}

/// What the routes of one node should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    /// `metadata.name`
    pub name: String,
    /// One route for each pod range that can have a route.
    pub routes: Vec<NodeRoute>,
    /// Why the other ranges cannot have a route.
    pub problems: Vec<Problem>,
    /// Whether the node is the next hop of routes in the cluster's ranges that it does not want.
    pub has_other_routes: bool,
}

/// Why a pod range of a node cannot have a route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not a network.
    #[error("{cidr:?} in spec.podCIDRs is not a network such as 10.244.1.0/24")]
    NotANetwork {
        /// The text.
        cidr: String,
    },
    /// The range is outside: such a route would never be removed.
    #[error("{cidr} is outside of the cluster's ranges: correct --cluster-cidr or the ranges of the nodes")]
    OutsideOfCluster {
        /// The range.
        cidr: IpNet,
    },
    /// The node has no address for the next hop.
    #[error("the node has no InternalIP of the family of {cidr}")]
    NoAddress {
        /// The range.
        cidr: IpNet,
    },
}

impl Problem {
    /// Returns the range as text.
    pub fn cidr(&self) -> String {
        match self {
            Self::NotANetwork { cidr } => cidr.clone(),
            Self::OutsideOfCluster { cidr } | Self::NoAddress { cidr } => cidr.to_string(),
        }
    }
}

/// The decisions about all routes and nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The changes to make.
    pub changes: Changes,
    /// The plan of each node, in the order in which the nodes were given.
    pub nodes: Vec<NodePlan>,
}

/// Compares the routes of the cloud with the nodes.
///
/// A node wants a route for each network in `spec.podCIDRs`, over its first `InternalIP` of that family. A route to such a
/// network over any other address of the same node serves as well. All other routes in the cluster's ranges are removed;
/// routes outside of the ranges, or to no valid network, are not the cluster's. While no node is known no route is removed:
/// that is more likely a mistake than the end of the cluster.
pub fn decide(listed: &[ListedRoute], nodes: &[RoutedNode], ranges: &ClusterRanges) -> Plan {
    let wishes: Vec<Wishes> = nodes.iter().map(|node| Wishes::of(node, ranges)).collect();
    let owners = owners(nodes);
    let mut plan = Plan::default();
    let mut there: BTreeSet<(usize, IpNet)> = BTreeSet::new();
    let mut others = BTreeSet::new();
    for route in listed {
        let Some((destination, next_hop)) = parsed(route) else { continue };
        let hops = owners.get(&next_hop).map_or(&[][..], Vec::as_slice);
        // Two nodes may have one address while a machine registers again: the route serves both.
        let serves = |node: &usize| wishes[*node].want(destination, next_hop);
        let users: Vec<usize> = hops.iter().copied().filter(serves).collect();
        if !users.is_empty() {
            there.extend(users.into_iter().map(|node| (node, destination)));
            plan.changes.keep.push(NodeRoute { destination, next_hop });
        } else if ranges.hold(destination) {
            others.extend(hops.iter().copied());
            let undecided = wishes.iter().any(|wishes| wishes.lack_address_for(destination));
            if !undecided && !nodes.is_empty() {
                let of_node = (!hops.is_empty()).then_some(NodeRoute { destination, next_hop });
                plan.changes.remove.push(Removal { route: route.clone(), of_node });
            }
        }
    }
    for (index, (node, wishes)) in nodes.iter().zip(wishes).enumerate() {
        let missing = wishes.routes.iter().filter(|route| !there.contains(&(index, route.destination)));
        plan.changes.add.extend(missing);
        plan.nodes.push(NodePlan {
            name: node.name.clone(),
            problems: wishes
                .problems
                .into_iter()
                .filter(|problem| !is_there(&there, index, problem))
                .collect(),
            routes: wishes.routes,
            has_other_routes: others.contains(&index),
        });
    }
    let unique: BTreeSet<NodeRoute> = std::mem::take(&mut plan.changes.add).into_iter().collect();
    plan.changes.add = unique.into_iter().collect();
    plan
}

/// A range outside of the cluster's gets no new route, but an existing route serves.
fn is_there(there: &BTreeSet<(usize, IpNet)>, node: usize, problem: &Problem) -> bool {
    match problem {
        Problem::OutsideOfCluster { cidr } => there.contains(&(node, *cidr)),
        Problem::NotANetwork { .. } | Problem::NoAddress { .. } => false,
    }
}

/// Maps each address to the nodes that have it; several while a node is being replaced.
fn owners(nodes: &[RoutedNode]) -> BTreeMap<IpAddr, Vec<usize>> {
    let mut owners: BTreeMap<IpAddr, Vec<usize>> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for address in node.addresses.iter().filter_map(|address| address.address.parse().ok()) {
            let of_address = owners.entry(address).or_default();
            if of_address.last() != Some(&index) {
                of_address.push(index);
            }
        }
    }
    owners
}

fn parsed(route: &ListedRoute) -> Option<(IpNet, IpAddr)> {
    let destination: IpNet = route.destination.parse().ok()?;
    Some((destination.trunc(), route.next_hop.parse().ok()?))
}

/// The routes that one node asks for.
#[derive(Default)]
struct Wishes {
    routes: Vec<NodeRoute>,
    problems: Vec<Problem>,
}

impl Wishes {
    fn of(node: &RoutedNode, ranges: &ClusterRanges) -> Self {
        let mut wishes = Self::default();
        let mut seen = BTreeSet::new();
        for text in &node.pod_cidrs {
            let Ok(network) = text.parse::<IpNet>() else {
                wishes.problems.push(Problem::NotANetwork { cidr: text.clone() });
                continue;
            };
            let destination = network.trunc();
            if !seen.insert(destination) {
                continue;
            }
            if !ranges.hold(destination) {
                wishes.problems.push(Problem::OutsideOfCluster { cidr: destination });
                continue;
            }
            match next_hop(node, destination) {
                Some(next_hop) => wishes.routes.push(NodeRoute { destination, next_hop }),
                None => wishes.problems.push(Problem::NoAddress { cidr: destination }),
            }
        }
        wishes
    }

    /// Whether a route to `destination` over this address of the node serves the node.
    fn want(&self, destination: IpNet, next_hop: IpAddr) -> bool {
        let outside = |problem: &Problem| *problem == Problem::OutsideOfCluster { cidr: destination };
        same_family(destination, next_hop)
            && (self.routes.iter().any(|route| route.destination == destination)
                || self.problems.iter().any(outside))
    }

    /// Whether the node wants a route to `destination` and lacks only an address at the moment.
    fn lack_address_for(&self, destination: IpNet) -> bool {
        self.problems.contains(&Problem::NoAddress { cidr: destination })
    }
}

fn next_hop(node: &RoutedNode, destination: IpNet) -> Option<IpAddr> {
    node.addresses
        .iter()
        .filter(|address| address.kind == AddressKind::InternalIp)
        .filter_map(|address| address.address.parse().ok())
        .find(|address| same_family(destination, *address))
}

fn same_family(network: IpNet, address: IpAddr) -> bool {
    match network {
        IpNet::V4(_) => address.is_ipv4(),
        IpNet::V6(_) => address.is_ipv6(),
    }
}

#[cfg(test)]
mod tests;

//! Converts nodes to members of pools.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use openstack_ccm_core::node::Node;
use openstack_ccm_core::notice::Notice;

use super::sources::Sources;
use crate::limits::MAX_NAMES;
use crate::load_balancer::annotations::NODE_SELECTOR;
use crate::load_balancer::names;
use crate::load_balancer::objects::Member;
use crate::load_balancer::settings::names_of;

/// A selected node cannot be a member.
const NODE_SKIPPED: &str = "LoadBalancerNodeSkipped";
/// Ports without members.
const WITHOUT_NODE_PORTS: &str = "LoadBalancerWithoutNodePorts";

/// A node that becomes a member of every pool.
#[derive(Clone, Debug)]
pub(super) struct Backend {
    name: String,
    pub(super) address: IpAddr,
    /// Whether it is a member already, with this name.
    is_member: bool,
}

impl Backend {
    pub(super) fn of_member(member: &Member) -> Self {
        Self { name: member.name.clone(), address: member.address, is_member: true }
    }
}

/// Returns whether a member was made for a node.
pub(super) fn is_of(member: &Member, node: &str) -> bool {
    member.name == node || member.name == names::serial_member(node, member.address, member.port)
}

/// Lists the first of several items, and the number of others.
pub(super) fn some_of<T>(all: &[T], text: impl Fn(&T) -> String) -> String {
    let named = all.iter().take(MAX_NAMES).map(text).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MAX_NAMES) {
        0 => named,
        others => format!("{named} and {others} others"),
    }
}

/// Returns the selected nodes that cannot become members because their address is not known.
pub(super) fn without_address(sources: Sources<'_>) -> Vec<&str> {
    let lacking = selected(sources).filter(|node| sources.facts.node_addresses.of(node).is_none());
    lacking.map(|node| node.name.as_str()).collect()
}

/// Returns the warning about nodes that are not added while the node selector is invalid.
pub(super) fn waiting(sources: Sources<'_>, members: &[&Member]) -> Option<Notice> {
    let is_member = |node: &Node| {
        let address = sources.facts.node_addresses.of(node);
        members.iter().any(|member| is_of(member, &node.name) || address == Some(member.address))
    };
    let waiting: Vec<&str> =
        sources.intent.nodes.iter().filter(|node| !is_member(node)).map(|node| node.name.as_str()).collect();
    (!waiting.is_empty()).then(|| {
        let message = format!(
            "these nodes are not added as members until {} is corrected: {}",
            NODE_SELECTOR.key,
            some_of(&waiting, |name| (*name).to_owned())
        );
        Notice::warning(NODE_SKIPPED, message)
    })
}

fn selected(sources: Sources<'_>) -> impl Iterator<Item = &Arc<Node>> {
    sources.intent.nodes.iter().filter(move |node| sources.settings.node_selector.matches(node))
}

/// Returns the warning about ports without a node port.
pub(super) fn without_node_ports(sources: Sources<'_>) -> Option<Notice> {
    let without = names_of(&sources.intent.service.ports, |port| port.node_port.is_none())?;
    let message = format!(
        "port(s) {without} have no node port, so the load balancer has nowhere to send their traffic: set \
         spec.allocateLoadBalancerNodePorts to true, or set nodePort for each of these ports"
    );
    Some(Notice::warning(WITHOUT_NODE_PORTS, message))
}

/// Returns the nodes that become members: those that are selected and have an address of the Service's family. Two nodes with the
/// same address are one member, since Octavia accepts an address once.
pub(super) fn backends(sources: Sources<'_>, notices: &mut Vec<Notice>) -> Vec<Backend> {
    let mut skip = |node: &str, why: String| {
        notices.push(Notice::warning(NODE_SKIPPED, format!("node {node} is not added as a member: {why}")));
    };
    let mut backends = BTreeMap::<IpAddr, Backend>::new();
    for node in selected(sources) {
        let name = &node.name;
        let Some(address) = sources.facts.node_addresses.of(node) else {
            skip(name, "it has no InternalIP and no ExternalIP of the Service's IP family".to_owned());
            continue;
        };
        if let Some(other) = backends.get(&address) {
            skip(name, format!("node {} has the same address {address}", other.name));
            continue;
        }
        backends.insert(address, Backend { name: name.clone(), address, is_member: false });
    }
    backends.into_values().collect()
}

/// Returns the members of one pool, sorted by key; none without a node port.
pub(super) fn of_pool(
    sources: Sources<'_>,
    backends: &[Backend],
    node_port: Option<u16>,
    monitor_port: Option<u16>,
) -> Vec<Arc<Member>> {
    let Some(port) = node_port else { return Vec::new() };
    let name = |backend: &Backend| match sources.settings.serial_api_calls && !backend.is_member {
        true => names::serial_member(&backend.name, backend.address, port),
        false => backend.name.clone(),
    };
    let subnet_id: Option<Arc<str>> = sources.facts.member_subnet_id.as_deref().map(Arc::from);
    let member = |backend: &Backend| Member {
        name: name(backend),
        address: backend.address,
        port,
        subnet_id: subnet_id.clone(),
        monitor_port,
        monitor_address: None,
        weight: 1,
        backup: false,
        admin_state_up: true,
    };
    backends.iter().map(|backend| Arc::new(member(backend))).collect()
}

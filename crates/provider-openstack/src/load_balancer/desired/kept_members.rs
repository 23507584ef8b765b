//! Keeps members: an empty set of nodes never empties a pool, and an invalid node selector adds no member. Pure.
//!
//! There may be no node because the API server lost its data, all nodes are labelled, or `node-selector` has a typing error. A node
//! without an address was restored from a state before its initialisation. Traffic may continue as long as members exist, and
//! certainly ends without them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::health_monitor;
use super::members::{self, Backend};
use super::sources::Sources;
use crate::load_balancer::objects::{Desired, ListenerKey, Member, ObservedLoadBalancer, ObservedPool};
use crate::load_balancer::settings::Aspect;

/// Keeps existing members if no node is selected, or if the node selector is invalid: then members of deleted nodes are still
/// removed, while a member of another node is left. A node without an address keeps its member. An empty pool stays empty. The pool
/// of a new port gets the members of an existing pool.
pub(super) fn apply(desired: &mut Desired, sources: Sources<'_>, existing: &ObservedLoadBalancer) {
    let backends = members::backends(sources, &mut Vec::new());
    let is_unreadable = sources.settings.is_unreadable(Aspect::NodeSelector);
    let keeps_all = is_unreadable || backends.is_empty();
    let without_address = members::without_address(sources);
    if !keeps_all && without_address.is_empty() {
        return;
    }
    desired.keeps_members = true;
    let Some(children) = &existing.children else { return };
    let own = children.listeners.iter().filter(|listener| listener.ours);
    let pools: BTreeMap<ListenerKey, &ObservedPool> =
        own.filter_map(|listener| Some((listener.key(), children.default_pool(listener)?))).collect();
    let sibling = pools.values().find(|pool| !pool.members.is_empty());
    // A member of a deleted node may be removed as long as another member has a node.
    let has_node = |member: &Member| {
        sources.intent.nodes.iter().any(|node| {
            members::is_of(member, &node.name)
                || sources.facts.node_addresses.of(node) == Some(member.address)
        })
    };
    if is_unreadable {
        let all = pools.values().flat_map(|pool| &pool.members).map(|observed| observed.member.as_ref());
        desired.notices.extend(members::waiting(sources, &all.collect::<Vec<_>>()));
    }
    for port in &sources.intent.service.ports {
        let key = ListenerKey::new(port.protocol, port.port);
        let Some(wanted) = desired.listeners.get_mut(&key) else { continue };
        let there = pools.get(&key).or(sibling).into_iter().flat_map(|pool| &pool.members);
        let there = there.map(|observed| observed.member.as_ref());
        let drops_gone = is_unreadable && there.clone().any(has_node);
        let kept = there
            .filter(|member| !drops_gone || has_node(member))
            .filter(|member| keeps_all || without_address.iter().any(|node| members::is_of(member, node)));
        let mut members: BTreeMap<IpAddr, Backend> =
            kept.map(|member| (member.address, Backend::of_member(member))).collect();
        if !keeps_all {
            members.extend(backends.iter().map(|backend| (backend.address, backend.clone())));
        }
        let members: Vec<Backend> = members.into_values().collect();
        let monitor_port = health_monitor::http_check_port(sources, port.protocol);
        wanted.pool.members = members::of_pool(sources, &members, port.node_port, monitor_port);
    }
}

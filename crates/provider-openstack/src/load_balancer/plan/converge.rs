//! Brings an existing load balancer in line with the desired state.

use std::collections::BTreeSet;
use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::octavia::UpdateLoadBalancer;

use super::children;
use super::draft::{Draft, says_nothing_wrong, tags_of_own, tags_of_shared};
use super::floating_ip::{self, VipPort};
use super::port::{self, Port};
use super::rename::Rename;
use super::types::Plan;
use crate::load_balancer::names::{self, GeneratedName};
use crate::load_balancer::objects::step::{Changes as _, Handle, LoadBalancerStep, Step};
use crate::load_balancer::objects::{
    Children, Desired, FloatingIpGoal, ListenerKey, LoadBalancerSpec, OVN, Observed, ObservedListener,
    ObservedLoadBalancer, Ownership, Tags,
};

/// An internal Service joins a load balancer that other Services use.
const SHARED_INTERNALLY: &str = "LoadBalancerSharedInternally";

/// Creates the load balancer with everything below it.
pub(super) fn create_tree(draft: &mut Draft, desired: &Desired, load_balancer: LoadBalancerSpec) {
    // In serial mode the children are created after the load balancer.
    let mut listeners: Vec<_> =
        if desired.serial { Vec::new() } else { desired.listeners.values().cloned().collect() };
    if draft.refusals.new_members {
        listeners.iter_mut().for_each(|one| one.pool.members.clear());
    }
    let load_balancer = Box::new(load_balancer);
    draft.step(Step::LoadBalancer(LoadBalancerStep::Create { load_balancer, listeners }));
}

/// Brings an ACTIVE load balancer in line with the desired state.
pub(super) fn converge(
    mut draft: Draft,
    desired: &Desired,
    observed: &Observed,
    load_balancer: &ObservedLoadBalancer,
) -> Plan {
    let Some(below) = &load_balancer.children else {
        let message = format!("load balancer {} is ACTIVE, but its children were not read", load_balancer.id);
        draft.block(Failure::new(FailureClass::Bug, message));
        return draft.finish();
    };
    draft.untagged = is_untagged(desired, load_balancer);
    draft.is_ovn = load_balancer.made_with.provider.as_deref() == Some(OVN);
    draft.vip_subnet_id.clone_from(&load_balancer.vip_subnet_id);
    draft.rename = Rename::of(load_balancer, &desired.load_balancer.name);
    let own_listeners = below.listeners.iter().filter(|listener| listener.ours);
    draft.own_listeners = own_listeners.map(ObservedListener::key).collect();
    let left = draft.refusals.predecessors.values().map(|before| before.pool.id.clone());
    let in_use = below.pools.iter().filter(|pool| !pool.used_by.is_empty()).map(|pool| pool.id.clone());
    draft.in_use = in_use.chain(left).collect();
    let wait = children::pending(below, draft.is_ovn);
    let identity = identify(&draft, desired, load_balancer);
    // Until the load balancer is renamed, its previous name shows which children have to be renamed.
    let (first, last) = if draft.rename.is_some() { (None, identity) } else { (identity, None) };
    // Other users of the load balancer must know to which Service its new children belong, so the Service is announced first.
    let is_unknown = load_balancer.ownership != Ownership::Sole || load_balancer.is_retained();
    let announces = is_unknown && wait.is_none();
    let (announcement, first) = if announces { (first, None) } else { (None, first) };
    draft.announcement = announcement
        .as_ref()
        .filter(|step| names_new_user(step, load_balancer))
        .map(|_| draft.plan.steps.len());
    announcement.into_iter().for_each(|step| draft.identify(step));
    let ports: Vec<Port<'_>> =
        desired.listeners.iter().map(|(key, wanted)| Port::of(&mut draft, below, *key, wanted)).collect();
    if wait.is_none() {
        // The pools follow the nodes whatever blocks the rest of the plan.
        ports.iter().for_each(|port| port::keep_up(&mut draft, port));
    }
    floating_ip::serve(&mut draft, &desired.floating_ip, &observed.floating_ips, &vip_port(load_balancer));
    let conflicts = conflicts(&mut draft, desired, load_balancer, below);
    if draft.blocked.is_some() && !children::any_own(below) {
        // Nothing of this Service exists, so nothing has to be kept up: leave no trace.
        draft.plan.steps.clear();
        draft.plan.identity_tags.clear();
        return draft.finish();
    }
    if let Some(wait) = wait {
        return draft.wait(wait);
    }
    draft.plan.notices.extend(draft.rename.as_ref().map(Rename::notice));
    if joins_internally(desired, load_balancer) {
        let message = format!(
            "this internal Service shares {load_balancer} and is published with its VIP address; OCCM does not allow internal \
             Services to share a load balancer"
        );
        draft.plan.notices.push(Notice::normal(SHARED_INTERNALLY, message));
    }
    first.into_iter().for_each(|step| draft.identify(step));
    // Build for all ports, then swap, then delete: one look serves all swaps, and one all deletions.
    let free = ports.iter().filter(|port| !conflicts.contains(&port.key));
    let built: Vec<_> =
        free.map(|port| (port, port::build(&mut draft, &load_balancer.id, below, port))).collect();
    for (port, pool) in built {
        port::switch(&mut draft, &load_balancer.id, port, pool);
    }
    let metrics = port::converge_metrics(&mut draft, &load_balancer.id, below, desired.metrics.as_ref());
    if draft.blocked.is_none() {
        let is_wanted = |listener: &ObservedListener| match listener.is_of_metrics() {
            true => metrics == Some(listener.key()),
            false => desired.listeners.contains_key(&listener.key()),
        };
        children::remove_unwanted(&mut draft, below, is_wanted);
    }
    draft.keep_until_repaired(&below.listeners);
    last.into_iter().for_each(|step| draft.identify(step));
    draft.finish()
}

/// Returns whether an internal Service is about to use another Service's load balancer for the first time.
fn joins_internally(desired: &Desired, load_balancer: &ObservedLoadBalancer) -> bool {
    let internal = matches!(desired.floating_ip, FloatingIpGoal::Internal { .. });
    let mut users = names::user_names(&load_balancer.tags).peekable();
    let joins = users.peek().is_some() && !load_balancer.tags.contains(&desired.load_balancer.name);
    internal && joins && load_balancer.ownership == Ownership::Guest && load_balancer.previous_name.is_none()
}

/// Returns the update that marks the load balancer as used by this Service: its tags, its name if the cluster was renamed, and its
/// description if it outlived another Service.
fn identify(draft: &Draft, desired: &Desired, load_balancer: &ObservedLoadBalancer) -> Option<Step> {
    let wanted = &desired.load_balancer.tags;
    let tags = match load_balancer.ownership {
        Ownership::Sole => tags_of_own(&load_balancer.tags, wanted),
        Ownership::Shared | Ownership::Guest => tags_of_shared(&load_balancer.tags, wanted),
    };
    let (name, tags) = match &draft.rename {
        None => (None, tags),
        Some(rename) => (rename.load_balancer(load_balancer), rename.tags(&load_balancer.tags, tags)),
    };
    let outlived_its_service = load_balancer.ownership != Ownership::Guest && load_balancer.is_retained();
    let description = outlived_its_service.then(|| desired.load_balancer.description.clone());
    let changes = UpdateLoadBalancer { name, description, tags };
    (!changes.is_empty())
        .then(|| Step::LoadBalancer(LoadBalancerStep::Update { id: load_balancer.id.clone(), changes }))
}

/// Returns whether the step tells the other users of a load balancer that the Service uses it, too.
fn names_new_user(step: &Step, load_balancer: &ObservedLoadBalancer) -> bool {
    let Step::LoadBalancer(LoadBalancerStep::Update { changes, .. }) = step else { return false };
    let known: BTreeSet<&str> = names::user_names(&load_balancer.tags).collect();
    load_balancer.ownership != Ownership::Sole
        && load_balancer.previous_name.is_none()
        && changes.tags.iter().flat_map(names::user_names).any(|name| !known.contains(name))
}

/// Returns the wanted ports that foreign listeners occupy, and blocks the plan if there are any.
fn conflicts(
    draft: &mut Draft,
    desired: &Desired,
    load_balancer: &ObservedLoadBalancer,
    below: &Children,
) -> Vec<ListenerKey> {
    let foreign = below.listeners.iter().filter(|listener| !listener.ours);
    let taken: Vec<_> = foreign.filter(|listener| desired.listeners.contains_key(&listener.key())).collect();
    if !taken.is_empty() {
        let is_new = load_balancer.ownership == Ownership::Guest && !children::any_own(below);
        let own = GeneratedName::parse(&desired.load_balancer.name);
        let seen_from = is_new.then(|| own.as_ref().map_or("", |own| &*own.service.namespace));
        let names: Vec<String> = taken
            .iter()
            .map(|listener| {
                let ObservedListener { id, name, protocol, .. } = listener;
                let user = names::shown("listener", name, &format!("{id}, {protocol}"), seen_from);
                format!("port {} is already used by {user}", listener.key())
            })
            .collect();
        draft.block(Failure::user_input(format!(
            "{}, on {}; choose another port, or another load balancer",
            names.join(", "),
            names::shown("load balancer", &load_balancer.name, &load_balancer.id, seen_from)
        )));
    }
    taken.iter().map(|listener| listener.key()).collect()
}

/// Returns whether the load balancer is as OCCM leaves it: its name or OCCM's tag says that the Service uses it, and tags with uids
/// are missing, perhaps user tags too. A wrong uid is corrected at once, so it does not count.
fn is_untagged(desired: &Desired, load_balancer: &ObservedLoadBalancer) -> bool {
    let wanted = &desired.load_balancer.tags;
    let missing: Tags = wanted - &load_balancer.tags;
    let right = match load_balancer.ownership {
        Ownership::Sole => says_nothing_wrong(&load_balancer.tags, wanted),
        Ownership::Shared | Ownership::Guest => true,
    };
    right
        && missing.iter().any(|tag| names::is_own_tag(tag))
        && !missing.iter().any(|tag| names::is_generated(tag))
        && load_balancer.previous_name.is_none()
        && (load_balancer.ownership == Ownership::Guest || !load_balancer.is_retained())
}

pub(super) fn vip_port(load_balancer: &ObservedLoadBalancer) -> VipPort {
    let port =
        load_balancer.vip_port_id.clone().map_or_else(|| new_vip_port(&load_balancer.name), Handle::Id);
    // A floating IP translates only to an IPv4 address.
    let ipv4 = load_balancer.vip_addresses().find(IpAddr::is_ipv4);
    VipPort {
        port,
        address: ipv4.or(load_balancer.vip_address),
        ownership: load_balancer.ownership,
        without_port: load_balancer.vip_port_id.is_none().then(|| load_balancer.to_string()),
    }
}

pub(super) fn new_vip_port(load_balancer_name: &str) -> Handle {
    Handle::New(format!("VIP of {load_balancer_name}"))
}

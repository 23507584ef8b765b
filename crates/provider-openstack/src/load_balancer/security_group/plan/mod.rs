//! Plans the steps to the desired security group. Pure.
//!
//! There are two halves, before and after the load balancer changes: first traffic is allowed; when the load balancer no longer
//! sends it, traffic is blocked. So a new node port or node is never unreachable, and nothing that a Service leaves behind stays
//! open.

use std::collections::BTreeSet;

use super::model::{DesiredGroup, ObservedGroup, ObservedPort, Opening};
use super::step::GroupStep;
use crate::load_balancer::objects::step::Handle;
use crate::load_balancer::plan::tags_of_own;

/// Plans what allows traffic: the group, its rules, and the ports that get it.
pub(super) fn open(desired: &DesiredGroup, observed: Option<&ObservedGroup>) -> Vec<GroupStep> {
    if desired.keeps_rules && observed.is_none() {
        return Vec::new();
    }
    let nothing = ObservedGroup::default();
    let (mut steps, group) = match observed {
        Some(observed) => (Vec::new(), Handle::Id(observed.id.clone())),
        None => {
            let DesiredGroup { name, description, .. } = desired.clone();
            let group = Handle::New(name.clone());
            (vec![GroupStep::Create { name, description }], group)
        }
    };
    let observed = observed.unwrap_or(&nothing);
    let tags = tags_of_own(&observed.tags, &desired.tags);
    steps.extend(tags.map(|tags| GroupStep::Tag { group: group.clone(), tags }));
    let present: BTreeSet<Opening> = observed.rules.iter().filter_map(|rule| rule.opening).collect();
    let missing = desired.openings.difference(&present).filter(|_| !desired.keeps_rules);
    steps.extend(missing.map(|opening| GroupStep::Open { group: group.clone(), opening: *opening }));
    let carriers: BTreeSet<&str> = observed.ports.iter().map(|port| port.id.as_str()).collect();
    let joining = desired.ports.keys().filter(|port| !carriers.contains(port.as_str()));
    steps.extend(joining.map(|port| GroupStep::AddToPort { group: group.clone(), port_id: port.clone() }));
    steps
}

/// Plans what blocks traffic: deletes unwanted rules, and removes the group from ports of nodes that receive no traffic any more.
///
/// The whole group belongs to this controller, so it also deletes rules that other clients added and Neutron's rules for egress:
/// the group exists to let the load balancer in, and must not widen what other groups allow.
pub(super) fn close(desired: &DesiredGroup, observed: &ObservedGroup) -> Vec<GroupStep> {
    let mut kept = BTreeSet::new();
    let unwanted = observed.rules.iter().filter(|rule| {
        // Two rules may allow the same in different notations.
        !desired.keeps_rules
            && !rule
                .opening
                .is_some_and(|opening| desired.openings.contains(&opening) && kept.insert(opening))
    });
    let mut steps: Vec<GroupStep> =
        unwanted.map(|rule| GroupStep::DeleteRule { id: rule.id.clone(), opening: rule.opening }).collect();
    let leaving = observed.ports.iter().filter(|port| leaves(desired, port));
    steps.extend(leaving.map(|port| remove(&observed.id, port)));
    steps
}

/// Returns whether the port's node receives no traffic any more, or on another port. `false` if no port is desired: the nodes may
/// just not be known.
fn leaves(desired: &DesiredGroup, port: &ObservedPort) -> bool {
    if desired.ports.is_empty() || desired.ports.contains_key(&port.id) {
        return false;
    }
    !desired.servers.contains(&port.server) || desired.ports.values().any(|server| *server == port.server)
}

/// Plans the deletion of a group.
pub(super) fn release(observed: &ObservedGroup) -> Vec<GroupStep> {
    let mut steps: Vec<GroupStep> = observed.ports.iter().map(|port| remove(&observed.id, port)).collect();
    steps.push(GroupStep::Delete { id: observed.id.clone() });
    steps
}

fn remove(group_id: &str, port: &ObservedPort) -> GroupStep {
    GroupStep::RemoveFromPort { group_id: group_id.to_owned(), port_id: port.id.clone() }
}

#[cfg(test)]
mod tests;

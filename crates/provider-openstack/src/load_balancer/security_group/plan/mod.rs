//! What makes a security group the wanted one. Pure.
//!
//! In two halves, around the change of the load balancer: what lets traffic in comes first, what keeps it out comes
//! when the load balancer sends nothing there any more. So a new node port or a new node is never unreachable, and
//! what a Service leaves behind is never open.

use std::collections::BTreeSet;

use super::model::{DesiredGroup, ObservedGroup, ObservedPort, Opening};
use super::step::GroupStep;
use crate::load_balancer::objects::step::Handle;
use crate::load_balancer::plan::tags_of_own;

/// What lets traffic in: the group, its rules, and the ports that carry it.
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

/// What keeps traffic out: rules that are not wanted, and ports of nodes that take no traffic any more.
///
/// The whole group is the program's, so rules that others added go too, as do those that let everything out: the
/// group is there to let the load balancer in, and must not widen what other groups allow.
pub(super) fn close(desired: &DesiredGroup, observed: &ObservedGroup) -> Vec<GroupStep> {
    let mut kept = BTreeSet::new();
    let unwanted = observed.rules.iter().filter(|rule| {
        // Two rules may say the same in different words.
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

/// Whether the node of a port takes no traffic any more, or takes it on another port. That no port at all is wanted
/// is no reason: the nodes may just not be known.
fn leaves(desired: &DesiredGroup, port: &ObservedPort) -> bool {
    if desired.ports.is_empty() || desired.ports.contains_key(&port.id) {
        return false;
    }
    !desired.servers.contains(&port.server) || desired.ports.values().any(|server| *server == port.server)
}

/// What makes a group disappear.
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

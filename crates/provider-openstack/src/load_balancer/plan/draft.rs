//! A plan under construction.

use std::collections::BTreeSet;
use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::refusals::{Refusals, leave_out};
use super::rename::Rename;
use super::types::{Plan, Then, Wait};
use crate::load_balancer::names;
use crate::load_balancer::objects::step::{Handle, ListenerStep, PoolStep, Step};
use crate::load_balancer::objects::{ListenerKey, ObservedListener, ObservedPool, Tags};

/// Reason of the notice that something failed inside Octavia and is sent again.
const CHILD_FAILED: &str = "LoadBalancerChildFailed";

/// Collects the steps and the other contents of a plan.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The plan so far; `then` is set at the end.
    pub(super) plan: Plan,
    /// The first obstacle that this controller cannot remove.
    pub(super) blocked: Option<Failure>,
    /// Whether the load balancer is as OCCM leaves it: then steps that only set identity tags can wait.
    pub(super) untagged: bool,
    /// Whether members are changed one by one.
    pub(super) serial: bool,
    /// Steps that are not sent again for now because the cloud refused them.
    pub(super) refusals: Refusals,
    /// Addresses of nodes that have another server now.
    pub(super) replaced_servers: BTreeSet<IpAddr>,
    /// Subnet of the VIP: the default subnet of members.
    pub(super) vip_subnet_id: Option<String>,
    /// Listeners whose protocol cannot be changed for now.
    pub(super) stuck: BTreeSet<ListenerKey>,
    /// Pools in use whose members are already planned.
    pub(super) kept_up: BTreeSet<String>,
    /// Whether members can be added without naming the others.
    pub(super) additive: bool,
    /// Whether the provider is ovn.
    pub(super) is_ovn: bool,
    /// The renaming that objects still need because the cluster was renamed.
    pub(super) rename: Option<Rename>,
    /// The places of the steps that each step needs.
    pub(super) needs: Vec<Vec<usize>>,
    /// The place of the step that announces the Service on a shared load balancer.
    pub(super) announcement: Option<usize>,
    /// The ports that have a listener of this Service.
    pub(super) own_listeners: BTreeSet<ListenerKey>,
    /// Pools that listeners use, or whose listener was deleted for one of another protocol, which gets them unchanged.
    pub(super) in_use: BTreeSet<String>,
    /// Ports whose listener keeps its pool until the pool that replaces it is repaired.
    pub(super) unready: BTreeSet<ListenerKey>,
    /// Pools that a listener keeps or gets.
    pub(super) claimed_pools: BTreeSet<String>,
}

impl Draft {
    pub(super) fn step(&mut self, step: Step) {
        self.step_with(step, Vec::new());
    }

    /// Adds a step that also needs others, by their places: it is left out with any of them.
    pub(super) fn step_with(&mut self, step: Step, others: Vec<usize>) {
        let mut needed = self.needed_by(&step);
        needed.extend(others);
        self.needs.push(needed);
        self.plan.steps.push(step);
    }

    /// Adds a step that changes something; with `repairs`, it only sends again what failed.
    pub(super) fn change(&mut self, repairs: bool, step: Step) {
        if repairs {
            self.plan.repairs.insert(self.plan.steps.len());
        }
        self.step(step);
    }

    /// Makes the steps from place `from` on wait for the step at `earlier`, if that is a repair: they must not precede it.
    pub(super) fn wait_with(&mut self, earlier: usize, from: usize) {
        if self.plan.repairs.contains(&earlier) {
            self.plan.after_repairs.extend(from..self.plan.steps.len());
        }
    }

    /// Returns whether the plan repairs something of this pool: until then no listener may be switched to it.
    pub(super) fn is_under_repair(&self, pool: &Handle) -> bool {
        let is_of_pool = |step: &Step| match step {
            Step::Member(step) => step.pool_id() == pool.id(),
            Step::Pool(PoolStep::Update { id, .. }) => Some(id.as_str()) == pool.id(),
            _ => false,
        };
        pool.id().is_some() && self.plan.repairs.iter().any(|place| is_of_pool(&self.plan.steps[*place]))
    }

    /// Makes the listeners of unready ports, and their pools, wait until the repairs are done.
    pub(super) fn keep_until_repaired(&mut self, listeners: &[ObservedListener]) {
        let is_unready = |listener: &&ObservedListener| self.unready.contains(&listener.key());
        let in_use: Vec<&str> =
            listeners.iter().filter(is_unready).filter_map(|one| one.default_pool_id.as_deref()).collect();
        let waits = |step: &Step| match step {
            Step::Listener(ListenerStep::SwapDefaultPool { key, .. } | ListenerStep::Delete { key, .. }) => {
                self.unready.contains(key)
            }
            Step::Listener(ListenerStep::Create { listener, .. }) => self.unready.contains(&listener.key()),
            Step::Pool(PoolStep::Delete { id, .. }) => in_use.contains(&id.as_str()),
            _ => false,
        };
        let steps = self.plan.steps.iter().enumerate();
        let places: Vec<usize> = steps.filter(|(_, step)| waits(step)).map(|(place, _)| place).collect();
        self.plan.after_repairs.extend(places);
    }

    /// The tags of a pool as the plan leaves them so far: Octavia replaces all tags of an object at once.
    pub(super) fn tags_of<'a>(&'a self, pool: &'a ObservedPool) -> &'a Tags {
        let written = |step: &'a Step| match step {
            Step::Pool(PoolStep::Update { id, changes }) if *id == pool.id => changes.tags.as_ref(),
            _ => None,
        };
        self.plan.steps.iter().rev().find_map(written).unwrap_or(&pool.tags)
    }

    /// Adds a step that only sets identity tags.
    pub(super) fn identify(&mut self, step: Step) {
        if self.untagged {
            self.plan.identity_tags.insert(self.plan.steps.len());
        }
        self.step(step);
    }

    /// Adds a change of a child; a change of nothing but tags waits with the load balancer's identity tags, if these are missing.
    pub(super) fn label_or_change(&mut self, labels: bool, repairs: bool, step: Step) {
        if labels && self.untagged { self.identify(step) } else { self.change(repairs, step) }
    }

    pub(super) fn warn(&mut self, reason: &'static str, message: impl Into<String>) {
        self.plan.notices.push(Notice::warning(reason, message));
    }

    /// Returns whether a change of nothing but tags waits for the next necessary change, because Octavia reloads the load balancer
    /// for each. It must only add tags, which repeat what names and descriptions say meanwhile.
    pub(super) fn can_wait(&self, tags: Option<&Tags>, observed: &Tags, wanted: &Tags) -> bool {
        let adds = tags.is_some_and(|tags| observed.is_subset(tags));
        adds && self.rename.is_none() && lacks_owner_only(observed, wanted)
    }

    /// Notes an obstacle. Only the first one is reported; others appear once it is removed.
    pub(super) fn block(&mut self, failure: Failure) {
        self.blocked.get_or_insert(failure);
    }

    /// Returns whether an object has to be sent again because it is in ERROR, and warns the user if so.
    pub(super) fn must_heal(
        &mut self,
        kind: &str,
        name: &str,
        id: &str,
        status: &ProvisioningStatus,
    ) -> bool {
        let failed = *status == ProvisioningStatus::Error;
        if failed {
            self.plan.heals = true;
            let message = format!(
                "Octavia failed to apply the last change of {kind} {name} ({id}); the change is sent again"
            );
            self.warn(CHILD_FAILED, message);
        }
        failed
    }

    /// Completes the plan: it ends blocked if an obstacle was noted.
    pub(super) fn finish(mut self) -> Plan {
        let then = self.blocked.take().map_or(Then::Done, Then::Blocked);
        self.end(then)
    }

    /// Completes the plan with a wait.
    pub(super) fn wait(self, wait: Wait) -> Plan {
        self.end(Then::WaitFor(wait))
    }

    fn end(self, then: Then) -> Plan {
        leave_out(Plan { then, ..self.plan }, &self.refusals, &self.needs, &self.own_listeners)
    }
}

/// Returns all tags for an object that only this Service uses, if they have to change: wanted tags are missing, or there are
/// outdated tags that only this controller sets. Tags of other clients stay.
pub(crate) fn tags_of_own(observed: &Tags, wanted: &Tags) -> Option<Tags> {
    let kept: Tags =
        observed.iter().filter(|tag| wanted.contains(*tag) || !names::is_own_tag(tag)).cloned().collect();
    let tags = &kept | wanted;
    (!wanted.is_empty() && tags != *observed).then_some(tags)
}

/// Returns the same, also without the `stale` tags about attributes that are no longer set here.
pub(super) fn tags_without(observed: &Tags, wanted: &Tags, stale: &Tags) -> Option<Tags> {
    let kept = observed - stale;
    let tags = tags_of_own(&kept, wanted);
    tags.or_else(|| (!stale.is_empty()).then_some(kept))
}

/// Returns all tags for an object that others use too, if wanted ones are missing.
pub(super) fn tags_of_shared(observed: &Tags, wanted: &Tags) -> Option<Tags> {
    (!wanted.is_subset(observed)).then(|| observed | wanted)
}

/// Returns whether all controller tags on an object are wanted ones.
pub(super) fn says_nothing_wrong(observed: &Tags, wanted: &Tags) -> bool {
    observed.iter().all(|tag| wanted.contains(tag) || !names::is_own_tag(tag))
}

/// Returns whether the tags contain nothing wrong, and only tags that name the owner are missing.
pub(super) fn lacks_owner_only(observed: &Tags, wanted: &Tags) -> bool {
    says_nothing_wrong(observed, wanted) && wanted.difference(observed).all(|tag| names::says_owner(tag))
}

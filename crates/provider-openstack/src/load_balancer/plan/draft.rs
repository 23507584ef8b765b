//! A plan in the making.

use std::collections::BTreeSet;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::refusals::Refusals;
use super::rename::Rename;
use super::types::{Plan, Then, Wait};
use crate::load_balancer::names;
use crate::load_balancer::objects::step::{Handle, ListenerStep, PoolStep, Step};
use crate::load_balancer::objects::{ListenerKey, ObservedListener, Tags};

/// Reason of the notice that something failed inside Octavia and is sent again.
const CHILD_FAILED: &str = "LoadBalancerChildFailed";

/// Collects steps and what else a plan says.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The plan so far; what comes after its steps is said when it is whole.
    pub(super) plan: Plan,
    /// The first thing that nothing can be done about here.
    pub(super) blocked: Option<Failure>,
    /// Whether the load balancer is as OCCM leaves it: what only says whose it is can wait.
    pub(super) untagged: bool,
    /// Whether everything is made one by one.
    pub(super) serial: bool,
    /// What the cloud does not get again for now.
    pub(super) refusals: Refusals,
    /// Subnet of the VIP: that of members for which none is named.
    pub(super) vip_subnet_id: Option<String>,
    /// The listeners of another protocol for which nothing can be put in their place for now.
    pub(super) stuck: BTreeSet<ListenerKey>,
    /// The pools in use whose members were looked after already.
    pub(super) kept_up: BTreeSet<String>,
    /// Whether members can be added without naming the others.
    pub(super) additive: bool,
    /// Whether the provider is ovn.
    pub(super) is_ovn: bool,
    /// The rename of the cluster that objects still need.
    pub(super) rename: Option<Rename>,
    /// What gives pools to listeners: for all ports together, after everything for them is built.
    pub(super) swaps: Vec<Step>,
    /// The ports whose listener stays with what serves it until the pool that takes its place is sound.
    pub(super) unready: BTreeSet<ListenerKey>,
    /// Pools that some listener keeps or gets.
    pub(super) claimed_pools: BTreeSet<String>,
}

impl Draft {
    pub(super) fn step(&mut self, step: Step) {
        self.plan.steps.push(step);
    }

    /// Adds a step that changes something, or does nothing but send again what failed.
    pub(super) fn change(&mut self, repairs: bool, step: Step) {
        if repairs {
            self.plan.repairs.insert(self.plan.steps.len());
        }
        self.step(step);
    }

    /// Has the steps from a place on wait together with an earlier one, if that does nothing but send again what failed: they must not
    /// come before it.
    pub(super) fn wait_with(&mut self, earlier: usize, from: usize) {
        if self.plan.repairs.contains(&earlier) {
            self.plan.after_repairs.extend(from..self.plan.steps.len());
        }
    }

    /// Whether something of a pool is sent again because Octavia failed at it: nobody can rely on that pool yet.
    pub(super) fn is_under_repair(&self, pool: &Handle) -> bool {
        let is_of_pool = |step: &Step| match step {
            Step::Member(step) => step.pool_id() == pool.id(),
            Step::Pool(PoolStep::Update { id, .. }) => Some(id.as_str()) == pool.id(),
            _ => false,
        };
        pool.id().is_some() && self.plan.repairs.iter().any(|place| is_of_pool(&self.plan.steps[*place]))
    }

    /// Has the listeners of unready ports keep what serves them until the repairs are done, and with them the pools that they have.
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

    /// Adds a step that does nothing but say who owns an object.
    pub(super) fn identify(&mut self, step: Step) {
        if self.untagged {
            self.plan.identity_tags.insert(self.plan.steps.len());
        }
        self.step(step);
    }

    /// Adds a change of a child: one of nothing but tags comes with those of the load balancer, if it lacks some.
    pub(super) fn label_or_change(&mut self, labels: bool, repairs: bool, step: Step) {
        if labels && self.untagged { self.identify(step) } else { self.change(repairs, step) }
    }

    pub(super) fn warn(&mut self, reason: &'static str, message: impl Into<String>) {
        self.plan.notices.push(Notice::warning(reason, message));
    }

    /// Whether a change of nothing but tags waits for the next one that is needed anyway: Octavia reloads the load
    /// balancer for each. It adds what names and descriptions say meanwhile, and takes nothing away.
    pub(super) fn can_wait(&self, tags: Option<&Tags>, observed: &Tags, wanted: &Tags) -> bool {
        let adds = tags.is_some_and(|tags| observed.is_subset(tags));
        adds && self.rename.is_none() && lacks_owner_only(observed, wanted)
    }

    /// Notes an obstacle. The first one is reported: others show when it is out of the way.
    pub(super) fn block(&mut self, failure: Failure) {
        self.blocked.get_or_insert(failure);
    }

    /// Whether an object has to be sent again because it is in ERROR; says so to the user.
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

    /// The plan, ending as everything so far says.
    pub(super) fn finish(self) -> Plan {
        Plan { then: self.blocked.map_or(Then::Done, Then::Blocked), ..self.plan }
    }

    /// The plan, ending in a wait.
    pub(super) fn wait(self, wait: Wait) -> Plan {
        Plan { then: Then::WaitFor(wait), ..self.plan }
    }
}

/// All tags of an object that is this Service's alone, if they have to change: it lacks some of the wanted ones, or
/// has others that only this program gives, which were true before it was taken over. Tags of others stay.
pub(crate) fn tags_of_own(observed: &Tags, wanted: &Tags) -> Option<Tags> {
    let kept: Tags =
        observed.iter().filter(|tag| wanted.contains(*tag) || !names::is_own_tag(tag)).cloned().collect();
    let tags = &kept | wanted;
    (!wanted.is_empty() && tags != *observed).then_some(tags)
}

/// The same without the tags about attributes that are not set here any more.
pub(super) fn tags_without(observed: &Tags, wanted: &Tags, stale: &Tags) -> Option<Tags> {
    let kept = observed - stale;
    let tags = tags_of_own(&kept, wanted);
    tags.or_else(|| (!stale.is_empty()).then_some(kept))
}

/// All tags of an object that others use too, if it lacks some of the wanted ones.
pub(super) fn tags_of_shared(observed: &Tags, wanted: &Tags) -> Option<Tags> {
    (!wanted.is_subset(observed)).then(|| observed | wanted)
}

/// Whether an object has none of the tags that only this program gives but wanted ones.
pub(super) fn says_nothing_wrong(observed: &Tags, wanted: &Tags) -> bool {
    observed.iter().all(|tag| wanted.contains(tag) || !names::is_own_tag(tag))
}

/// Whether the tags say nothing wrong, and what they lack does nothing but say who owns the object.
pub(super) fn lacks_owner_only(observed: &Tags, wanted: &Tags) -> bool {
    says_nothing_wrong(observed, wanted) && wanted.difference(observed).all(|tag| names::says_owner(tag))
}

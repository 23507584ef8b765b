//! Leaves out of a plan what the cloud has refused. Pure.
//!
//! | step | needs |
//! | --- | --- |
//! | a step on an object that another step creates | that step |
//! | any child of a load balancer that the Service joins | the tag that announces the Service |
//! | the rename of the load balancer | all renames of its children |
//! | a new health monitor | the members that it checks, and that the one before it is gone |
//! | a listener with a new pool, a swap | all steps that complete the pool |
//! | the deletion of a listener that changes its protocol | all that its successor needs, the successor, and the tags that describe the old listener |
//! | the deletion of a pool | the steps that remove its listeners |
//! | steps after the attachment of a floating IP | the attachment |
//! | members of a pool in use, the closing of a port, and everything else | nothing |

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_core::failure::Failure;

use super::types::{Plan, Refused};
use crate::load_balancer::names;
use crate::load_balancer::objects::digest::Digest;
use crate::load_balancer::objects::step::{
    FloatingIpStep, Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep, Step,
};
use crate::load_balancer::objects::{
    Children, FormerListener, ListenerKey, ListenerSpec, Observed, ObservedFloatingIp, ObservedPool,
    Ownership, former,
};

/// A listener that was deleted for one of another protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) listener: FormerListener,
    pub(crate) pool: ObservedPool,
}

/// The steps that the cloud refused, as they were sent, and that are not sent again for now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusals {
    pub(crate) steps: Vec<Refused>,
    /// The listeners that were deleted for a listener that does not exist yet.
    pub(crate) predecessors: BTreeMap<ListenerKey, Predecessor>,
}

impl Refusals {
    /// Returns why a step is not sent again for now.
    pub(crate) fn of(&self, step: &Step) -> Option<&Failure> {
        self.steps.iter().find(|refused| is_same(&refused.step, step)).map(|refused| &refused.failure)
    }
}

/// How a refused step that takes down what serves is tried again.
pub(crate) const TO_TRY_AGAIN: &str = "an attempt interrupts connections, so it is not repeated for the same setting: once the \
     cloud accepts the change, remove the setting that asks for it, and set it again";

/// When such a step is tried again after another failure.
pub(crate) const TRIED_RARELY: &str =
    "an attempt interrupts connections, so after the second failure there is one attempt an hour";

/// Returns the tag of a listener that keeps serving because `wanted` was refused in its place.
pub(crate) fn listener_tag(wanted: &ListenerSpec) -> String {
    names::refused_tag(Digest::of(FormerListener::of_wanted(wanted)))
}

/// Returns the tag of a floating IP that keeps serving because `asked`, as it is now, was refused in its place.
pub(crate) fn floating_ip_tag(asked: &ObservedFloatingIp) -> String {
    names::refused_tag(Digest::of(asked))
}

/// Returns whether a failure lasts until something else is asked for. One that may pass by itself comes with a pause.
pub(crate) fn is_for_good(failure: &Failure) -> bool {
    failure.rests.is_none()
}

/// Returns whether the cloud would answer both steps alike. Of a listener, what depends on its protocol decides; the floating IP that
/// another one replaces makes no difference.
pub(crate) fn is_same(one: &Step, other: &Step) -> bool {
    match (one, other) {
        (
            Step::Listener(ListenerStep::Create { listener: one, load_balancer_id: id, .. }),
            Step::Listener(ListenerStep::Create { listener: other, load_balancer_id: other_id, .. }),
        ) => id == other_id && FormerListener::of_wanted(one) == FormerListener::of_wanted(other),
        (
            Step::FloatingIp(FloatingIpStep::Attach { id, port, .. }),
            Step::FloatingIp(FloatingIpStep::Attach { id: other_id, port: other_port, .. }),
        ) => id == other_id && port == other_port,
        _ => one == other,
    }
}

/// Leaves out the refused steps, and all steps that need them.
pub(super) fn leave_out(mut plan: Plan, refusals: &Refusals, observed: &Observed) -> Plan {
    let mut causes: BTreeMap<usize, Failure> = BTreeMap::new();
    for (place, step) in plan.steps.iter().enumerate() {
        if let Some(failure) = refusals.of(step) {
            causes.insert(place, failure.clone());
        }
    }
    if causes.is_empty() {
        return plan;
    }
    let needs = Needs::of(&plan.steps, observed, refusals);
    let needed: Vec<Vec<usize>> = (0..plan.steps.len()).map(|place| needs.of_step(place)).collect();
    loop {
        let is_news = |place: &usize| !causes.contains_key(place);
        let next = (0..plan.steps.len()).filter(is_news).find_map(|place| {
            let cause = needed[place].iter().find_map(|needed| causes.get(needed))?;
            Some((place, cause.clone()))
        });
        let Some((place, cause)) = next else { break };
        causes.insert(place, cause);
    }
    for (place, failure) in &causes {
        let step = plan.steps[*place].clone();
        if let Step::Listener(ListenerStep::Create { listener, default_pool: Some(_), .. }) = &step {
            let closes = if needs.has_listener(listener.key()) { &mut plan.stuck } else { &mut plan.closed };
            closes.insert(listener.key());
        }
        plan.refused.push(Refused { step, failure: failure.clone() });
    }
    plan.keeping(|place| !causes.contains_key(&place))
}

/// Which steps of a plan need which others.
struct Needs<'a> {
    steps: &'a [Step],
    observed: &'a Observed,
    children: Option<&'a Children>,
    /// Pools whose listener was deleted for one of another protocol, which gets them unchanged.
    left: BTreeSet<&'a str>,
    /// The place of the step that announces the Service on a shared load balancer.
    announcement: Option<usize>,
}

impl<'a> Needs<'a> {
    fn of(steps: &'a [Step], observed: &'a Observed, refusals: &'a Refusals) -> Self {
        let there = observed.load_balancer.as_ref();
        let announces = |step: &Step| match (step, there) {
            (Step::LoadBalancer(LoadBalancerStep::Update { changes, .. }), Some(there)) => {
                let known: BTreeSet<&str> = names::user_names(&there.tags).collect();
                let tags = changes.tags.iter().flat_map(names::user_names);
                there.ownership != Ownership::Sole
                    && there.previous_name.is_none()
                    && tags.into_iter().any(|name| !known.contains(name))
            }
            _ => false,
        };
        let announcement = steps.iter().position(announces);
        let children = there.and_then(|there| there.children.as_ref());
        let left = refusals.predecessors.values().map(|before| before.pool.id.as_str()).collect();
        Self { steps, observed, children, left, announcement }
    }

    fn places(&self, is_needed: impl Fn(&Step) -> bool) -> Vec<usize> {
        let places = self.steps.iter().enumerate();
        places.filter(|(_, step)| is_needed(step)).map(|(place, _)| place).collect()
    }

    fn of_step(&self, place: usize) -> Vec<usize> {
        let step = &self.steps[place];
        let mut needed = match step {
            Step::LoadBalancer(LoadBalancerStep::Create { .. }) => {
                self.places(|step| matches!(step, Step::LoadBalancer(LoadBalancerStep::Delete { .. })))
            }
            Step::LoadBalancer(LoadBalancerStep::Update { changes, .. }) if changes.name.is_some() => {
                self.places(renames_child)
            }
            Step::LoadBalancer(_) => Vec::new(),
            Step::Listener(step) => self.of_listener(step),
            Step::Pool(PoolStep::Delete { id, .. }) => self.leaving(id),
            // The last member is deleted only after new ones were created.
            Step::Member(MemberStep::Delete { pool_id, .. }) if self.are_all_taken_out(pool_id) => {
                self.places(|step| {
                    matches!(step, Step::Member(MemberStep::Create { pool, .. }) if pool.id() == Some(pool_id.as_str()))
                })
            }
            // An HTTP check of the health check node port takes down members without `monitor_port`.
            Step::Monitor(MonitorStep::Create { pool, .. }) => {
                let mut before = self.filling(pool);
                before.extend(self.places(|step| match step {
                    Step::Monitor(MonitorStep::Delete { pool_id, .. }) => pool.id() == Some(pool_id.as_str()),
                    _ => false,
                }));
                before
            }
            Step::Pool(_) | Step::Member(_) | Step::Monitor(_) => Vec::new(),
            Step::FloatingIp(step) => self.of_floating_ip(step),
        };
        if let Some(Handle::New(name)) = step.handle() {
            needed.extend(self.making(name));
        }
        let is_child = !matches!(step, Step::LoadBalancer(_) | Step::FloatingIp(_));
        needed.extend(self.announcement.filter(|_| is_child && !self.keeps_up(step)));
        needed
    }

    /// Returns whether a step changes members of a pool in use, or closes a port.
    fn keeps_up(&self, step: &Step) -> bool {
        let pool_id = match step {
            Step::Member(step) => step.pool_id(),
            Step::Listener(ListenerStep::Delete { .. }) => return true,
            _ => None,
        };
        pool_id.is_some_and(|id| self.is_used(id))
    }

    fn has_listener(&self, key: ListenerKey) -> bool {
        let mut listeners = self.children.into_iter().flat_map(|children| &children.listeners);
        listeners.any(|listener| listener.ours && listener.key() == key)
    }

    fn are_all_taken_out(&self, pool_id: &str) -> bool {
        let mut pools = self.children.into_iter().flat_map(|children| &children.pools);
        let members = pools.find(|pool| pool.id == pool_id).map_or(0, |pool| pool.members.len());
        let taken_out = self.places(
            |step| matches!(step, Step::Member(MemberStep::Delete { pool_id: id, .. }) if id == pool_id),
        );
        taken_out.len() >= members
    }

    fn is_used(&self, pool_id: &str) -> bool {
        let mut pools = self.children.into_iter().flat_map(|children| &children.pools);
        pools.any(|pool| pool.id == pool_id && !pool.used_by.is_empty()) || self.left.contains(pool_id)
    }

    fn of_listener(&self, step: &ListenerStep) -> Vec<usize> {
        match step {
            ListenerStep::Create { listener, default_pool, .. } => {
                let mut needed = self.places(|step| is_deletion(step, listener.key()));
                needed.extend(default_pool.iter().flat_map(|pool| self.completing(pool)));
                needed
            }
            ListenerStep::SwapDefaultPool { pool, .. } => self.completing(pool),
            ListenerStep::Delete { id, key } => {
                self.places(|step| is_creation(step, *key) || self.says_what_was(step, id))
            }
            ListenerStep::Update { .. } => Vec::new(),
        }
    }

    /// Returns whether a step notes in a pool's tags what its listener was.
    fn says_what_was(&self, step: &Step, listener_id: &str) -> bool {
        let Step::Pool(PoolStep::Update { id, changes }) = step else { return false };
        let mut listeners = self.children.into_iter().flat_map(|children| &children.listeners);
        let pool = listeners
            .find(|listener| listener.id == listener_id)
            .and_then(|one| one.default_pool_id.as_ref());
        pool == Some(id) && changes.tags.iter().flatten().any(|tag| former::is_about_former(tag))
    }

    /// Returns the steps that complete a pool that no listener uses yet.
    fn completing(&self, pool: &Handle) -> Vec<usize> {
        if pool.id().is_some_and(|id| self.is_used(id)) {
            return Vec::new();
        }
        let mut needed = self.filling(pool);
        needed.extend(self.places(
            |step| matches!(step, Step::Monitor(MonitorStep::Create { pool: of, .. }) if of == pool),
        ));
        if let Handle::New(name) = pool {
            needed.extend(self.making(name));
        }
        needed
    }

    fn filling(&self, pool: &Handle) -> Vec<usize> {
        self.places(|step| match step {
            Step::Member(step) => {
                step.pool() == Some(pool) || pool.id().is_some() && step.pool_id() == pool.id()
            }
            _ => false,
        })
    }

    fn making(&self, name: &str) -> Vec<usize> {
        self.places(|step| match step {
            Step::Pool(PoolStep::Create { pool, .. }) => pool.name == name,
            _ => false,
        })
    }

    /// Returns the steps that remove the listeners from a pool.
    fn leaving(&self, pool_id: &str) -> Vec<usize> {
        let listeners = self.children.into_iter().flat_map(|children| &children.listeners);
        let users: BTreeSet<&str> = listeners
            .filter(|listener| listener.default_pool_id.as_deref() == Some(pool_id))
            .map(|listener| listener.id.as_str())
            .collect();
        self.places(|step| match step {
            Step::Listener(
                ListenerStep::SwapDefaultPool { listener_id: id, .. } | ListenerStep::Delete { id, .. },
            ) => users.contains(id.as_str()),
            _ => false,
        })
    }

    fn of_floating_ip(&self, step: &FloatingIpStep) -> Vec<usize> {
        let is_there = |id: &str| self.observed.floating_ips.iter().any(|one| one.id == *id);
        match step {
            // A floating IP that keeps serving may be tagged whatever was meant to replace it.
            FloatingIpStep::Tag { id, .. } if is_there(id) => self.places(|step| match step {
                Step::FloatingIp(FloatingIpStep::Attach { id: attached, .. }) => attached == id,
                _ => false,
            }),
            FloatingIpStep::Delete { id, .. } if is_there(id) => self.places(|step| match step {
                Step::FloatingIp(FloatingIpStep::Attach { id: attached, instead_of, .. }) => {
                    attached == id || instead_of.as_ref().is_some_and(|former| former.id == *id)
                }
                _ => false,
            }),
            _ => Vec::new(),
        }
    }
}

fn is_creation(step: &Step, key: ListenerKey) -> bool {
    matches!(step, Step::Listener(ListenerStep::Create { listener, .. }) if listener.key() == key)
}

fn is_deletion(step: &Step, of: ListenerKey) -> bool {
    matches!(step, Step::Listener(ListenerStep::Delete { key, .. }) if *key == of)
}

fn renames_child(step: &Step) -> bool {
    match step {
        Step::Listener(ListenerStep::Update { changes, .. }) => changes.name.is_some(),
        Step::Pool(PoolStep::Update { changes, .. }) => changes.name.is_some(),
        Step::Monitor(MonitorStep::Update { changes, .. }) => changes.name.is_some(),
        _ => false,
    }
}

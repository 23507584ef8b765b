//! What a step needs: it is left out with any of these. A step says so when it is added to the plan. Pure.
//!
//! | step | needs |
//! | --- | --- |
//! | a step on an object that another step creates | that step |
//! | any child of a load balancer that the Service joins | the tag that announces the Service |
//! | the rename of the load balancer | all renames of its children |
//! | a new health monitor | that members of its pool which are there are made for it, and that the one before it is gone |
//! | a listener with a new pool, a swap | all steps that complete the pool; of new members one, and those that are in the present pool |
//! | the deletion of a listener that changes its protocol | its successor and all that this needs, and the tags that describe the old listener |
//! | the deletion of a pool | the steps that remove its listeners |
//! | the deletion of the last member | the new ones |
//! | the tags of a floating IP, the deletion of the former one | the attachment |
//! | members of a pool in use, the closing of a port, and everything else | nothing |

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::draft::Draft;
use crate::load_balancer::objects::step::{
    FloatingIpStep, Handle, ListenerStep, LoadBalancerStep, MemberStep, MonitorStep, PoolStep, Step,
};
use crate::load_balancer::objects::{MemberKey, ObservedMember, ObservedPool};

impl Draft {
    /// Returns the places of such steps in the plan so far.
    pub(super) fn places(&self, is_it: impl Fn(&Step) -> bool) -> Vec<usize> {
        let steps = self.plan.steps.iter().enumerate();
        steps.filter(|(_, step)| is_it(step)).map(|(place, _)| place).collect()
    }

    /// Returns what a step needs whatever it is for, as far as it is in the plan already.
    pub(super) fn needed_by(&self, step: &Step) -> Vec<usize> {
        let mut needed = match step {
            Step::LoadBalancer(LoadBalancerStep::Create { .. }) => {
                self.places(|step| matches!(step, Step::LoadBalancer(LoadBalancerStep::Delete { .. })))
            }
            Step::LoadBalancer(LoadBalancerStep::Update { changes, .. }) if changes.name.is_some() => {
                self.places(renames_child)
            }
            // One that keeps serving may be tagged whatever was meant to replace it.
            Step::FloatingIp(FloatingIpStep::Tag { id, .. }) => self.places(|step| attaches(step, id, false)),
            Step::FloatingIp(FloatingIpStep::Delete { id, .. }) => {
                self.places(|step| attaches(step, id, true))
            }
            _ => Vec::new(),
        };
        if let Some(Handle::New(name)) = step.handle() {
            needed.extend(self.making(name));
        }
        needed.extend(self.announcement.filter(|_| !self.keeps_up(step)));
        needed
    }

    /// Returns whether a step is on no child, changes members of a pool in use, or closes a port.
    fn keeps_up(&self, step: &Step) -> bool {
        match step {
            Step::Member(step) => step.pool_id().is_some_and(|id| self.in_use.contains(id)),
            Step::LoadBalancer(_) | Step::FloatingIp(_) | Step::Listener(ListenerStep::Delete { .. }) => true,
            Step::Listener(_) | Step::Pool(_) | Step::Monitor(_) => false,
        }
    }

    fn making(&self, name: &str) -> Vec<usize> {
        self.places(|step| matches!(step, Step::Pool(PoolStep::Create { pool, .. }) if pool.name == name))
    }

    /// Returns the steps before which a pool's health monitor cannot be created: an HTTP check of the health check node port takes down
    /// members without `monitor_port`. `there` is the pool, if it exists.
    pub(super) fn before_monitor(&self, pool: &Handle, there: Option<&ObservedPool>) -> Vec<usize> {
        let mut before = self.filling(pool, there, None);
        before.extend(self.places(|step| match step {
            Step::Monitor(MonitorStep::Delete { pool_id, .. }) => pool.id() == Some(pool_id.as_str()),
            _ => false,
        }));
        before
    }

    /// Returns the steps that complete a pool that no listener uses yet, in place of the `present` one.
    pub(super) fn completing(
        &self,
        pool: &Handle,
        there: Option<&ObservedPool>,
        present: Option<&ObservedPool>,
    ) -> Vec<usize> {
        if pool.id().is_some_and(|id| self.in_use.contains(id)) {
            return Vec::new();
        }
        let mut needed = self.filling(pool, there, present);
        needed.extend(self.places(
            |step| matches!(step, Step::Monitor(MonitorStep::Create { pool: of, .. }) if of == pool),
        ));
        if let Handle::New(name) = pool {
            needed.extend(self.making(name));
        }
        needed
    }

    /// Returns the steps that change members of a pool. Of those that add members, some in place of the `present` pool's are needed,
    /// and all where no other one gives the pool a member.
    fn filling(
        &self,
        pool: &Handle,
        there: Option<&ObservedPool>,
        present: Option<&ObservedPool>,
    ) -> Vec<usize> {
        let members = |pool: Option<&ObservedPool>| -> Vec<MemberKey> {
            pool.into_iter().flat_map(|pool| &pool.members).map(ObservedMember::key).collect()
        };
        let there: BTreeSet<MemberKey> = members(there).into_iter().collect();
        let serving: BTreeSet<IpAddr> = members(present).into_iter().map(|member| member.address).collect();
        let is_of_pool = |step: &MemberStep| match step.pool() {
            Some(of) => of == pool,
            None => pool.id().is_some() && step.pool_id() == pool.id(),
        };
        let filling = self.places(|step| matches!(step, Step::Member(step) if is_of_pool(step)));
        let new = |place: &usize| -> Vec<MemberKey> {
            let Some(Step::Member(step)) = self.plan.steps.get(*place) else { return Vec::new() };
            step.members().iter().map(|member| member.key()).filter(|key| !there.contains(key)).collect()
        };
        let is_added =
            |place: &usize| !new(place).is_empty() && self.refusals.of(&self.plan.steps[*place]).is_none();
        let has_members = !there.is_empty() || filling.iter().any(is_added);
        let is_needed = |place: &usize| {
            let new = new(place);
            new.is_empty() || !has_members || new.iter().any(|member| serving.contains(&member.address))
        };
        filling.into_iter().filter(is_needed).collect()
    }
}

/// Returns whether a floating IP is attached, or another one instead of it.
fn attaches(step: &Step, floating_ip: &str, or_another: bool) -> bool {
    let Step::FloatingIp(FloatingIpStep::Attach { id, instead_of, .. }) = step else { return false };
    id == floating_ip || (or_another && instead_of.as_ref().is_some_and(|former| former.id == floating_ip))
}

fn renames_child(step: &Step) -> bool {
    match step {
        Step::Listener(ListenerStep::Update { changes, .. }) => changes.name.is_some(),
        Step::Pool(PoolStep::Update { changes, .. }) => changes.name.is_some(),
        Step::Monitor(MonitorStep::Update { changes, .. }) => changes.name.is_some(),
        _ => false,
    }
}

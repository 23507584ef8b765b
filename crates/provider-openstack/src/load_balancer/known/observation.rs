//! What exists, what of it was looked at, and which steps were accepted since.

use std::collections::BTreeSet;
use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::octavia::{LbAlgorithm, LoadBalancer};
use tokio::time::Instant;

use super::looks::{Done, Look, Looked};
use crate::load_balancer::known::advance::advance;
use crate::load_balancer::objects::digest::Agreement;
use crate::load_balancer::objects::step::{Answer, Applied, Step};
use crate::load_balancer::objects::{Children, Desired, Observed, ObservedLoadBalancer};
use crate::load_balancer::plan::Plan;
use crate::load_balancer::settings::Fault;

#[derive(Debug)]
pub(crate) struct Observation {
    observed: Observed,
    /// Project that owns the load balancer.
    project_id: Option<String>,
    /// `updated_at` of the load balancer, from an answer that precedes the reading of its children, or from the one that shows the end of the
    /// last accepted step. `None` until that end, and where the second that it names was not over when the children were read.
    updated_at: Option<String>,
    /// When everything was read, if that is known and nothing but members was changed since.
    agreed: Option<Instant>,
    looked: Looked,
    /// When the project's quota was asked that has room for another listener.
    room: Option<Moment>,
    /// Errors in the Service's settings that appeared while reading.
    faults: Vec<Fault>,
    /// Why the floating IPs could not be read.
    unread: Option<Failure>,
}

impl Observation {
    /// Creates the observation of what was read just now.
    pub(in crate::load_balancer) fn whole(
        observed: Observed,
        project_id: Option<String>,
        updated_at: Option<String>,
    ) -> Self {
        Self {
            observed,
            project_id,
            updated_at,
            agreed: None,
            looked: Looked::at_everything(),
            room: None,
            faults: Vec::new(),
            unread: None,
        }
    }

    /// Creates an observation of the last converged state, which has not been looked at since.
    pub(crate) fn known(observed: Observed, project_id: Option<String>) -> Self {
        Self {
            observed,
            project_id,
            updated_at: None,
            agreed: None,
            looked: Looked::default(),
            room: None,
            faults: Vec::new(),
            unread: None,
        }
    }

    pub(in crate::load_balancer) fn with_faults(self, faults: Vec<Fault>) -> Self {
        Self { faults, ..self }
    }

    /// Notes why the floating IPs could not be read; `None` if they were.
    pub(in crate::load_balancer) fn without(self, unread: Option<Failure>) -> Self {
        Self { unread, ..self }
    }

    /// Returns why the floating IPs could not be read, if so.
    pub(crate) fn unread(&self) -> Option<&Failure> {
        self.unread.as_ref()
    }

    pub(crate) fn seen(&self) -> &Observed {
        &self.observed
    }

    pub(in crate::load_balancer) fn load_balancer_mut(&mut self) -> Option<&mut ObservedLoadBalancer> {
        self.observed.load_balancer.as_mut()
    }

    pub(in crate::load_balancer) fn looked_mut(&mut self) -> &mut Looked {
        &mut self.looked
    }

    fn load_balancer(&self) -> Option<&ObservedLoadBalancer> {
        self.observed.load_balancer.as_ref()
    }

    fn children(&self) -> Option<&Children> {
        self.load_balancer()?.children.as_ref()
    }

    pub(crate) fn project_id(&self) -> Option<&str> {
        self.project_id.as_deref()
    }

    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Returns when the quota was asked that has room for another listener, if that was since everything was read.
    pub(crate) fn room(&self) -> Option<Moment> {
        self.room
    }

    /// Notes when the quota was asked that has room for another listener; `None` if it has none.
    pub(crate) fn note_room(&mut self, asked: Option<Moment>) {
        self.room = asked;
    }

    /// Notes the addresses of nodes that joined since the previous reconciliation.
    pub(crate) fn expect(&mut self, joined: &BTreeSet<IpAddr>) {
        self.looked.joined.extend(joined);
    }

    /// Notes that the answer that shows the load balancer was begun before this reconciliation.
    pub(in crate::load_balancer) fn is_from_before(&mut self) {
        self.looked.is_older = true;
    }

    /// Returns whether everything was read in this reconciliation, so that reading again would show nothing new.
    pub(crate) fn is_whole(&self) -> bool {
        self.looked.whole
    }

    /// Returns whether a step on this pool was accepted since the last look.
    pub(in crate::load_balancer) fn has_changed_pool(&self, pool_id: &str) -> bool {
        self.looked.since.iter().any(|done| done.pool() == Some(pool_id))
    }

    /// Returns whether a pool was deleted since the last look: only the list of pools shows that it is gone.
    pub(in crate::load_balancer) fn has_removed(&self) -> bool {
        self.looked.since.contains(&Done::Removal)
    }

    /// Returns whether members are known from the status tree only.
    pub(in crate::load_balancer) fn has_members_from_status(&self) -> bool {
        self.children().is_some_and(|children| children.pools.iter().any(|pool| pool.members_from_status))
    }

    /// Returns the look that the plan needs before it continues.
    pub(crate) fn look_before(&self, plan: &Plan) -> Option<Look> {
        let ownership = self.load_balancer().map(|there| there.ownership);
        self.looked.before(plan, ownership, self.children())
    }

    /// Pretends that pools have the algorithms that Octavia refused for them, since it would refuse them again.
    pub(crate) fn mask_rejected_algorithms(&mut self, refused: &[(String, LbAlgorithm)]) {
        let children = self.observed.load_balancer.as_mut().and_then(|there| there.children.as_mut());
        for pool in children.into_iter().flat_map(|children| &mut children.pools) {
            if let Some((_, algorithm)) = refused.iter().find(|(id, _)| *id == pool.id) {
                pool.attributes.lb_algorithm = algorithm.clone();
            }
        }
    }

    /// Returns whether Octavia shows the known owner of the load balancer: otherwise another client has written to it.
    pub(crate) fn belongs_as_shown(&self, shown: &LoadBalancer) -> bool {
        self.project_id == shown.project_id
            && self.load_balancer().is_some_and(|there| there.belongs_as_shown(shown))
    }

    /// Notes an answer that shows the load balancer as it was when everything was read and agreed, if it does.
    pub(in crate::load_balancer) fn is_as_agreed(&mut self, agreement: &Agreement, shown: LoadBalancer) {
        if agreement.is_unchanged(&shown.id, shown.updated_at.as_deref()) {
            self.agreed = Some(agreement.looked);
            self.updated_at = shown.updated_at;
        }
    }

    /// Notes that Octavia finished the work of our step, with this `updated_at`. After a renaming there is no previous name any more.
    pub(crate) fn lock_ended(&mut self, previous_name: Option<String>, updated_at: Option<String>) {
        self.updated_at = updated_at;
        if let Some(there) = &mut self.observed.load_balancer {
            there.previous_name = previous_name;
        }
    }

    /// Applies accepted steps. Returns whether the result is known.
    pub(crate) fn accepted(&mut self, steps: &[Step], applied: &Applied) -> bool {
        for (step, answer) in
            applied.accepted.iter().filter_map(|(place, answer)| Some((steps.get(*place)?, answer)))
        {
            self.updated_at = None;
            // The status tree confirms members, and nothing else that a step changes.
            self.agreed = self.agreed.filter(|_| matches!(step, Step::Member(_)));
            if advance(&mut self.observed, step, answer).is_none() {
                return false;
            }
            let made = match answer {
                Answer::Child(id) => Some(id.as_str()),
                Answer::LoadBalancer(made) => {
                    self.project_id.clone_from(&made.load_balancer.project_id);
                    None
                }
                Answer::Nothing => None,
            };
            self.looked.since.extend(Done::by(step, made));
        }
        self.observed.floating_ips.extend_from_slice(&applied.floating_ips);
        true
    }

    /// Ends the reconciliation and keeps the observation for the next one.
    pub(crate) fn rest(mut self) -> Self {
        self.looked.rest();
        self.faults.clear();
        self
    }

    /// Returns the digest of everything, if everything was read and no step followed, or if nothing but members was changed since the
    /// last digest.
    pub(crate) fn agreement(&self, desired: &Desired) -> Option<Agreement> {
        let there = self.load_balancer().filter(|_| self.unread.is_none())?;
        let looked = if self.looked.whole { Instant::now() } else { self.agreed? };
        Some(Agreement::new(desired, &there.id, self.updated_at.as_deref()?, looked))
    }

    /// Returns what is kept of a converged load balancer: all but the members, of which there may be thousands.
    pub(crate) fn into_known(self) -> (Observed, Option<String>) {
        let Self { mut observed, project_id, .. } = self;
        let children = observed.load_balancer.as_mut().and_then(|there| there.children.as_mut());
        if let Some(children) = children {
            children.pools.iter_mut().for_each(|pool| pool.members = Vec::new());
            children.listeners.shrink_to_fit();
            children.pools.shrink_to_fit();
        }
        (observed, project_id)
    }
}

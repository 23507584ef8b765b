//! What is there, what of it was looked at, and what was done since.

use std::collections::BTreeSet;
use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::octavia::{LbAlgorithm, LoadBalancer};
use tokio::time::Instant;

use super::looks::{Done, Look, Looked};
use crate::load_balancer::known::advance::advance;
use crate::load_balancer::objects::digest::{Agreement, Digest};
use crate::load_balancer::objects::step::Step;
use crate::load_balancer::objects::step::{Answer, Applied};
use crate::load_balancer::objects::{Children, Desired, Observed, ObservedLoadBalancer};
use crate::load_balancer::plan::Plan;
use crate::load_balancer::settings::Fault;

#[derive(Debug)]
pub(crate) struct Observation {
    observed: Observed,
    /// Owner of the load balancer.
    project_id: Option<String>,
    /// `updated_at` of the load balancer in an answer from before its children were read. Absent once anything was done, and where the
    /// second that it names was not over then.
    updated_at: Option<String>,
    looked: Looked,
    /// What showed to be wrong with the Service's wishes on the way.
    faults: Vec<Fault>,
    /// Why the floating IPs could not be read.
    unread: Option<Failure>,
}

impl Observation {
    /// What was read just now.
    pub(in crate::load_balancer) fn whole(
        observed: Observed,
        project_id: Option<String>,
        updated_at: Option<String>,
    ) -> Self {
        Self {
            observed,
            project_id,
            updated_at,
            looked: Looked::at_everything(),
            faults: Vec::new(),
            unread: None,
        }
    }

    /// What was there when all was well. Nobody has looked since.
    pub(crate) fn known(observed: Observed, project_id: Option<String>) -> Self {
        Self {
            observed,
            project_id,
            updated_at: None,
            looked: Looked::default(),
            faults: Vec::new(),
            unread: None,
        }
    }

    pub(in crate::load_balancer) fn with_faults(self, faults: Vec<Fault>) -> Self {
        Self { faults, ..self }
    }

    /// Without the floating IPs, where these could not be read.
    pub(in crate::load_balancer) fn without(self, unread: Option<Failure>) -> Self {
        Self { unread, ..self }
    }

    /// Why the floating IPs are not known, if they are not.
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

    /// Nodes with these addresses have joined since the reconciliation before.
    pub(crate) fn expect(&mut self, joined: &BTreeSet<IpAddr>) {
        self.looked.joined.extend(joined);
    }

    /// The answer that shows the load balancer was begun before this reconciliation.
    pub(in crate::load_balancer) fn is_from_before(&mut self) {
        self.looked.is_older = true;
    }

    /// Whether everything was read in this reconciliation, so that reading again would show nothing else.
    pub(crate) fn is_whole(&self) -> bool {
        self.looked.whole
    }

    /// Whether a step was made on a pool since somebody looked.
    pub(in crate::load_balancer) fn has_changed_pool(&self, pool_id: &str) -> bool {
        self.looked.since.iter().any(|done| done.pool() == Some(pool_id))
    }

    /// Whether a pool was deleted since somebody looked: only the list of pools shows that it is gone.
    pub(in crate::load_balancer) fn has_removed(&self) -> bool {
        self.looked.since.contains(&Done::Removal)
    }

    /// The look that the plan needs before it goes on.
    pub(crate) fn look_before(&self, plan: &Plan) -> Option<Look> {
        let ownership = self.load_balancer().map(|there| there.ownership);
        self.looked.before(plan, ownership, self.children())
    }

    /// Pools that Octavia refused an algorithm for pass for having it: it would be refused again.
    pub(crate) fn mask_rejected_algorithms(&mut self, refused: &[(String, LbAlgorithm)]) {
        let children = self.observed.load_balancer.as_mut().and_then(|there| there.children.as_mut());
        for pool in children.into_iter().flat_map(|children| &mut children.pools) {
            if let Some((_, algorithm)) = refused.iter().find(|(id, _)| *id == pool.id) {
                pool.attributes.lb_algorithm = algorithm.clone();
            }
        }
    }

    /// Whether Octavia shows the load balancer with the owner that is known: otherwise somebody else has written to it.
    pub(crate) fn belongs_as_shown(&self, shown: &LoadBalancer) -> bool {
        self.project_id == shown.project_id
            && self.load_balancer().is_some_and(|there| there.belongs_as_shown(shown))
    }

    /// Octavia has ended the work that a step of ours began. A load balancer that was renamed has no previous name any more.
    pub(crate) fn lock_ended(&mut self, previous_name: Option<String>) {
        if let Some(there) = &mut self.observed.load_balancer {
            there.previous_name = previous_name;
        }
    }

    /// Steps were accepted. Returns whether it is still known what is there.
    pub(crate) fn accepted(&mut self, steps: &[Step], applied: &Applied) -> bool {
        self.updated_at = self.updated_at.take().filter(|_| applied.accepted.is_empty());
        for (step, answer) in
            applied.accepted.iter().filter_map(|(place, answer)| Some((steps.get(*place)?, answer)))
        {
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

    /// The reconciliation ends, and the next one goes on.
    pub(crate) fn rest(mut self) -> Self {
        self.looked.rest();
        self.faults.clear();
        self
    }

    /// What stands for all of it while nothing changes: of a whole look after which nothing was done.
    pub(crate) fn agreement(&self, desired: &Desired) -> Option<Agreement> {
        let there = self.load_balancer().filter(|_| self.looked.whole && self.unread.is_none())?;
        let digest = Digest::of_tree(&there.id, self.updated_at.as_deref()?, desired);
        Some(Agreement { digest, looked: Instant::now() })
    }

    /// What is kept when all is well: everything but the members, of which there may be thousands.
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

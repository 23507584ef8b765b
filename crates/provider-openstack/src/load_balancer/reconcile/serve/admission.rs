//! Decides when a load balancer may be created: Octavia gets a limited number at once.

use openstack_ccm_core::provider::Outcome;

use super::Serving;
use crate::load_balancer::identity::outputs;
use crate::load_balancer::objects::step::{LoadBalancerStep, Step};
use crate::load_balancer::plan::Plan;

impl Serving<'_> {
    /// Returns what to wait for before anything is read, if there is almost certainly no load balancer yet. A Service with faults
    /// does not wait, since its user should learn of the refusal at once.
    pub(super) fn wait_for_admission(&self) -> Option<Outcome> {
        let was_served = outputs::was_served(self.service) || !self.service.published.is_empty();
        let is_new =
            !was_served && self.settings.load_balancer_id.is_none() && self.faults.failure().is_none();
        if is_new { self.ask_for_admission() } else { None }
    }

    /// Returns what to wait for before this plan, if it creates a load balancer.
    pub(super) fn wait_for_admission_of(&self, plan: &Plan) -> Option<Outcome> {
        if creates(plan) { self.ask_for_admission() } else { None }
    }

    fn ask_for_admission(&self) -> Option<Outcome> {
        self.reconciler.creations().ask(&self.service.key).err().map(Outcome::Waiting)
    }

    /// Notes that Octavia accepted a creation.
    pub(super) fn note_creation(&self, plan: &Plan) {
        if creates(plan) {
            self.reconciler.creations().sent(&self.service.key);
        }
    }
}

/// Returns whether the plan creates a load balancer.
pub(super) fn creates(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step, Step::LoadBalancer(LoadBalancerStep::Create { .. })))
}

//! Handles the cloud's refusal to create the load balancer of a Service.

use openstack_ccm_core::failure::{Failure, FailureClass};

use super::Serving;
use crate::load_balancer::objects::step::{LoadBalancerStep, Step};
use crate::load_balancer::objects::{Facts, Vip};
use crate::load_balancer::plan::Plan;
use crate::load_balancer::report::Report;
use crate::load_balancer::resolve::Refusal;
use crate::load_balancer::state::attempts::PreviousVips;

/// This many faults of Octavia itself are no coincidence: the cloud may have no other way to refuse an address.
const MAX_ADDRESS_FAULTS: u32 = 2;

impl Serving<'_> {
    /// Explains the failure, withdraws published addresses that belong to others, and stops asking for the previous address if it
    /// is not available: another address is better than none. An exhausted quota says nothing about the address.
    pub(super) async fn not_created(
        &self,
        plan: &Plan,
        facts: &Facts,
        failure: Failure,
        not_implemented: Option<&str>,
        report: &mut Report,
    ) -> Failure {
        let resolver = &self.reconciler.resolver;
        let not_implemented = not_implemented.filter(|_| self.settings.provider.is_none());
        if let Some(words) = not_implemented
            && resolver.learn_default_provider(words).await
        {
            // The next creation will use what this provider supports.
            return Failure::new(FailureClass::Busy, failure.message);
        }
        let Refusal { failure, taken } = resolver.explain_refusal(failure, vip(plan)).await;
        report.withdraw(self.service, taken);
        if !facts.asks_for_previous() {
            return failure;
        }
        let refused = failure.class == FailureClass::UserInput;
        let mut record = self.record();
        if refused || record.attempts.creation_faults >= MAX_ADDRESS_FAULTS {
            record.attempts.replaced(PreviousVips::Lost);
        }
        if refused { Failure::new(FailureClass::Busy, failure.message) } else { failure }
    }
}

/// Returns the VIP of the load balancer that was to be created.
fn vip(plan: &Plan) -> Option<&Vip> {
    plan.steps.iter().find_map(|step| match step {
        Step::LoadBalancer(LoadBalancerStep::Create { load_balancer, .. }) => Some(&load_balancer.vip),
        _ => None,
    })
}

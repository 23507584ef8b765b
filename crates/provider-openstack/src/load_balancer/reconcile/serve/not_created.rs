//! A Service without a load balancer, after the cloud has refused to make one.

use openstack_ccm_core::failure::{Failure, FailureClass};

use super::Serving;
use crate::load_balancer::objects::step::{LoadBalancerStep, Step};
use crate::load_balancer::objects::{Facts, Vip};
use crate::load_balancer::plan::Plan;
use crate::load_balancer::report::Report;
use crate::load_balancer::resolve::Refusal;
use crate::load_balancer::state::attempts::PreviousVips;

/// So many faults of the service itself are one too many for chance: the cloud may have no words for its refusal of an
/// address.
const MAX_ADDRESS_FAULTS: u32 = 2;

impl Serving<'_> {
    /// Explains the failure, takes back addresses that are somebody else's, and asks for the Service's previous one no more where
    /// it is not to be had: better another one than none. A used-up quota says nothing against the address.
    pub(super) async fn not_created(
        &self,
        plan: &Plan,
        facts: &Facts,
        failure: Failure,
        not_implemented: Option<&str>,
        report: &mut Report,
    ) -> Failure {
        let (records, key) = (&self.reconciler.records, &self.service.key);
        let resolver = &self.reconciler.resolver;
        let not_implemented = not_implemented.filter(|_| self.settings.provider.is_none());
        if let Some(words) = not_implemented
            && resolver.learn_default_provider(words).await
        {
            // The next one is made as this provider can make it.
            return Failure::new(FailureClass::Busy, failure.message);
        }
        let Refusal { failure, taken } = resolver.explain_refusal(failure, vip(plan)).await;
        report.withdraw(self.service, taken);
        if !facts.asks_for_previous() {
            return failure;
        }
        let refused = failure.class == FailureClass::UserInput;
        if refused || records.attempts(key).creation_faults >= MAX_ADDRESS_FAULTS {
            records.replaced(key, PreviousVips::Lost);
        }
        if refused { Failure::new(FailureClass::Busy, failure.message) } else { failure }
    }
}

/// Where the load balancer was to be.
fn vip(plan: &Plan) -> Option<&Vip> {
    plan.steps.iter().find_map(|step| match step {
        Step::LoadBalancer(LoadBalancerStep::Create { load_balancer, .. }) => Some(&load_balancer.vip),
        _ => None,
    })
}

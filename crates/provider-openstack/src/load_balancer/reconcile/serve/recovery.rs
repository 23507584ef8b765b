//! Collects what decides about a Service's load balancer in ERROR, and notes what becomes of it.

use openstack_ccm_core::failure::FailureClass;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::Serving;
use super::admission::creates;
use super::apply::replaces;
use crate::config::ErrorRecovery;
use crate::load_balancer::annotations::{CONVERGED_DIGEST, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID};
use crate::load_balancer::objects::observed::{Observed, ObservedLoadBalancer};
use crate::load_balancer::objects::recovery::Recovery;
use crate::load_balancer::objects::step::Next;
use crate::load_balancer::plan::Plan;
use crate::load_balancer::plan::recovery::was_never_built;
use crate::load_balancer::settings::ReleaseSettings;

impl Serving<'_> {
    /// Returns what decides about a load balancer in ERROR.
    pub(super) fn recovery(&self, observed: &Observed) -> Recovery {
        let Some(broken) = broken(observed) else { return Recovery::default() };
        let recovery = self.recovery_in_turn(broken);
        let no_replacement = match self.takes_turn(&recovery, broken) {
            true => self.reconciler.replacements.obstacle(&self.service.key),
            false => None,
        };
        Recovery { no_replacement, ..recovery }
    }

    /// Returns the same, assuming that the Service may replace its load balancer now.
    fn recovery_in_turn(&self, broken: &ObservedLoadBalancer) -> Recovery {
        let reconciler = self.reconciler;
        let (release, _) = ReleaseSettings::read(self.service, &reconciler.config);
        Recovery {
            choice: reconciler.config.load_balancer.error_recovery,
            retained: release.retain,
            was_ready: self.was_ready(&broken.id),
            was_published: !self.service.published.is_empty(),
            failover: self.record().attempts.failover(&broken.id),
            no_replacement: None,
        }
    }

    /// Returns whether such load balancers are replaced one at a time. One that was never built serves no client, so it need not
    /// wait.
    fn takes_turn(&self, recovery: &Recovery, broken: &ObservedLoadBalancer) -> bool {
        recovery.choice == ErrorRecovery::Replace && !was_never_built(recovery, broken)
    }

    /// Notes a load balancer that was never built: others are not replaced while the same may happen to them.
    pub(super) fn note_failed_creation(&self, observed: &Observed) {
        let is_unbuilt = |broken| was_never_built(&self.recovery_in_turn(broken), broken);
        if broken(observed).is_some_and(is_unbuilt) {
            self.reconciler.replacements.creation_failed(&self.service.key);
        }
    }

    /// Begins the replacement that a plan contains; it ends with [`Serving::note_replacement`]. Returns whether it may begin:
    /// another Service's replacement may have begun since the plan was made.
    pub(super) fn begin_replacement(&self, plan: &Plan, observed: &Observed) -> bool {
        let Some(broken) = broken(observed).filter(|_| replaces(plan)) else { return true };
        !self.takes_turn(&self.recovery_in_turn(broken), broken)
            || self.reconciler.replacements.begin(&self.service.key)
    }

    /// Returns whether the Service records that this load balancer was ready. This controller and OCCM write its address only then,
    /// and remove it together with the id; earlier versions of this controller also wrote a digest. Without an id, any load
    /// balancer may be meant.
    fn was_ready(&self, id: &str) -> bool {
        let annotations = &self.service.annotations;
        let another = annotations.get(LOAD_BALANCER_ID.key).is_some_and(|named| named != id);
        let ready =
            [LOAD_BALANCER_ADDRESS, CONVERGED_DIGEST].iter().any(|one| annotations.contains_key(one.key));
        ready && !another
    }

    /// Notes the effect of a plan on a load balancer that is replaced or created.
    pub(super) fn note_replacement(
        &self,
        plan: &Plan,
        load_balancer: Option<&ObservedLoadBalancer>,
        next: &Next,
    ) {
        let (replacements, key) = (&self.reconciler.replacements, &self.service.key);
        if load_balancer.is_none() && creates(plan) {
            match next {
                // The Service's own wishes are wrong: other Services are not affected.
                Next::Retry(failure)
                    if matches!(failure.class, FailureClass::UserInput | FailureClass::Busy) => {}
                Next::Retry(_) => replacements.creation_failed(key),
                Next::Done { .. } | Next::Wait(_) | Next::Without(_) => replacements.creating(key),
            }
        }
        match load_balancer.map(|load_balancer| &load_balancer.status) {
            Some(ProvisioningStatus::Active) => replacements.is_active(key),
            Some(ProvisioningStatus::Error) if !replaces(plan) => replacements.give_back(key),
            _ => {}
        }
    }
}

fn broken(observed: &Observed) -> Option<&ObservedLoadBalancer> {
    observed.load_balancer.as_ref().filter(|there| there.status == ProvisioningStatus::Error)
}

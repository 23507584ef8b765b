//! What is known for the case that the load balancer of a Service is in ERROR, and what is noted of it.

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::Serving;
use super::admission::creates;
use super::apply::replaces;
use crate::config::ErrorRecovery;
use crate::load_balancer::annotations::{CONVERGED_DIGEST, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID};
use crate::load_balancer::objects::observed::{Observed, ObservedLoadBalancer};
use crate::load_balancer::objects::recovery::Recovery;
use crate::load_balancer::plan::Plan;
use crate::load_balancer::plan::recovery::was_never_built;
use crate::load_balancer::reconcile::carry_out::Progress;
use crate::load_balancer::settings::ReleaseSettings;

impl Serving<'_> {
    /// What decides about a load balancer in ERROR. No other one is replaced from here on, until
    /// [`Serving::note_replacement`].
    pub(super) fn recovery(&self, observed: &Observed) -> Recovery {
        let broken = observed.load_balancer.as_ref();
        let Some(broken) = broken.filter(|broken| broken.status == ProvisioningStatus::Error) else {
            return Recovery::default();
        };
        let (reconciler, key) = (self.reconciler, &self.service.key);
        let (release, _) = ReleaseSettings::read(self.service, &reconciler.config);
        let choice = reconciler.config.load_balancer.error_recovery;
        let recovery = Recovery {
            choice,
            retained: release.retain,
            was_ready: self.was_ready(&broken.id),
            was_published: !self.service.published.is_empty(),
            failover: reconciler.records.attempts(key).failover(&broken.id),
            no_replacement: None,
        };
        if was_never_built(&recovery, broken) {
            reconciler.replacements.creation_failed(key);
            return recovery;
        }
        let no_replacement = match choice {
            ErrorRecovery::Replace => reconciler.replacements.begin(key).err(),
            ErrorRecovery::Report | ErrorRecovery::Failover => None,
        };
        Recovery { no_replacement, ..recovery }
    }

    /// Lets others be replaced: this one is not after all.
    pub(super) fn give_back(&self, observed: &Observed) {
        let status = observed.load_balancer.as_ref().map(|broken| &broken.status);
        if status == Some(&ProvisioningStatus::Error) {
            self.reconciler.replacements.give_back(&self.service.key);
        }
    }

    /// Whether the Service says that this load balancer was ready once. Both programs write its address only then, and it
    /// is removed together with the id; earlier versions of this program wrote a digest, too. Without the id it may be that of any.
    fn was_ready(&self, id: &str) -> bool {
        let annotations = &self.service.annotations;
        let another = annotations.get(LOAD_BALANCER_ID.key).is_some_and(|named| named != id);
        let ready =
            [LOAD_BALANCER_ADDRESS, CONVERGED_DIGEST].iter().any(|one| annotations.contains_key(one.key));
        ready && !another
    }

    /// Notes what a plan does about a load balancer that was to be replaced, or is created.
    pub(super) fn note_replacement(
        &self,
        plan: &Plan,
        load_balancer: Option<&ObservedLoadBalancer>,
        next: &Result<Progress, Failure>,
    ) {
        let (replacements, key) = (&self.reconciler.replacements, &self.service.key);
        if load_balancer.is_none() && creates(plan) {
            match next {
                Ok(_) => replacements.creating(key),
                // What the Service itself asks for is wrong: others are not affected.
                Err(failure) if matches!(failure.class, FailureClass::UserInput | FailureClass::Busy) => {}
                Err(_) => replacements.creation_failed(key),
            }
        }
        match load_balancer.map(|load_balancer| &load_balancer.status) {
            Some(ProvisioningStatus::Active) => replacements.is_active(key),
            Some(ProvisioningStatus::Error) if !replaces(plan) => replacements.give_back(key),
            _ => {}
        }
    }
}

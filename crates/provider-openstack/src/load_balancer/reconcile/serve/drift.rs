//! The drift check of a Service that has not changed.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::{Outcome, Ready};

use super::Serving;
use super::keep::{Kept, converged};
use super::wanted::Wanted;
use crate::load_balancer::known::Observation;
use crate::load_balancer::objects::digest::Agreement;
use crate::load_balancer::report::Report;
use crate::load_balancer::state::record::{Cached, Converged};

impl Serving<'_> {
    /// Returns the result for an unchanged Service if a drift check is due, and lists show that nothing changed since everything
    /// was read. Otherwise returns the known state.
    pub(super) async fn unchanged(
        &self,
        known: Cached,
        report: &mut Report,
    ) -> Result<Result<Ready, Cached>, Failure> {
        if !self.beginning.drift_due {
            return Ok(Err(known));
        }
        let Cached::Converged(known) = known else { return Ok(Err(Cached::Nothing)) };
        let Converged { observed, project_id, address, agreement: Some(agreement), warnings } = *known else {
            return Ok(Err(Cached::Nothing));
        };
        if !self.reconciler.records.stands(&self.service.key, &agreement) {
            return Ok(Err(Cached::Nothing));
        }
        let observation = Observation::known(observed, project_id);
        if !observation.seen().load_balancer.as_ref().is_some_and(|there| self.may_go_on(there)) {
            return Ok(Err(Cached::Nothing));
        }
        let wanted = match self.as_agreed(&observation, &agreement, report).await {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return Ok(Err(Cached::Nothing)),
            Err(failure) => {
                let known = converged(observation, address, Some(agreement), warnings);
                self.keep_after_overload(&failure, known);
                return Err(failure);
            }
        };
        let load_balancer = observation.seen().load_balancer.clone();
        if let Some(there) = &load_balancer {
            self.name_again(&there.id, there.ownership, report);
        }
        let serving = self.with(&wanted.settings);
        let mut ready = serving.ready(false, address, load_balancer.as_ref(), &wanted.facts, report)?;
        serving.converge_group(&wanted.facts, &mut ready, report).await;
        report.notices(warnings.iter().cloned());
        let kept = Kept { known: Some(observation), locked: false, address, warnings };
        let outcome = Ok(Outcome::Ready(ready.clone()));
        self.keep(&outcome, kept, Some(agreement).filter(|_| ready.unfinished.is_none()));
        Ok(Ok(ready))
    }

    /// Returns what the Service wants, if lists show that nothing changed since it last converged.
    async fn as_agreed(
        &self,
        observation: &Observation,
        agreement: &Agreement,
        report: &mut Report,
    ) -> Result<Option<Wanted>, Failure> {
        let wanted = self.want(observation, &[], report).await?;
        let is_unchanged = wanted.faults.failure().is_none()
            && agreement.wants(&wanted.desired)
            && self.observing().is_unchanged(observation, agreement).await?;
        Ok(is_unchanged.then_some(wanted))
    }
}

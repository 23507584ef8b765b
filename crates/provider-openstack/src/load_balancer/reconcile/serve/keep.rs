//! Keeps what is known for the next reconciliation.

use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::Outcome;

use super::{Serving, is_held};
use crate::load_balancer::known::Observation;
use crate::load_balancer::objects::Observed;
use crate::load_balancer::objects::digest::Agreement;
use crate::load_balancer::settings::Exposure;
use crate::load_balancer::state::record::{Cached, Converged};

/// What a reconciliation keeps.
pub(super) struct Kept {
    /// The observation after the accepted steps, if still known.
    pub(super) known: Option<Observation>,
    /// Whether a step of ours holds the lock of the load balancer.
    pub(super) locked: bool,
    /// Address of the Service, if it converged.
    pub(super) address: Option<IpAddr>,
    /// Warnings of the plan.
    pub(super) warnings: Vec<Notice>,
}

impl Serving<'_> {
    /// Keeps the known state after a read that an overloaded cloud refused: the refusal proves nothing, and reading everything
    /// instead would take several more calls.
    pub(super) fn keep_after_overload(&self, failure: &Failure, known: Cached) {
        if !failure.is_overload {
            return;
        }
        if matches!(known, Cached::Converged(_)) {
            self.beginning.postpone();
        }
        self.record().known = known;
    }

    /// Keeps the known state for the next reconciliation.
    pub(super) fn keep(&self, outcome: &Result<Outcome, Failure>, kept: Kept, agreement: Option<Agreement>) {
        let mut record = self.record();
        let Kept { known, locked, address, warnings } = kept;
        if matches!(outcome, Ok(Outcome::Ready(_))) && self.settings.exposure == Exposure::Internal {
            record.was_external = false;
        }
        let there = known.as_ref().and_then(|known| known.seen().load_balancer.as_ref());
        if let Some(there) = there {
            record.load_balancer = Some((there.id.clone(), there.ownership));
        }
        record.known = match (outcome, known) {
            (_, None) => Cached::Nothing,
            (Ok(Outcome::Ready(ready)), Some(_)) if is_held(ready) => Cached::Nothing,
            // The observation lacks floating IPs that could not be read, so the next reconciliation reads everything.
            (Ok(Outcome::Ready(_)) | Err(_), Some(known)) if known.unread().is_some() => Cached::Nothing,
            (Ok(Outcome::Ready(_)), Some(known)) => {
                record.converged();
                converged(known, address, agreement, warnings)
            }
            // Another client is changing the load balancer: everything is read after that.
            (Ok(Outcome::Waiting(_)), Some(_)) if !locked => Cached::ChangedByOthers,
            (Ok(Outcome::Waiting(_) | Outcome::Released) | Err(_), Some(known)) => {
                Cached::PlanInProgress { observation: Box::new(known.rest()), locked }
            }
        };
    }
}

/// Returns a plan in progress that no step of ours has locked. An incomplete observation is not cached.
pub(super) fn under_way(observation: Observation) -> Cached {
    if observation.unread().is_some() {
        return Cached::Nothing;
    }
    Cached::PlanInProgress { observation: Box::new(observation.rest()), locked: false }
}

pub(super) fn converged(
    known: Observation,
    address: Option<IpAddr>,
    agreement: Option<Agreement>,
    warnings: Vec<Notice>,
) -> Cached {
    let (observed, project_id): (Observed, Option<String>) = known.into_known();
    Cached::Converged(Box::new(Converged { observed, project_id, address, agreement, warnings }))
}

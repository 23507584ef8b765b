//! What is remembered of attempts to change a load balancer. All of it may be lost: a restart only tries sooner again.

use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_openstack_api::octavia::LbAlgorithm;
use tokio::time::Instant;

use super::event::{Event, PreviousVips};
use crate::load_balancer::apply::Applied;
use crate::load_balancer::model::recovery::Failover;

/// Pause after the first repair, and the longest one; it doubles in between.
const REPAIR_PAUSES: Backoff = Backoff::doubling(Duration::from_secs(10), Duration::from_secs(600));

/// What was tried since the Service looks as it does, or since all was well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    repairs: u32,
    no_repair_before: Option<Instant>,
    /// Since when Octavia has been at work.
    pub(crate) waiting_since: Option<Instant>,
    /// The VIPs of a load balancer that broke and was deleted.
    pub(crate) previous_vips: PreviousVips,
    /// Algorithms that Octavia refused, each with the id of its pool.
    pub(crate) refused_algorithms: Vec<(String, LbAlgorithm)>,
    /// What became of the last request to fail a load balancer over, with its id.
    failover: Option<(String, Failover)>,
}

impl Attempts {
    /// What is remembered after an event. Pure.
    #[must_use]
    pub(super) fn after(mut self, event: &Event<'_>, now: Instant) -> Self {
        match event {
            // A change of the Service may mend what failed, so that it is tried at once.
            Event::ServiceChanged => {
                let Self { waiting_since, previous_vips, failover, .. } = self;
                Self { waiting_since, previous_vips, failover, ..Self::default() }
            }
            // The algorithms would be refused again.
            Event::Converged { .. } => {
                Self { refused_algorithms: self.refused_algorithms, ..Self::default() }
            }
            Event::Applied { applied, repairs, .. } => self.after_steps(applied, *repairs, now),
            Event::Waits => {
                self.waiting_since.get_or_insert(now);
                self
            }
            Event::Replaced(vips) => Self { previous_vips: vips.clone(), ..self },
            Event::FirstSeen
            | Event::DriftDue
            | Event::ListsAgree
            | Event::LockEnded(_)
            | Event::Failed
            | Event::Held
            | Event::ChangedByOthers
            | Event::Moved => self,
        }
    }

    fn after_steps(mut self, applied: &Applied, repairs: bool, now: Instant) -> Self {
        self.refused_algorithms.extend_from_slice(&applied.refused_algorithms);
        if applied.failover.is_some() {
            self.failover.clone_from(&applied.failover);
        }
        if applied.locked.is_some() {
            self.waiting_since = Some(now);
        }
        if repairs && applied.changed {
            self.no_repair_before = Some(now + REPAIR_PAUSES.delay(self.repairs));
            self.repairs = self.repairs.saturating_add(1);
        }
        self
    }

    /// How long something that failed inside Octavia has to rest before it is sent again.
    pub(crate) fn repair_pause(&self, now: Instant) -> Option<Duration> {
        let left = self.no_repair_before?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// What became of the request to fail this load balancer over, since all was well the last time.
    pub(crate) fn failover(&self, load_balancer_id: &str) -> Failover {
        let asked = self.failover.as_ref().filter(|(id, _)| id == load_balancer_id);
        asked.map(|(_, answer)| answer.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_repair_waits_longer_until_the_service_changes() {
        let applied = Applied { changed: true, ..Applied::default() };
        let repair = Event::Applied { applied: &applied, served: None, repairs: true };
        let mut now = Instant::now();
        let mut attempts = Attempts::default();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert_eq!(attempts.repair_pause(now), None);
            attempts = attempts.after(&repair, now);
            let pause = attempts.repair_pause(now).expect("a pause");
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600]);
        attempts = attempts.after(&Event::ServiceChanged, now).after(&repair, now);
        assert_eq!(attempts.repair_pause(now), Some(Duration::from_secs(10)));
    }
}

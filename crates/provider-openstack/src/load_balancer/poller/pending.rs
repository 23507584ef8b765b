//! One load balancer that is watched, and when something is due for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;

use super::operation::Afterwards;
use super::schedule::PollSchedule;

/// For how long what a round saw stands for the present: until the reconciliation that it woke has begun.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(10);
/// So much later the end of what nobody waits for is looked for: lists that others need mostly show it before.
const PATIENCE: Duration = Duration::from_secs(5);
/// So much later one list is asked for that tells several Services whether they may send their next step: it mostly shows more ends.
const PATIENCE_OF_SEVERAL: Duration = Duration::from_millis(1500);

/// One load balancer that somebody waits for.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) services: BTreeSet<ServiceKey>,
    pub(super) project_id: Option<String>,
    pub(super) name: Option<String>,
    /// When it was last registered: an answer to a question asked before that tells nothing.
    pub(super) since: Instant,
    pub(super) schedule: PollSchedule,
    pub(super) afterwards: Afterwards,
    /// Whether the poll that sees its end tells how long Octavia took.
    pub(super) measures: bool,
    /// Since when Octavia counts as done with it, so that the next step is sent.
    pub(super) presumed: Option<Instant>,
}

impl Pending {
    /// When something is due for it.
    pub(super) fn next(&self, among: WatchCounts) -> Instant {
        match (self.presumed, self.presumable_from(among)) {
            (Some(presumed), _) => presumed + GOOD_FOR,
            (None, Some(end)) => end,
            (None, None) => self.schedule.next(among.watched) + self.patience(among),
        }
    }

    /// From when on Octavia counts as done with it. Not where others wait: one list for all costs no more than one refused step.
    pub(super) fn presumable_from(&self, among: WatchCounts) -> Option<Instant> {
        self.schedule.likely_end().filter(|_| self.afterwards == Afterwards::Write && among.waiting == 1)
    }

    /// The shortest time between two polls that is worth a call for it.
    pub(super) fn pause(&self, among: WatchCounts) -> Duration {
        self.schedule.pause(among.watched) + self.patience(among)
    }

    fn patience(&self, among: WatchCounts) -> Duration {
        match self.afterwards {
            Afterwards::Nothing => PATIENCE,
            Afterwards::Write if among.waiting > 1 => PATIENCE_OF_SEVERAL,
            Afterwards::Write | Afterwards::Look => Duration::ZERO,
        }
    }

    /// When Octavia was done with it, as far as a list tells that was asked for at `asked`. The first poll comes later by what is waited for
    /// the ends of others, which is not Octavia's time. Absent where the list comes too late to tell.
    pub(super) fn measured_end(&self, asked: Instant, among: WatchCounts) -> Option<Instant> {
        let waited = if self.schedule.was_found_pending() { Duration::ZERO } else { self.patience(among) };
        asked.checked_sub(waited).filter(|_| self.measures)
    }

    /// Whether somebody is held up until its end is seen.
    pub(super) fn keeps_waiting(&self) -> bool {
        self.presumed.is_none() && self.afterwards != Afterwards::Nothing
    }
}

/// How many load balancers are watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchCounts {
    pub(super) watched: usize,
    /// For how many of them somebody waits.
    pub(super) waiting: usize,
}

impl WatchCounts {
    pub(super) fn of(pending: &BTreeMap<String, Pending>) -> Self {
        Self {
            watched: pending.len(),
            waiting: pending.values().filter(|entry| entry.keeps_waiting()).count(),
        }
    }
}

//! What is remembered of attempts to change a load balancer. All of it may be lost: a restart only tries sooner again. What takes down
//! something that serves is noted in the cloud besides.

mod refusals;
mod stall;

use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_openstack_api::ErrorKind;
use openstack_ccm_openstack_api::octavia::LbAlgorithm;
use tokio::time::Instant;

use refusals::RefusalRecord;
pub(crate) use stall::Stall;

use crate::load_balancer::objects::Observed;
use crate::load_balancer::objects::recovery::Failover;
use crate::load_balancer::objects::step::Applied;
use crate::load_balancer::objects::step::Step;
use crate::load_balancer::plan::Refused;

/// Pause after the first repair, and the longest one; it doubles in between.
const REPAIR_PAUSES: Backoff = Backoff::doubling(Duration::from_secs(10), Duration::from_secs(600));

/// For so long a load balancer whose creation Octavia accepted counts as created although Octavia does not show it; it doubles
/// with each one that is never seen. A replica of its database that lags shows it late, and two would take an address each.
const CREATION_COUNTS_FOR: Backoff = Backoff::doubling(Duration::from_secs(600), Duration::from_secs(3600));

/// The VIPs of a load balancer that broke and was deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PreviousVips {
    /// Nothing is known.
    #[default]
    Unknown,
    /// They were these, the primary one first.
    Addresses(Vec<IpAddr>),
    /// They could not be had again.
    Lost,
}

/// What was tried since the Service looks as it does, or since all was well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    repairs: u32,
    no_repair_before: Option<Instant>,
    /// Since when Octavia has been at work.
    pub(crate) waiting_since: Option<Instant>,
    /// Since when nothing could be done although Octavia is not at work on the load balancer.
    pub(in crate::load_balancer) stall: Option<Stall>,
    /// The VIPs of a load balancer that broke and was deleted.
    pub(crate) previous_vips: PreviousVips,
    /// How many requests to create the load balancer ended in a fault of the service itself, one after another.
    pub(crate) creation_faults: u32,
    /// Algorithms that Octavia refused, each with the id of its pool.
    pub(crate) refused_algorithms: Vec<(String, LbAlgorithm)>,
    /// What became of the last request to fail a load balancer over, with its id.
    failover: Option<(String, Failover)>,
    /// Load balancers whose creation Octavia accepted and that it has not shown since.
    unseen: UnseenCreations,
    /// What the cloud has refused.
    pub(crate) refusals: RefusalRecord,
}

/// Load balancers that Octavia accepted, one after another, and never showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct UnseenCreations {
    /// Id of the last one, and when it was accepted.
    last: Option<(String, Instant)>,
    /// How many there were before it.
    before: u32,
}

impl UnseenCreations {
    fn created(self, id: &str, now: Instant) -> Self {
        let before = self.before.saturating_add(u32::from(self.last.is_some()));
        Self { last: Some((id.to_owned(), now)), before }
    }
}

impl Attempts {
    /// Somebody changed the Service, which may mend what failed, so that it is tried at once.
    pub(in crate::load_balancer) fn service_changed(&mut self) {
        let Self { waiting_since, previous_vips, creation_faults, failover, unseen, stall, refusals, .. } =
            std::mem::take(self);
        let (stall, refusals) = (stall.map(Stall::reset_attempts), refusals.service_changed());
        *self = Self {
            waiting_since,
            stall,
            previous_vips,
            creation_faults,
            failover,
            unseen,
            refusals,
            ..Self::default()
        };
    }

    /// All is as the Service asks for, as far as the cloud lets it. What it refused would be refused again, and another load balancer that
    /// is given up has no part in it.
    pub(in crate::load_balancer) fn converged(&mut self) {
        let Self { refused_algorithms, refusals, stall, .. } = std::mem::take(self);
        let stall = stall.filter(|stall| stall.gives_up);
        *self = Self { refused_algorithms, refusals, stall, ..Self::default() };
    }

    /// Steps were applied; `gives_up` says that they take away what the Service has. `repairs`: they send again what failed.
    pub(in crate::load_balancer) fn applied(
        &mut self,
        applied: &Applied,
        gives_up: bool,
        repairs: bool,
        now: Instant,
    ) {
        if applied.is_accepted() {
            self.stall = self.stall.filter(|stall| stall.gives_up != gives_up);
        }
        self.refused_algorithms.extend_from_slice(&applied.refused_algorithms);
        if applied.failover.is_some() {
            self.failover.clone_from(&applied.failover);
        }
        match applied.failed_creation {
            Some(ErrorKind::ServerFault) => self.creation_faults = self.creation_faults.saturating_add(1),
            Some(_) => {}
            None if applied.is_accepted() => self.creation_faults = 0,
            None => {}
        }
        if let Some(locked) = &applied.locked {
            self.waiting_since = Some(now);
            if let Some(made) = &locked.made {
                self.unseen = std::mem::take(&mut self.unseen).created(&made.id, now);
            }
        }
        if repairs && applied.changed {
            self.repaired(now);
        }
    }

    /// A step was refused: see [`RefusalRecord::note`].
    pub(in crate::load_balancer) fn refused(
        &mut self,
        refused: Refused,
        observed: &Observed,
        certain: bool,
        now: Instant,
    ) -> bool {
        self.refusals.note(refused, observed, certain, now)
    }

    /// Steps were accepted, of a plan for what is `observed`.
    pub(in crate::load_balancer) fn accepted(
        &mut self,
        steps: &[Step],
        applied: &Applied,
        observed: &Observed,
    ) {
        let accepted = applied.accepted.iter().filter_map(|(place, _)| steps.get(*place));
        self.refusals.accepted(steps, &accepted.collect::<Vec<_>>(), observed);
    }

    /// Something was sent again that may fail again.
    pub(in crate::load_balancer) fn repaired(&mut self, now: Instant) {
        self.no_repair_before = Some(now + REPAIR_PAUSES.delay(self.repairs));
        self.repairs = self.repairs.saturating_add(1);
    }

    /// The plan waits for work of Octavia that is under way.
    pub(in crate::load_balancer) fn waits(&mut self, now: Instant) {
        self.waiting_since.get_or_insert(now);
        self.stall = self.stall.map(Stall::reset_attempts);
    }

    /// The load balancer is not PENDING, and nothing can be done with it.
    pub(in crate::load_balancer) fn stalled(&mut self, gives_up: bool, now: Instant) -> Stall {
        *self.stall.insert(Stall::again(self.stall, gives_up, now))
    }

    /// The load balancer was deleted to be recreated, or Neutron refused the addresses that it had. What is replaced was seen, and is
    /// not found from here on because it was deleted.
    pub(in crate::load_balancer) fn replaced(&mut self, vips: PreviousVips) {
        self.previous_vips = vips;
        self.unseen = UnseenCreations::default();
        self.creation_faults = 0;
    }

    /// Octavia shows the load balancer.
    pub(in crate::load_balancer) fn seen(&mut self) {
        self.unseen = UnseenCreations::default();
    }

    /// How long something that failed inside Octavia has to rest before it is sent again.
    pub(crate) fn repair_pause(&self, now: Instant) -> Option<Duration> {
        let left = self.no_repair_before?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// For how long a load balancer that cannot be found counts as created, because Octavia accepted that. Absent where that
    /// time is over.
    pub(crate) fn counts_as_created(&self, load_balancer_id: &str, now: Instant) -> Option<Duration> {
        let (_, accepted) = self.unseen.last.as_ref().filter(|(id, _)| id == load_balancer_id)?;
        let time = CREATION_COUNTS_FOR.delay(self.unseen.before);
        (now < *accepted + time).then_some(time)
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
    use crate::load_balancer::objects::step::Operation;
    use crate::load_balancer::objects::step::{Locked, Made};

    #[tokio::test(start_paused = true)]
    async fn each_repair_waits_longer_until_the_service_changes() {
        let applied = Applied { changed: true, ..Applied::default() };
        let mut now = Instant::now();
        let mut attempts = Attempts::default();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert_eq!(attempts.repair_pause(now), None);
            attempts.applied(&applied, false, true, now);
            let pause = attempts.repair_pause(now).expect("a pause");
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600]);
        attempts.service_changed();
        attempts.applied(&applied, false, true, now);
        assert_eq!(attempts.repair_pause(now), Some(Duration::from_secs(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_creation_that_is_never_seen_counts_longer_each_time() {
        let mut now = Instant::now();
        let mut attempts = Attempts::default();
        let mut times = Vec::new();
        for id in ["a", "b", "c", "d", "e"] {
            attempts.applied(&created(id), false, false, now);
            attempts.service_changed();
            assert_eq!(attempts.counts_as_created("another", now), None);
            let time = attempts.counts_as_created(id, now).expect("it counts");
            times.push(time.as_secs());
            now += time;
            assert_eq!(attempts.counts_as_created(id, now), None);
        }
        assert_eq!(times, [600, 1200, 2400, 3600, 3600]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_attempt_where_nothing_can_be_done_comes_later_until_there_is_hope() {
        let (start, mut now) = (Instant::now(), Instant::now());
        let (mut attempts, mut pauses) = (Attempts::default(), Vec::new());
        for _ in 0..8 {
            let pause = attempts.stalled(false, now).pause();
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60]);
        let changed: fn(&mut Attempts, Instant) = |attempts, _| attempts.service_changed();
        for hope in [changed, Attempts::waits] {
            let mut after = attempts.clone();
            hope(&mut after, now);
            let stall = after.stalled(false, now);
            assert_eq!((stall.pause().as_secs(), stall.age(now)), (2, now - start));
        }
        let locked = Locked { made: None, operation: Some(Operation::Members), on: String::new() };
        let accepted = Applied { changed: true, locked: Some(locked), ..Applied::default() };
        attempts.applied(&accepted, true, false, now);
        assert!(attempts.stall.is_some(), "it was of another load balancer");
        attempts.applied(&accepted, false, false, now);
        assert!(attempts.stall.is_none());
    }

    fn created(id: &str) -> Applied {
        let made = Made { id: id.to_owned(), project_id: None };
        let locked = Locked { made: Some(made), operation: None, on: String::new() };
        Applied { changed: true, locked: Some(locked), ..Applied::default() }
    }
}

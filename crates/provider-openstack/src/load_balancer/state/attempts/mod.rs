//! The part of a Service's record about its attempts to change a load balancer. After a restart what failed or was refused is tried again at
//! once, but for a change that takes down something that serves: that is also noted in the cloud.

mod refusals;
mod stall;

use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_openstack_api::ErrorKind;
use openstack_ccm_openstack_api::octavia::LbAlgorithm;
use tokio::time::Instant;

pub(crate) use refusals::RefusalRecord;
pub(crate) use stall::Stall;

use crate::load_balancer::objects::recovery::Failover;
use crate::load_balancer::objects::step::{Applied, Refused, Step};
use crate::load_balancer::objects::{Desired, Observed};
use crate::load_balancer::plan::refusals::Refusals;

/// Pause after the first repair, and the longest pause; the pause doubles in between.
const REPAIR_PAUSES: Backoff = Backoff::doubling(Duration::from_secs(10), Duration::from_secs(600));

/// How long a load balancer whose creation Octavia accepted counts as created although Octavia does not show it. The time doubles
/// with each such load balancer. A lagging database replica shows a load balancer late, and a second one would take another
/// address.
const CREATION_COUNTS_FOR: Backoff = Backoff::doubling(Duration::from_secs(600), Duration::from_secs(3600));

/// The VIPs of a load balancer that broke and was deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PreviousVips {
    /// The VIPs are not known.
    #[default]
    Unknown,
    /// These VIPs, the primary one first.
    Addresses(Vec<IpAddr>),
    /// Neutron refused to give these addresses again.
    Lost,
}

/// The attempts since the Service last changed, or since its load balancer last converged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    repairs: u32,
    no_repair_before: Option<Instant>,
    /// When Octavia began the work that the plan waits for.
    waiting_since: Option<Instant>,
    /// Since when nothing can be done although the load balancer is not PENDING.
    pub(in crate::load_balancer) stall: Option<Stall>,
    /// The VIPs of a load balancer that broke and was deleted.
    pub(crate) previous_vips: PreviousVips,
    /// How many requests to create the load balancer ended in a fault of the service itself, one after another.
    pub(crate) creation_faults: u32,
    /// Whether the cloud may have refused the last request to create the load balancer for its members.
    members_refused: bool,
    /// Algorithms that Octavia refused, each with the id of its pool.
    pub(crate) refused_algorithms: Vec<(String, LbAlgorithm)>,
    /// The last failover request: id of the load balancer, and the result.
    failover: Option<(String, Failover)>,
    /// Load balancers whose creation Octavia accepted but which it has not shown yet.
    unseen: UnseenCreations,
    /// Steps that the cloud refused.
    pub(crate) refusals: RefusalRecord,
}

/// Load balancers whose creation Octavia accepted, one after another, and which it never showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct UnseenCreations {
    /// Id of the last of them, and when its creation was accepted.
    last: Option<(String, Instant)>,
    /// How many preceded `last`.
    before: u32,
}

impl UnseenCreations {
    fn created(self, id: &str, now: Instant) -> Self {
        let before = self.before.saturating_add(u32::from(self.last.is_some()));
        Self { last: Some((id.to_owned(), now)), before }
    }
}

impl Attempts {
    /// Resets most attempts because the Service changed: the change may mend what failed, so it is tried again at once.
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

    /// Drops the attempts of a Service whose plan is empty. Refusals stay, since the cloud would refuse the same again; so does the
    /// stall of another load balancer that is being given up.
    pub(in crate::load_balancer) fn converged(&mut self) {
        let Self { refused_algorithms, refusals, stall, .. } = std::mem::take(self);
        let stall = stall.filter(|stall| stall.gives_up);
        *self = Self { refused_algorithms, refusals, stall, ..Self::default() };
    }

    /// Notes applied steps. `gives_up`: they delete what the Service has; `repairs`: they send again what failed.
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
        if applied.failed_creation.is_some() {
            self.members_refused = applied.members_refused;
        }
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

    /// Notes a refused step: see [`RefusalRecord::note`].
    pub(in crate::load_balancer) fn refused(
        &mut self,
        refused: Refused,
        observed: &Observed,
        certain: bool,
        now: Instant,
    ) -> bool {
        self.refusals.note(refused, observed, certain, now)
    }

    /// Returns the refusals that apply now; of what takes down what serves, those of what is `asked` for.
    pub(in crate::load_balancer) fn refusals_of(
        &mut self,
        asked: Option<&Desired>,
        now: Instant,
        observed: &Observed,
    ) -> Refusals {
        if let Some(desired) = asked {
            self.refusals.asked(desired);
        }
        Refusals { new_members: self.members_refused, ..self.refusals.at(now, observed) }
    }

    /// Notes a failed step: see [`RefusalRecord::failed`].
    pub(in crate::load_balancer) fn failed(&mut self, failed: Refused, observed: &Observed, now: Instant) {
        self.refusals.failed(failed, observed, now);
    }

    /// Notes accepted steps of a plan that was made for `observed`.
    pub(in crate::load_balancer) fn accepted(
        &mut self,
        steps: &[Step],
        applied: &Applied,
        observed: &Observed,
    ) {
        let accepted = applied.accepted.iter().filter_map(|(place, _)| steps.get(*place));
        self.refusals.accepted(steps, &accepted.collect::<Vec<_>>(), observed);
    }

    /// Notes that a failed step was sent again, and starts the next repair pause.
    pub(in crate::load_balancer) fn repaired(&mut self, now: Instant) {
        self.no_repair_before = Some(now + REPAIR_PAUSES.delay(self.repairs));
        self.repairs = self.repairs.saturating_add(1);
    }

    /// Notes that the plan waits for work of Octavia. Returns for how long it has.
    pub(in crate::load_balancer) fn waits(&mut self, now: Instant) -> Duration {
        self.stall = self.stall.map(Stall::reset_attempts);
        now.saturating_duration_since(*self.waiting_since.get_or_insert(now))
    }

    /// Notes that nothing can be done with the load balancer although it is not PENDING.
    pub(in crate::load_balancer) fn stalled(&mut self, gives_up: bool, now: Instant) -> Stall {
        *self.stall.insert(Stall::again(self.stall, gives_up, now))
    }

    /// Notes that the load balancer was deleted to be recreated, or that Neutron refused its former addresses. Octavia showed the
    /// old load balancer, so its absence is explained by the deletion.
    pub(in crate::load_balancer) fn replaced(&mut self, vips: PreviousVips) {
        self.previous_vips = vips;
        self.unseen = UnseenCreations::default();
        self.creation_faults = 0;
    }

    /// Notes that Octavia shows the load balancer.
    pub(in crate::load_balancer) fn seen(&mut self) {
        self.unseen = UnseenCreations::default();
    }

    /// Returns how long to wait before a step that failed inside Octavia is sent again.
    pub(crate) fn repair_pause(&self, now: Instant) -> Option<Duration> {
        let left = self.no_repair_before?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Returns how long a load balancer that cannot be found counts as created because Octavia accepted its creation. `None` once
    /// that time is over.
    pub(crate) fn counts_as_created(&self, load_balancer_id: &str, now: Instant) -> Option<Duration> {
        let (_, accepted) = self.unseen.last.as_ref().filter(|(id, _)| id == load_balancer_id)?;
        let time = CREATION_COUNTS_FOR.delay(self.unseen.before);
        (now < *accepted + time).then_some(time)
    }

    /// Returns the result of the failover request for this load balancer since the plan was last empty.
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
        let waits: fn(&mut Attempts, Instant) = |attempts, now| _ = attempts.waits(now);
        for hope in [changed, waits] {
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

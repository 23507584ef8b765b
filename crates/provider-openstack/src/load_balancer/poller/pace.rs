//! Polling times, based on how long Octavia took before.
//!
//! A poll that finds Octavia still at work was wasted, and one that comes late keeps a Service waiting. What an operation
//! took the last time tells when to poll the next time, on this cloud and under its present load. What one takes among many tells
//! nothing about one that is made alone, and little about one that is made among few: then it may be done in proportion earlier.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Pause between two polls, and after the beginning of a change where nothing was measured yet. For what takes long it is a seventh of that.
const SHORTEST: Duration = Duration::from_secs(1);
/// Pause between two polls for a load balancer that is created or deleted: no chain of changes waits for it.
const SHORTEST_OF_WHOLE: Duration = Duration::from_millis(1250);
/// The same for several: one of them is always about to be done.
const SHORTEST_OF_SEVERAL: Duration = Duration::from_millis(1750);
/// Longest pause. It grows by a fifth with each wasted poll.
const LONGEST: Duration = Duration::from_secs(3);
/// The first poll comes no later, whatever was measured: what took long before may be quick now.
const LATEST: Duration = Duration::from_secs(20);

/// What Octavia is at work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::load_balancer) enum Operation {
    /// A new load balancer.
    Creation,
    /// The end of one.
    Deletion,
    /// A change of the load balancer itself.
    LoadBalancer,
    /// A listener: of all changes this takes longest.
    Listener,
    /// A pool.
    Pool,
    /// The members of a pool.
    Members,
    /// A health monitor.
    Monitor,
}

impl Operation {
    fn shortest_pause(self, company: Company) -> Duration {
        match company {
            _ if self.is_change() => SHORTEST,
            Company::Alone => SHORTEST_OF_WHOLE,
            Company::WithOthers => SHORTEST_OF_SEVERAL,
        }
    }

    fn is_change(self) -> bool {
        match self {
            Self::Creation | Self::Deletion => false,
            Self::LoadBalancer | Self::Listener | Self::Pool | Self::Members | Self::Monitor => true,
        }
    }
}

/// Whether Octavia is at work on other load balancers as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Company {
    Alone,
    WithOthers,
}

impl Company {
    fn of(watched: usize) -> Self {
        if watched > 1 { Self::WithOthers } else { Self::Alone }
    }
}

/// What each operation took the last time.
#[derive(Debug, Default)]
pub(super) struct Pace {
    took: BTreeMap<(Operation, Company), Took>,
    /// What the last change took, of whatever kind: stands for kinds that were not measured yet.
    change: BTreeMap<Company, Took>,
}

/// What an operation took.
#[derive(Clone, Copy, Debug)]
struct Took {
    time: Duration,
    /// The most load balancers that were watched meanwhile.
    watched: usize,
}

/// When to poll for one load balancer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollSchedule {
    /// What was begun, when, and the most load balancers that were watched since; absent where that is not known, so that it measures
    /// nothing.
    began: Option<(Operation, Instant, usize)>,
    next: Instant,
    pause: Duration,
}

impl PollSchedule {
    /// When the next one is due.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Whether it is known what was begun, and when.
    pub(super) fn measures(&self) -> bool {
        self.began.is_some()
    }

    /// The shortest time between two polls that is worth a call.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// One was wasted.
    pub(super) fn found_pending(&mut self, at: Instant) {
        let is_due = at >= self.next;
        self.next = self.next.max(at + self.pause);
        // Otherwise the poll was due for another load balancer. Its list shows this one, too, which is as good as a poll of its own.
        if is_due {
            self.pause = (self.pause + self.pause / 5).min(LONGEST);
        }
    }
}

impl Pace {
    /// Something was begun; so many load balancers are watched with this one.
    pub(super) fn begin(&self, operation: Option<Operation>, watched: usize, now: Instant) -> PollSchedule {
        let company = Company::of(watched);
        let expected = |operation| (operation, self.expected(operation, watched));
        let (first, pause) = match operation.map(expected) {
            // A little early: otherwise nobody would notice that it takes less time than it did.
            Some((operation, Some(took))) => (
                (took * 9 / 10).clamp(SHORTEST, LATEST),
                (took / 7).clamp(operation.shortest_pause(company), LONGEST),
            ),
            // A machine has to start.
            Some((Operation::Creation, None)) => (LONGEST, Operation::Creation.shortest_pause(company)),
            Some((operation, None)) => (SHORTEST, operation.shortest_pause(company)),
            None => (SHORTEST, SHORTEST),
        };
        let began = operation.map(|operation| (operation, now, watched));
        PollSchedule { began, next: now + first, pause }
    }

    /// A poll found the operation done; so many load balancers were watched until then.
    pub(super) fn ended(&mut self, schedule: &PollSchedule, watched: usize, at: Instant) {
        if let Some((operation, began, before)) = schedule.began {
            let watched = watched.max(before);
            let company = Company::of(watched);
            let took = Took { time: at.saturating_duration_since(began), watched };
            self.took.insert((operation, company), took);
            if operation.is_change() {
                self.change.insert(company, took);
            }
        }
    }

    /// Octavia begins to work on another load balancer, so that this one takes as long as one does among so many. Of load balancers that are
    /// created or deleted among others, those that began first end first.
    pub(super) fn joined(&self, schedule: &mut PollSchedule, watched: usize) {
        if let Some((operation, began, before)) = schedule.began
            && before < watched
            && (operation.is_change() || before == 1)
        {
            let with_others = self.begin(Some(operation), watched, began);
            schedule.began = with_others.began;
            schedule.next = schedule.next.max(with_others.next);
            schedule.pause = schedule.pause.max(with_others.pause);
        }
    }

    /// What an operation takes beside so many others. It takes no less time than alone.
    fn expected(&self, operation: Operation, watched: usize) -> Option<Duration> {
        let among = |company| {
            let change = self.change.get(&company).filter(|_| operation.is_change());
            self.took.get(&(operation, company)).or(change).copied()
        };
        let alone = among(Company::Alone).map(|took| took.time);
        match (Company::of(watched), among(Company::WithOthers)) {
            (Company::Alone, _) | (_, None) => alone,
            // What took so long among some may take less among fewer. Among more it is not expected to take longer.
            (Company::WithOthers, Some(took)) => {
                let in_proportion = took.time.mul_f64(watched as f64 / took.watched as f64);
                Some(in_proportion.max(alone.unwrap_or_default()).min(took.time))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds of the polls for an operation that takes so long.
    fn polls(pace: &mut Pace, operation: Operation, takes: u64) -> Vec<u64> {
        polls_among(pace, 1, operation, takes)
    }

    /// The same with so many load balancers that are watched.
    fn polls_among(pace: &mut Pace, watched: usize, operation: Operation, takes: u64) -> Vec<u64> {
        let began = Instant::now();
        let mut schedule = pace.begin(Some(operation), watched, began);
        let mut seconds = Vec::new();
        loop {
            let at = schedule.next();
            seconds.push((at - began).as_secs());
            if at >= began + Duration::from_secs(takes) {
                pace.ended(&schedule, watched, at);
                return seconds;
            }
            schedule.found_pending(at);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_took_long_once_is_polled_later_the_next_time() {
        let mut pace = Pace::default();
        assert_eq!(polls(&mut pace, Operation::Listener, 6), [1, 2, 3, 4, 6]);
        assert_eq!(polls(&mut pace, Operation::Listener, 6), [5, 6]);
        assert_eq!(polls(&mut pace, Operation::Listener, 6), [6]);
        assert_eq!(polls(&mut pace, Operation::Pool, 1), [5], "it is a change as well");
        assert_eq!(polls(&mut pace, Operation::Pool, 1), [4], "each operation has its own measure");
        assert_eq!(polls(&mut pace, Operation::Deletion, 1), [1]);
        // If it has become quicker, each poll comes a little earlier.
        let later: Vec<_> = (0..8).map(|_| polls(&mut pace, Operation::Listener, 3)).collect();
        assert_eq!(later, [vec![5], vec![4], vec![4], vec![3], vec![3], vec![3], vec![2, 3], vec![3]]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_creation_is_given_time() {
        let mut pace = Pace::default();
        assert_eq!(polls(&mut pace, Operation::Creation, 6), [3, 4, 5, 7]);
        assert_eq!(polls(&mut pace, Operation::Creation, 6), [6]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_took_among_many_keeps_no_later_one_waiting() {
        let mut pace = Pace::default();
        let among_others = polls_among(&mut pace, 30, Operation::Creation, 15);
        assert_eq!(polls(&mut pace, Operation::Creation, 6), [3, 4, 5, 7]);
        let now = Instant::now();
        let mut schedule = pace.begin(Some(Operation::Creation), 1, now);
        let alone = schedule.next();
        pace.joined(&mut schedule, 30);
        assert!(alone < now + Duration::from_secs(7), "as it took alone");
        let last = now + Duration::from_secs(*among_others.last().unwrap());
        assert!((last - schedule.next()).as_secs() < 2, "as it took among others");
        assert_eq!(
            polls_among(&mut pace, 3, Operation::Deletion, 2),
            [1, 2],
            "and what one took alone is a beginning"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_took_among_many_is_no_measure_among_few() {
        let mut pace = Pace::default();
        polls_among(&mut pace, 30, Operation::Creation, 15);
        assert_eq!(polls_among(&mut pace, 10, Operation::Creation, 5), [4, 6], "a third of the time");
        polls(&mut pace, Operation::Creation, 6);
        polls_among(&mut pace, 30, Operation::Creation, 15);
        assert_eq!(polls_among(&mut pace, 2, Operation::Creation, 6), [6], "no less than alone");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_change_took_among_many_keeps_none_among_few_waiting() {
        let mut pace = Pace::default();
        polls_among(&mut pace, 30, Operation::Members, 15);
        assert_eq!(polls_among(&mut pace, 6, Operation::Members, 2), [3], "a fifth of the time");
        polls_among(&mut pace, 30, Operation::Members, 15);
        // They begin one after another.
        let now = Instant::now();
        let mut first = pace.begin(Some(Operation::Members), 2, now);
        pace.joined(&mut first, 30);
        assert_eq!(first.next(), pace.begin(Some(Operation::Members), 30, now).next());
    }

    #[tokio::test(start_paused = true)]
    async fn what_took_very_long_does_not_put_the_first_poll_off_for_ever() {
        let mut pace = Pace::default();
        polls(&mut pace, Operation::Deletion, 600);
        assert_eq!(polls(&mut pace, Operation::Deletion, 1), [20]);
    }
}

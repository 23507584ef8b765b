//! How long Octavia takes, and when to poll for that.
//!
//! A poll that finds Octavia still at work was wasted, and one that comes late keeps a Service waiting. What an operation
//! took the last time tells when to poll the next time, on this cloud and under its present load. What one takes among many tells
//! nothing about one that is made alone, and little about one that is made among few: then it may be done in proportion earlier.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::operation::Operation;
use super::schedule::{Began, ChangeQueue, LONGEST, PollSchedule};

/// Pause between two polls, and after the beginning of a change where nothing was measured yet. For what takes long it is a seventh of that.
const SHORTEST: Duration = Duration::from_secs(1);
/// Pause between two polls for a load balancer that is created or deleted: no chain of changes waits for it.
const SHORTEST_OF_WHOLE: Duration = Duration::from_millis(1250);
/// The same for several: one of them is always about to be done.
const SHORTEST_OF_SEVERAL: Duration = Duration::from_millis(1750);
/// The first poll comes no later, whatever was measured: what took long before may be quick now.
const LATEST: Duration = Duration::from_secs(20);

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

    /// The shortest pause between two polls for an operation.
    fn shortest_pause(self, operation: Operation) -> Duration {
        match self {
            _ if operation.is_change() => SHORTEST,
            Self::Alone => SHORTEST_OF_WHOLE,
            Self::WithOthers => SHORTEST_OF_SEVERAL,
        }
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

impl Pace {
    /// Something was begun; so many load balancers are watched with this one.
    pub(super) fn begin(&self, operation: Option<Operation>, watched: usize, now: Instant) -> PollSchedule {
        let company = Company::of(watched);
        let expected = |operation| (operation, self.expected(operation, watched));
        let (first, pause) = match operation.map(expected) {
            // A little early: otherwise nobody would notice that it takes less time than it did.
            Some((operation, Some(took))) => (
                (took * 9 / 10).clamp(SHORTEST, LATEST),
                (took / 7).clamp(company.shortest_pause(operation), LONGEST),
            ),
            // A machine has to start.
            Some((Operation::Creation, None)) => (LONGEST, company.shortest_pause(Operation::Creation)),
            Some((operation, None)) => (SHORTEST, company.shortest_pause(operation)),
            None => (SHORTEST, SHORTEST),
        };
        let took = operation.and_then(|operation| self.expected(operation, watched));
        let likely_end = took.map(|took| now + took.clamp(SHORTEST, LATEST));
        let began = operation.map(|operation| Began { operation, at: now, watched });
        let queue = operation.and_then(|operation| self.queue(operation, watched));
        PollSchedule::new(began, likely_end, now + first, pause, queue)
    }

    /// What a change waits in that is made among others.
    fn queue(&self, operation: Operation, watched: usize) -> Option<ChangeQueue> {
        let is_queued = operation.is_change() && Company::of(watched) == Company::WithOthers;
        is_queued.then(|| ChangeQueue {
            alone: self.took(operation, Company::Alone).map_or(SHORTEST, |took| took.time),
            among_others: self.expected(operation, watched).unwrap_or_default(),
        })
    }

    /// Octavia had finished by the time after which it counted as done. As nobody looked, it may have taken less: the next one counts as
    /// done a little earlier, until a step is refused and polls measure it again.
    pub(super) fn presumed_rightly(&mut self, schedule: &PollSchedule) {
        if let Some((Began { operation, at, watched }, end)) = schedule.began().zip(schedule.likely_end()) {
            let time = end.saturating_duration_since(at) * 99 / 100;
            self.took.insert((operation, Company::of(watched)), Took { time, watched });
        }
    }

    /// A poll showed that the operation was done at this time; so many load balancers were watched until then.
    pub(super) fn ended(&mut self, schedule: &PollSchedule, watched: usize, at: Instant) {
        if let Some(Began { operation, at: began, watched: before }) = schedule.began() {
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
        if let Some(Began { operation, at, watched: before }) = schedule.began()
            && before < watched
            && (operation.is_change() || before == 1)
        {
            schedule.postpone(&self.begin(Some(operation), watched, at));
        }
    }

    /// What the operation took the last time in such company, or else another change.
    fn took(&self, operation: Operation, company: Company) -> Option<Took> {
        let change = self.change.get(&company).filter(|_| operation.is_change());
        self.took.get(&(operation, company)).or(change).copied()
    }

    /// What an operation takes beside so many others. It takes no less time than alone.
    fn expected(&self, operation: Operation, watched: usize) -> Option<Duration> {
        let alone = self.took(operation, Company::Alone).map(|took| took.time);
        match (Company::of(watched), self.took(operation, Company::WithOthers)) {
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
            let at = schedule.next(watched);
            seconds.push((at - began).as_secs());
            if at >= began + Duration::from_secs(takes) {
                pace.ended(&schedule, watched, at);
                return seconds;
            }
            schedule.found_pending(at, watched);
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
        let alone = schedule.next(1);
        pace.joined(&mut schedule, 30);
        assert!(alone < now + Duration::from_secs(7), "as it took alone");
        let last = now + Duration::from_secs(*among_others.last().unwrap());
        assert!((last - schedule.next(30)).as_secs() < 2, "as it took among others");
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
        assert_eq!(first.next(30), pace.begin(Some(Operation::Members), 30, now).next(30));
    }

    /// Changes of so many load balancers, which an Octavia makes one after another, a second and a half for each. Answers how
    /// often it was polled, and for how long a change that was made waited for the poll that saw it, on average.
    fn polls_of_queue(pace: &mut Pace, length: u32) -> (usize, Duration) {
        let began = Instant::now();
        let mut queue: Vec<_> = (1..=length)
            .map(|number| {
                let schedule = pace.begin(Some(Operation::Members), length as usize, began);
                (began + Duration::from_millis(1500) * number, schedule)
            })
            .collect();
        let (mut polls, mut waited, mut last) = (0, Duration::ZERO, began);
        while !queue.is_empty() {
            let watched = queue.len();
            let due = queue.iter().map(|(_, schedule)| schedule.next(watched)).min();
            let pause = queue.iter().map(|(_, schedule)| schedule.pause(watched)).min();
            let at = due.max(pause.map(|pause| last + pause)).expect("some are left");
            (polls, last) = (polls + 1, at);
            queue.retain_mut(|(end, schedule)| {
                if *end > at {
                    schedule.found_pending(at, watched);
                } else {
                    waited += at - *end;
                    pace.ended(schedule, watched, at);
                }
                *end > at
            });
        }
        (polls, waited / length)
    }

    #[tokio::test(start_paused = true)]
    async fn changes_that_octavia_makes_one_after_another_share_polls() {
        let mut pace = Pace::default();
        polls(&mut pace, Operation::Members, 1);
        let seen: Vec<_> =
            [2, 6, 15, 30].into_iter().map(|length| polls_of_queue(&mut pace, length)).collect();
        let (number, waited): (Vec<_>, Vec<_>) =
            seen.into_iter().map(|(polls, waited)| (polls, waited.as_secs())).unzip();
        assert_eq!((number, waited), (vec![3, 5, 6, 7], vec![0, 0, 2, 5]));
    }

    #[tokio::test(start_paused = true)]
    async fn changes_that_take_no_longer_together_wait_no_longer() {
        let mut pace = Pace::default();
        polls(&mut pace, Operation::Members, 10);
        assert_eq!(
            polls_among(&mut pace, 30, Operation::Members, 10),
            polls(&mut pace, Operation::Members, 10)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_took_very_long_does_not_put_the_first_poll_off_for_ever() {
        let mut pace = Pace::default();
        polls(&mut pace, Operation::Deletion, 600);
        assert_eq!(polls(&mut pace, Operation::Deletion, 1), [20]);
    }
}

//! When to poll for one load balancer.
//!
//! What a change takes among others beyond what it takes alone is time in Octavia's queue. Changes leave the queue one after another, so
//! Octavia has work while nobody looks, and the next poll comes when half of those that are left may be done.

use std::time::Duration;

use tokio::time::Instant;

use super::operation::Operation;

/// Longest pause. It grows by a fifth with each wasted poll.
pub(super) const LONGEST: Duration = Duration::from_secs(3);
/// Longest pause while changes are in Octavia's queue.
const LONGEST_OF_QUEUE: Duration = Duration::from_secs(6);

/// When to poll for one load balancer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollSchedule {
    /// Absent where nobody knows what was begun and when, so that it measures nothing.
    began: Option<Began>,
    next: Instant,
    /// When Octavia has probably finished; absent where nothing was measured, and once that has shown to be wrong.
    likely_end: Option<Instant>,
    pause: Duration,
    /// The last poll, which found it pending.
    last: Option<Instant>,
    queue: Option<ChangeQueue>,
}

/// What was begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Began {
    pub(super) operation: Operation,
    pub(super) at: Instant,
    /// The most load balancers that were watched since.
    pub(super) watched: usize,
}

/// What is known of changes that Octavia makes one after another.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangeQueue {
    /// What one takes that is made alone.
    pub(super) alone: Duration,
    /// What one is expected to take among the others.
    pub(super) among_others: Duration,
}

impl PollSchedule {
    /// Octavia has probably finished at `likely_end`. The first poll is `next`, and one after which nothing has ended is followed by such a pause.
    pub(super) fn new(
        began: Option<Began>,
        likely_end: Option<Instant>,
        next: Instant,
        pause: Duration,
        queue: Option<ChangeQueue>,
    ) -> Self {
        Self { began, likely_end, next, pause, last: None, queue }
    }

    /// What was begun, where that is known.
    pub(super) fn began(&self) -> Option<Began> {
        self.began
    }

    /// Whether a poll found it pending.
    pub(super) fn was_found_pending(&self) -> bool {
        self.last.is_some()
    }

    /// When Octavia has probably finished, as far as that can be told.
    pub(super) fn likely_end(&self) -> Option<Instant> {
        self.likely_end
    }

    /// When the next one is due, where so many load balancers are watched.
    pub(super) fn next(&self, watched: usize) -> Instant {
        self.last.map_or(self.next, |last| self.next.max(last + self.half_of_queue(watched)))
    }

    /// The shortest time between two polls that is worth a call, where so many load balancers are watched.
    pub(super) fn pause(&self, watched: usize) -> Duration {
        self.pause.max(self.half_of_queue(watched))
    }

    /// Until half of the changes in the queue that are left are done; no time where there is no queue.
    fn half_of_queue(&self, left: usize) -> Duration {
        let Some((queue, began)) = self.queue.zip(self.began) else { return Duration::ZERO };
        let so_far = self.last.map_or(Duration::ZERO, |last| last.saturating_duration_since(began.at));
        let until_all_are = queue.among_others.max(so_far).saturating_sub(queue.alone);
        (until_all_are / 2).mul_f64(left as f64 / began.watched as f64).min(LONGEST_OF_QUEUE)
    }

    /// One was wasted; so many load balancers were watched.
    pub(super) fn found_pending(&mut self, at: Instant, watched: usize) {
        let is_due = at >= self.next(watched);
        self.next = self.next.max(at + self.pause);
        // Otherwise the poll was due for another load balancer. Its list shows this one, too, which is as good as a poll of its own.
        if is_due {
            self.pause = (self.pause + self.pause / 5).min(LONGEST);
        }
        self.last = Some(at);
        self.likely_end.take_if(|end| *end <= at);
    }

    /// It takes as long as what is begun among others, which has this schedule.
    pub(super) fn postpone(&mut self, among_others: &Self) {
        self.began = among_others.began;
        self.likely_end = among_others.likely_end;
        self.next = self.next.max(among_others.next);
        self.pause = self.pause.max(among_others.pause);
        self.queue = among_others.queue;
    }
}

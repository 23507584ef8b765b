//! What Octavia can do at once: the threads of its API and of its worker, which share the processors of their machine. Pure.
//!
//! Everything that is begun is worked on at the same time, so that much at once makes all of it late.

use std::time::Duration;

/// How much Octavia can do at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// Pieces of work that go on as fast as each of them does alone. With more of them, each is slower in proportion.
    pub processors: f64,
    /// Requests that the API has under way at once; others wait in order.
    pub api_threads: usize,
    /// Operations that the worker has under way at once; others wait in order.
    pub worker_threads: usize,
    /// How long the API takes for the creation of a load balancer until it answers, with nothing beside it.
    pub creation_request: Duration,
}

impl Capacity {
    /// Octavia 2026.2 with one API process of six threads and one worker of 64, beside Neutron, Keystone and a database on a
    /// machine with two cores, as the end-to-end scenarios have it. With [`Self::SMALL_CREATION`] it takes as long as the real one
    /// does when all creations are sent at the same time:
    ///
    /// | creations at once | real | here |
    /// | ---: | --- | --- |
    /// | 1 | after 4.5 to 6.2 s | 4.6 s |
    /// | 5 | after 15.6 to 18.2 s, all at nearly the same time | 16 s |
    /// | 15 | the last one after 36 to 48 s | 49 s |
    /// | 30 | the first one after 41 s, the last one after 116 s | 48 s, 99 s |
    pub fn small() -> Self {
        Self {
            processors: 1.4,
            api_threads: 6,
            worker_threads: 64,
            creation_request: Duration::from_millis(1200),
        }
    }

    /// What the worker of [`Self::small`] needs for a load balancer, with nothing beside it.
    pub const SMALL_CREATION: Duration = Duration::from_millis(3400);
}

/// Who works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    Api,
    Worker,
}

/// A piece of work, by the order of its beginning.
pub(crate) type JobId = u64;

/// The work that is under way.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    capacity: Capacity,
    jobs: Vec<Job>,
    /// The time up to which the work is accounted for.
    until: Duration,
    begun: JobId,
}

#[derive(Debug, Clone)]
struct Job {
    id: JobId,
    threads: Threads,
    /// What is left of it, in seconds of work alone.
    left: f64,
}

impl Workload {
    pub(crate) fn new(capacity: Capacity, now: Duration) -> Self {
        Self { capacity, jobs: Vec::new(), until: now, begun: 0 }
    }

    pub(crate) fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Begins a piece of work that takes this long alone. The present is accounted for already.
    pub(crate) fn begin(&mut self, threads: Threads, work: Duration) -> JobId {
        self.begun += 1;
        self.jobs.push(Job { id: self.begun, threads, left: work.as_secs_f64() });
        self.begun
    }

    pub(crate) fn is_under_way(&self, id: JobId) -> bool {
        self.jobs.iter().any(|job| job.id == id)
    }

    /// Works until `now`. Returns what ended, in order, and when.
    pub(crate) fn work(&mut self, now: Duration) -> Vec<(JobId, Duration)> {
        let mut ended = Vec::new();
        while let Some(end) = self.next_end().filter(|end| *end <= now) {
            self.pass(end);
            let done: Vec<JobId> =
                self.jobs.iter().filter(|job| job.left <= f64::EPSILON).map(|job| job.id).collect();
            self.jobs.retain(|job| !done.contains(&job.id));
            ended.extend(done.into_iter().map(|id| (id, end)));
        }
        self.pass(now);
        ended
    }

    /// When the next piece of work ends, if nothing is begun before.
    pub(crate) fn next_end(&self) -> Option<Duration> {
        let running = self.running();
        let least = running.iter().map(|place| self.jobs[*place].left).min_by(f64::total_cmp)?;
        // Rounded up, or it would end a moment after its end.
        let time = Duration::from_secs_f64(least / self.speed(running.len())) + Duration::from_nanos(1);
        Some(self.until + time)
    }

    /// Places of the jobs that have a thread.
    fn running(&self) -> Vec<usize> {
        let of = |threads: Threads, count: usize| {
            let own = self.jobs.iter().enumerate().filter(move |(_, job)| job.threads == threads);
            own.map(|(place, _)| place).take(count)
        };
        let Capacity { api_threads, worker_threads, .. } = self.capacity;
        of(Threads::Api, api_threads).chain(of(Threads::Worker, worker_threads)).collect()
    }

    #[allow(clippy::cast_precision_loss, reason = "nobody has so many threads")]
    fn speed(&self, running: usize) -> f64 {
        (self.capacity.processors / running.max(1) as f64).min(1.0)
    }

    fn pass(&mut self, to: Duration) {
        let running = self.running();
        let done = to.saturating_sub(self.until).as_secs_f64() * self.speed(running.len());
        for place in running {
            let left = &mut self.jobs[place].left;
            *left = (*left - done).max(0.0);
        }
        self.until = self.until.max(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(processors: f64, worker_threads: usize) -> Workload {
        let capacity =
            Capacity { processors, api_threads: 1, worker_threads, creation_request: Duration::ZERO };
        Workload::new(capacity, Duration::ZERO)
    }

    /// The ends in seconds, as far as they are whole.
    fn seconds(ended: &[(JobId, Duration)]) -> Vec<(JobId, u64)> {
        ended.iter().map(|(id, at)| (*id, (*at + Duration::from_millis(1)).as_secs())).collect()
    }

    #[test]
    fn what_is_begun_at_once_ends_late_all_together() {
        let mut workload = workload(2.0, 64);
        for _ in 0..4 {
            workload.begin(Threads::Worker, Duration::from_secs(5));
        }
        assert_eq!(seconds(&workload.work(Duration::from_secs(60))), [(1, 10), (2, 10), (3, 10), (4, 10)]);
    }

    #[test]
    fn what_has_no_thread_waits_in_order() {
        let mut workload = workload(2.0, 2);
        for _ in 0..3 {
            workload.begin(Threads::Worker, Duration::from_secs(5));
        }
        assert_eq!(seconds(&workload.work(Duration::from_secs(60))), [(1, 5), (2, 5), (3, 10)]);
    }

    #[test]
    fn who_comes_later_slows_down_those_who_are_there() {
        let mut workload = workload(1.0, 64);
        workload.begin(Threads::Worker, Duration::from_secs(4));
        assert!(workload.work(Duration::from_secs(2)).is_empty());
        workload.begin(Threads::Api, Duration::from_secs(4));
        assert_eq!(seconds(&workload.work(Duration::from_secs(60))), [(1, 6), (2, 8)]);
    }
}

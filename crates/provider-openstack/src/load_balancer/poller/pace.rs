//! When to look, by what Octavia took before.
//!
//! A look that finds Octavia still at work was wasted, and one that comes late keeps a Service waiting. What a kind of work
//! took the last time tells when the next one is worth a look, on this cloud and under its present load.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Pause between two looks, and after the beginning of a change where nothing was measured yet. For what takes long it is a tenth of that.
pub(super) const SHORTEST: Duration = Duration::from_secs(1);
/// Pause between two looks at load balancers that come or go: of many that do so one after the other, one is always about to be
/// done, and no chain of changes waits for that.
const SHORTEST_OF_WHOLE: Duration = Duration::from_millis(1750);
/// Pause that it grows to, by a fifth with each wasted look: what is noticed late is a tenth of a creation at most.
pub(super) const LONGEST: Duration = Duration::from_secs(3);
/// The first look comes no later, whatever was measured: what took long before may be quick now.
const LATEST: Duration = Duration::from_secs(20);

/// What Octavia is at work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::load_balancer) enum Work {
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

impl Work {
    fn shortest_pause(self) -> Duration {
        if self.is_change() { SHORTEST } else { SHORTEST_OF_WHOLE }
    }

    fn is_change(self) -> bool {
        match self {
            Self::Creation | Self::Deletion => false,
            Self::LoadBalancer | Self::Listener | Self::Pool | Self::Members | Self::Monitor => true,
        }
    }
}

/// What each kind of work took the last time.
#[derive(Debug, Default)]
pub(super) struct Pace {
    took: BTreeMap<Work, Duration>,
    /// What the last change took, of whatever kind: stands for kinds that were not measured yet.
    change: Option<Duration>,
}

/// The looks at one load balancer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    /// What was begun, and when; absent where that is not known, so that it measures nothing.
    began: Option<(Work, Instant)>,
    next: Instant,
    pause: Duration,
}

impl Looks {
    /// When the next one is due.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// How long after a look at other load balancers the next one is worth a call.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// One was wasted.
    pub(super) fn found_pending(&mut self, at: Instant) {
        let is_due = at >= self.next;
        self.next = self.next.max(at + self.pause);
        // Otherwise another load balancer's turn came first: its list shows this one, too, which is as good as a look of its own.
        if is_due {
            self.pause = (self.pause + self.pause / 5).min(LONGEST);
        }
    }
}

impl Pace {
    /// Something was begun.
    pub(super) fn begin(&self, work: Option<Work>, now: Instant) -> Looks {
        let (first, pause) = match work.map(|work| (work, self.expected(work))) {
            // A little early: otherwise nobody would notice that it takes less time than it did.
            Some((work, Some(took))) => {
                ((took * 9 / 10).clamp(SHORTEST, LATEST), (took / 10).clamp(work.shortest_pause(), LONGEST))
            }
            // A machine has to start.
            Some((Work::Creation, None)) => (LONGEST, Work::Creation.shortest_pause()),
            Some((work, None)) => (SHORTEST, work.shortest_pause()),
            None => (SHORTEST, SHORTEST),
        };
        Looks { began: work.map(|work| (work, now)), next: now + first, pause }
    }

    /// A look found the work done.
    pub(super) fn ended(&mut self, looks: &Looks, at: Instant) {
        if let Some((work, began)) = looks.began {
            let took = at.saturating_duration_since(began);
            self.took.insert(work, took);
            if work.is_change() {
                self.change = Some(took);
            }
        }
    }

    fn expected(&self, work: Work) -> Option<Duration> {
        self.took.get(&work).copied().or(self.change.filter(|_| work.is_change()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds of the looks at work that takes so long.
    fn looks(pace: &mut Pace, work: Work, takes: u64) -> Vec<u64> {
        let began = Instant::now();
        let mut looks = pace.begin(Some(work), began);
        let mut seconds = Vec::new();
        loop {
            let at = looks.next();
            seconds.push((at - began).as_secs());
            if at >= began + Duration::from_secs(takes) {
                pace.ended(&looks, at);
                return seconds;
            }
            looks.found_pending(at);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_took_long_once_is_looked_at_later_the_next_time() {
        let mut pace = Pace::default();
        assert_eq!(looks(&mut pace, Work::Listener, 6), [1, 2, 3, 4, 6]);
        assert_eq!(looks(&mut pace, Work::Listener, 6), [5, 6]);
        assert_eq!(looks(&mut pace, Work::Listener, 6), [6]);
        assert_eq!(looks(&mut pace, Work::Pool, 1), [5], "it is a change as well");
        assert_eq!(looks(&mut pace, Work::Pool, 1), [4], "each kind of work has its own measure");
        assert_eq!(looks(&mut pace, Work::Deletion, 1), [1]);
        // What has become quicker is found out, look by look.
        let later: Vec<_> = (0..8).map(|_| looks(&mut pace, Work::Listener, 3)).collect();
        assert_eq!(later, [vec![5], vec![4], vec![4], vec![3], vec![3], vec![3], vec![2, 3], vec![3]]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_creation_is_given_time() {
        let mut pace = Pace::default();
        assert_eq!(looks(&mut pace, Work::Creation, 6), [3, 4, 6]);
        assert_eq!(looks(&mut pace, Work::Creation, 6), [6]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_took_very_long_does_not_put_the_first_look_off_for_ever() {
        let mut pace = Pace::default();
        looks(&mut pace, Work::Deletion, 600);
        assert_eq!(looks(&mut pace, Work::Deletion, 1), [20]);
    }
}

//! A load balancer that nothing can be done with although it is not PENDING: Octavia does not finish something on it, or refuses
//! every change of it.

use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use tokio::time::Instant;

/// Pause after the first time, and the longest one; it doubles in between. The poller sees load balancers only, so each look reads the
/// whole one, or sends a change again.
const PAUSES: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_secs(60));

/// After this pause counting starts again: the last stall ended without being noticed.
const MAX_STALL_GAP: Duration = Duration::from_secs(600);

/// For how long, and how often, nothing could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    since: Instant,
    last: Instant,
    /// How often since there was a reason to hope.
    times: u32,
    /// Whether the load balancer is being given up. The Service may be served by another one meanwhile.
    pub(in crate::load_balancer) gives_up: bool,
}

impl Stall {
    /// Nothing could be done, once more if that was so before.
    pub(in crate::load_balancer) fn again(before: Option<Self>, gives_up: bool, now: Instant) -> Self {
        let goes_on = |before: &Self| before.gives_up == gives_up && now < before.last + MAX_STALL_GAP;
        let before = before.filter(goes_on);
        let (since, times) = before.map_or((now, 0), |Self { since, times, .. }| (since, times));
        Self { since, last: now, times: times.saturating_add(1), gives_up }
    }

    /// Something happened that may have ended it.
    pub(in crate::load_balancer) fn reset_attempts(self) -> Self {
        Self { times: 0, ..self }
    }

    /// Whether it was met only once.
    pub(crate) fn is_first(&self) -> bool {
        self.times <= 1
    }

    /// How long to wait before the next attempt.
    pub(crate) fn pause(&self) -> Duration {
        PAUSES.delay(self.times.saturating_sub(1))
    }

    /// For how long it has lasted.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_ended_unnoticed_long_ago_says_nothing() {
        let began = Instant::now();
        let again = |before: Option<Stall>, after: u64| {
            Stall::again(before, true, began + Duration::from_secs(after))
        };
        let second = again(Some(again(None, 0)), 60);
        assert_eq!((second.age(began + Duration::from_secs(60)).as_secs(), second.is_first()), (60, false));
        let much_later = again(Some(second), 3600);
        assert!(much_later.is_first() && much_later.age(began + Duration::from_secs(3600)).is_zero());
    }
}

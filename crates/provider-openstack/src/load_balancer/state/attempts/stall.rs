//! A load balancer that cannot be changed although it is not PENDING: Octavia does not finish something on it, or refuses every
//! change.

use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use tokio::time::Instant;

/// Pause after the first attempt, and the longest pause; the pause doubles in between. The poller only looks at load balancers, so
/// each attempt reads all children, or sends a change again.
const PAUSES: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_secs(60));

/// After a gap this long, counting starts again: the last stall must have ended unnoticed.
const MAX_STALL_GAP: Duration = Duration::from_secs(600);

/// How long, and how often, nothing could be done with a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    since: Instant,
    last: Instant,
    /// Attempts since the last event that might have ended the stall.
    times: u32,
    /// Whether the load balancer is being given up. Another one may serve the Service meanwhile.
    pub(in crate::load_balancer) gives_up: bool,
}

impl Stall {
    /// Counts one more failed attempt, or the first if there is no stall to continue.
    pub(in crate::load_balancer) fn again(before: Option<Self>, gives_up: bool, now: Instant) -> Self {
        let goes_on = |before: &Self| before.gives_up == gives_up && now < before.last + MAX_STALL_GAP;
        let before = before.filter(goes_on);
        let (since, times) = before.map_or((now, 0), |Self { since, times, .. }| (since, times));
        Self { since, last: now, times: times.saturating_add(1), gives_up }
    }

    /// Resets the count because something happened that may have ended the stall.
    pub(in crate::load_balancer) fn reset_attempts(self) -> Self {
        Self { times: 0, ..self }
    }

    /// Returns whether there was only one failed attempt.
    pub(crate) fn is_first(&self) -> bool {
        self.times <= 1
    }

    /// Returns the pause before the next attempt.
    pub(crate) fn pause(&self) -> Duration {
        PAUSES.delay(self.times.saturating_sub(1))
    }

    /// Returns how long the stall has lasted.
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

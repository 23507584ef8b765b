//! How many creations may be under way at once: more while that makes none of them slower, or while it is not known how long one takes;
//! fewer when they become slower. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// The window at the beginning of a burst.
const INITIAL_SIZE: usize = 2;
/// Random variation of the measured time of a creation: the poller sees its end only at its next look.
const CREATION_JITTER: Duration = Duration::from_secs(4);
/// If the first ones take longer than this, they may do so however few there are: until one has ended, one more begins after each interval.
const QUIET: Duration = Duration::from_secs(10);
const QUIET_INTERVAL: Duration = Duration::from_secs(2);

/// The number of creations that may be under way, and the measurement that it follows from.
#[derive(Debug)]
pub(in crate::load_balancer) struct Window {
    size: usize,
    /// Time of the quickest creation of this burst, or of the last one that ran alone.
    quickest: Option<Duration>,
    /// Since when others have waited and none has ended; later by an interval for each place that this has added.
    quiet_since: Option<Instant>,
}

impl Default for Window {
    fn default() -> Self {
        Self { size: INITIAL_SIZE, quickest: None, quiet_since: None }
    }
}

impl Window {
    /// Returns how many creations may be under way.
    pub(in crate::load_balancer) fn size(&self) -> usize {
        self.size
    }

    /// Resets the window: a creation begins while none is under way and none waits. The former window would make all that follow
    /// equally late, and the cloud may have become quicker or slower.
    pub(in crate::load_balancer) fn begins_anew(&mut self) {
        *self = Self::default();
    }

    /// Adds places while none has ended for long. `is_waited_for`: other Services wait for a place.
    pub(in crate::load_balancer) fn passes(&mut self, is_waited_for: bool, now: Instant) {
        if !is_waited_for || self.quickest.is_some() {
            self.quiet_since = None;
            return;
        }
        let since = self.quiet_since.get_or_insert(now);
        while now.saturating_duration_since(*since) >= QUIET {
            *since += QUIET_INTERVAL;
            self.size += 1;
        }
    }

    /// Notes that a creation has ended, in whatever way.
    pub(in crate::load_balancer) fn is_not_quiet(&mut self) {
        self.quiet_since = None;
    }

    /// Adjusts the window after a successful creation. `was_full`: the maximum number was under way; `was_alone`: no other was.
    /// Each creation that was no slower adds one, so that the window doubles with each round; a slower one takes a third away, down
    /// to one. A creation that ran alone resets the baseline.
    pub(in crate::load_balancer) fn ended(&mut self, took: Duration, was_full: bool, was_alone: bool) {
        let quickest = self.quickest.filter(|_| !was_alone).map_or(took, |quickest| quickest.min(took));
        self.quickest = Some(quickest);
        if took > quickest * 2 + CREATION_JITTER {
            self.size = (self.size * 7 / 10).max(1);
        } else if was_full {
            self.size += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::few_at_first(&[], 2)]
    #[case::one_more_for_each_that_is_no_slower(&[6, 6, 8, 9], 6)]
    #[case::noise_is_no_sign(&[6, 15], 4)]
    #[case::fewer_when_they_take_longer(&[6, 6, 6, 6, 6, 6, 6, 6, 40], 7)]
    #[case::down_to_one(&[6, 40, 40, 40, 40, 40], 1)]
    #[case::and_up_again(&[6, 40, 40, 40, 40, 40, 6, 6], 3)]
    fn the_window_follows_the_times(#[case] seconds: &[u64], #[case] size: usize) {
        let mut window = Window::default();
        for took in seconds {
            window.ended(Duration::from_secs(*took), true, false);
        }
        assert_eq!(window.size(), size);
        window.begins_anew();
        assert_eq!(window.size(), INITIAL_SIZE);
    }

    #[tokio::test(start_paused = true)]
    async fn until_the_first_one_has_ended_one_more_begins_every_two_seconds() {
        let (mut window, start) = (Window::default(), Instant::now());
        let at = |window: &mut Window, seconds: u64, is_waited_for: bool| {
            window.passes(is_waited_for, start + Duration::from_secs(seconds));
            window.size()
        };
        assert_eq!(at(&mut window, 60, false), 2, "nobody waits");
        assert_eq!(
            [100, 109, 110, 111, 112, 118].map(|second| at(&mut window, second, true)),
            [2, 2, 3, 3, 4, 7]
        );
        window.is_not_quiet();
        assert_eq!([119, 128, 129].map(|second| at(&mut window, second, true)), [7, 7, 8], "one has failed");
        window.ended(Duration::from_secs(30), false, false);
        assert_eq!(at(&mut window, 300, true), 8, "it is known how long one takes");
    }
}

//! Delays that grow while something goes on failing. Pure.

use std::time::Duration;

/// A delay that grows by a factor each time, up to a longest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// Factor by which each further failure multiplies the delay.
    pub factor: u32,
    /// The longest delay.
    pub longest: Duration,
}

impl Backoff {
    /// Creates a back-off that doubles the delay.
    pub const fn doubling(first: Duration, longest: Duration) -> Self {
        Self { first, factor: 2, longest }
    }

    /// Returns the delay after a failure that follows `failures` others in a row; any number is allowed.
    pub fn delay(&self, failures: u32) -> Duration {
        self.first.saturating_mul(self.factor.saturating_pow(failures)).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_up_to_the_longest_however_often_it_fails() {
        let backoff =
            Backoff { first: Duration::from_secs(30), factor: 4, longest: Duration::from_secs(600) };
        let delays = [0, 1, 2, 3, u32::MAX].map(|failures| backoff.delay(failures).as_secs());
        assert_eq!(delays, [30, 120, 480, 600, 600]);
    }
}

//! Why a pass failed, in the few classes that decide what happens next.

use std::fmt;
use std::time::Duration;

/// The class of a failure. It chooses the delay before the next try, the reason of the Event and the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The user's input is wrong (annotation, Service field, configuration); only a change of it helps.
    UserInput,
    /// An object is locked or just being changed; the same request will work in a moment.
    Busy,
    /// A quota is exhausted, in OpenStack or in the address pool.
    Quota,
    /// The cloud refuses the credentials or the role.
    Auth,
    /// The cloud cannot be reached, is slow, or answers 5xx.
    Unavailable,
    /// An answer that this program does not understand: a defect here or there.
    Bug,
}

impl FailureClass {
    /// Every class, for metrics that start at zero.
    pub const ALL: [Self; 6] =
        [Self::UserInput, Self::Busy, Self::Quota, Self::Auth, Self::Unavailable, Self::Bug];

    /// Stable label value for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserInput => "user_input",
            Self::Busy => "busy",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::Unavailable => "unavailable",
            Self::Bug => "bug",
        }
    }

    /// First and longest delay before the next try; it doubles in between.
    pub fn backoff(self) -> (Duration, Duration) {
        let (first, longest) = match self {
            // A change of the Service or of the nodes wakes it at once; the slow retry covers changes in the cloud.
            Self::UserInput => (30, 300),
            Self::Busy => (1, 15),
            Self::Quota => (30, 300),
            Self::Auth => (5, 120),
            Self::Unavailable => (5, 120),
            Self::Bug => (5, 300),
        };
        (Duration::from_secs(first), Duration::from_secs(longest))
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure it is.
    pub class: FailureClass,
    /// The whole message for the user, with causes. Never holds a secret.
    pub message: String,
    /// The delay that the cloud asked for (`Retry-After`), which replaces the back-off when longer.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure of a class.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), retry_after: None }
    }

    /// Wrong input of the user.
    pub fn user_input(message: impl Into<String>) -> Self {
        Self::new(FailureClass::UserInput, message)
    }

    /// The delay before try number `attempt` (0 for the first retry).
    pub fn delay(&self, attempt: u32) -> Duration {
        let (first, longest) = self.class.backoff();
        let backoff = first.saturating_mul(2_u32.saturating_pow(attempt.min(16))).min(longest);
        self.retry_after.map_or(backoff, |asked| asked.max(backoff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_the_longest() {
        let failure = Failure::new(FailureClass::Bug, "x");
        let delays: Vec<u64> = (0..8).map(|attempt| failure.delay(attempt).as_secs()).collect();
        assert_eq!(delays, [5, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn a_longer_wish_of_the_cloud_replaces_the_backoff() {
        let mut failure = Failure::new(FailureClass::Unavailable, "x");
        failure.retry_after = Some(Duration::from_secs(42));
        assert_eq!(failure.delay(0), Duration::from_secs(42));
        assert_eq!(failure.delay(5), Duration::from_secs(120));
    }

    #[test]
    fn many_attempts_do_not_overflow() {
        assert_eq!(Failure::new(FailureClass::Busy, "x").delay(u32::MAX), Duration::from_secs(15));
    }
}

//! Why a reconciliation failed, in the few classes that decide what happens next.

use std::fmt;
use std::time::Duration;

use crate::backoff::Backoff;

/// A state that is left alone until a person acts or the cloud changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// The load balancer failed inside the cloud. It may serve all the same, so it is neither changed nor replaced.
    LoadBalancerInError,
    /// The load balancer cannot be found. Another project or region may have it, so no second one is created.
    LoadBalancerMissing,
    /// The Service vanished from Kubernetes, and no deletion was seen. Its load balancer may still serve.
    ServiceVanished,
}

impl Hold {
    /// Every hold, for metrics that start at zero.
    pub const ALL: [Self; 3] = [Self::LoadBalancerInError, Self::LoadBalancerMissing, Self::ServiceVanished];

    /// Stable label value for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LoadBalancerInError => "load_balancer_in_error",
            Self::LoadBalancerMissing => "load_balancer_missing",
            Self::ServiceVanished => "service_vanished",
        }
    }
}

/// The class of a failure. It chooses the delay before the next try, the reason of the Event and the metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The user's input is wrong (annotation, Service field, configuration); only a change of it helps.
    UserInput,
    /// An object is locked or just being changed; the same request will work in a moment.
    Busy,
    /// A quota is exhausted, in the cloud or in the address pool.
    Quota,
    /// The cloud refuses the credentials or the role.
    Auth,
    /// The cloud cannot be reached, is slow, or answers 5xx.
    Unavailable,
    /// Nothing is changed, because a change might break what still serves.
    Held(Hold),
    /// An answer that this program does not understand: a defect of either side.
    Bug,
}

impl FailureClass {
    /// Every class, for metrics that start at zero.
    pub const ALL: [Self; 9] = [
        Self::UserInput,
        Self::Busy,
        Self::Quota,
        Self::Auth,
        Self::Unavailable,
        Self::Held(Hold::LoadBalancerInError),
        Self::Held(Hold::LoadBalancerMissing),
        Self::Held(Hold::ServiceVanished),
        Self::Bug,
    ];

    /// Stable label value for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserInput => "user_input",
            Self::Busy => "busy",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::Unavailable => "unavailable",
            Self::Held(hold) => hold.as_str(),
            Self::Bug => "bug",
        }
    }

    /// Returns the delays before the next try.
    pub fn backoff(self) -> Backoff {
        let (first, longest) = match self {
            // A change of the Service or of the nodes causes a retry at once; the slow one covers changes in the cloud.
            Self::UserInput => (30, 300),
            Self::Busy => (1, 15),
            Self::Quota => (30, 300),
            Self::Auth => (5, 120),
            Self::Unavailable => (5, 120),
            // Each retry reads a whole load balancer, and a person needs minutes at least.
            Self::Held(_) => (60, 300),
            Self::Bug => (5, 300),
        };
        Backoff::doubling(Duration::from_secs(first), Duration::from_secs(longest))
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed reconciliation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure it is.
    pub class: FailureClass,
    /// The whole message for the user, with causes. Never holds a secret.
    pub message: String,
    /// The delay that the cloud asked for (`Retry-After`). It replaces the back-off when longer, up to the longest delay of
    /// the class: no answer of the cloud leaves a Service unserved for a day.
    pub retry_after: Option<Duration>,
    /// The minimum delay before the next try where this program imposes a pause. It is kept in full.
    pub rests: Option<Duration>,
    /// Whether the cloud was overloaded (429, 503): the same request may work later, and the answer says nothing about objects.
    pub is_overload: bool,
    /// Whether only a change of the Service helps, because a text of it means nothing: the next try is its next change, or the next
    /// check for drift.
    pub lasts: bool,
}

impl Failure {
    /// Creates a failure of a class.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            retry_after: None,
            rests: None,
            is_overload: false,
            lasts: false,
        }
    }

    /// Creates a failure for a [`Hold`].
    pub fn held(hold: Hold, message: impl Into<String>) -> Self {
        Self::new(FailureClass::Held(hold), message)
    }

    /// Creates a failure for wrong user input.
    pub fn user_input(message: impl Into<String>) -> Self {
        Self::new(FailureClass::UserInput, message)
    }

    /// Returns the delay before try number `attempt` (0 for the first retry).
    pub fn delay(&self, attempt: u32) -> Duration {
        self.class
            .backoff()
            .delay(attempt)
            .max(self.asked().unwrap_or_default())
            .max(self.rests.unwrap_or_default())
    }

    /// Returns the delay that the cloud asked for, at most the longest delay of the class.
    pub fn asked(&self) -> Option<Duration> {
        self.retry_after.map(|asked| asked.min(self.class.backoff().longest))
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
    fn a_wish_of_the_cloud_is_followed_up_to_the_longest_delay_of_the_class() {
        for class in FailureClass::ALL {
            for asked in [86_400, u64::MAX] {
                let mut failure = Failure::new(class, "x");
                failure.retry_after = Some(Duration::from_secs(asked));
                assert_eq!(failure.delay(0), class.backoff().longest, "{class}");
                assert_eq!(failure.asked(), Some(class.backoff().longest), "{class}");
            }
        }
    }

    #[test]
    fn a_rest_that_this_program_chose_is_kept_in_full() {
        let mut failure = Failure::new(FailureClass::Unavailable, "x");
        failure.rests = Some(Duration::from_secs(600));
        assert_eq!(failure.delay(0), Duration::from_secs(600));
    }

    #[test]
    fn many_attempts_do_not_overflow() {
        assert_eq!(Failure::new(FailureClass::Busy, "x").delay(u32::MAX), Duration::from_secs(15));
    }
}

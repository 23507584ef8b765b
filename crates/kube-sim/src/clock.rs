//! The time that objects are stamped with.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;

/// The time. It runs with tokio's clock, so that a paused and advanced runtime moves the stamps as well.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// The time at `origin`.
    base: Timestamp,
    origin: Instant,
}

impl Clock {
    /// Starts from the system's time.
    pub(crate) fn system() -> Self {
        Self::from(Timestamp::now())
    }

    /// Starts from a chosen time.
    pub(crate) fn from(base: Timestamp) -> Self {
        Self { base, origin: Instant::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        later(self.base, self.origin.elapsed())
    }

    /// The time now as a field of type `Time`: whole seconds.
    pub(crate) fn stamp(&self) -> Value {
        seconds(self.now()).into()
    }
}

/// `time` plus a span; stays where it is at the end of all time.
pub(crate) fn later(time: Timestamp, span: Duration) -> Timestamp {
    SignedDuration::try_from(span).ok().and_then(|span| time.checked_add(span).ok()).unwrap_or(time)
}

/// A time with whole seconds, `metav1.Time`.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time with six fractional digits, `metav1.MicroTime`.
pub(crate) fn microseconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

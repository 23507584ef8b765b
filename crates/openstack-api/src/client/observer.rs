//! Watching calls, for metrics.

use std::fmt;
use std::time::Duration;

use crate::error::ErrorKind;

/// How one HTTP exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer that says success.
    Success,
    /// With an error status or without an answer.
    Failure(ErrorKind),
}

/// Learns of every HTTP exchange: of each page of a list and of each repetition on its own. Log-ins are not calls.
pub trait CallObserver: Send + Sync + fmt::Debug {
    /// `call` is the name of the call as the metrics label `request` has it, for example `loadbalancer_create`.
    /// `duration` runs from sending to the last byte of the answer.
    fn observe(&self, call: &'static str, duration: Duration, outcome: Outcome);
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl CallObserver for NoObserver {
    fn observe(&self, _call: &'static str, _duration: Duration, _outcome: Outcome) {}
}

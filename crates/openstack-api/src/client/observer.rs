//! Watching calls, for metrics.

use std::fmt;
use std::time::Duration;

use crate::error::ErrorKind;

/// Learns of every HTTP exchange: of each page of a list and of each repetition on its own. Log-ins are not calls.
pub trait CallObserver: Send + Sync + fmt::Debug {
    /// `call` is the name of the call as the metrics label `request` has it, for example `loadbalancer_create`.
    /// `duration` runs from sending to the last byte of the answer. A failure is an error status, or that there is no answer.
    fn observe(&self, call: &'static str, duration: Duration, outcome: Result<(), ErrorKind>);
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl CallObserver for NoObserver {
    fn observe(&self, _call: &'static str, _duration: Duration, _outcome: Result<(), ErrorKind>) {}
}

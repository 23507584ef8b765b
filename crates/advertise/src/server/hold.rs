//! For how long answers of the API server are believed. Pure: time comes in by the clock only.

use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use tokio::time::Instant;

/// For how long a server is held to drop modes after an answer showed it.
const HOLD: Backoff =
    Backoff { first: Duration::from_secs(30), factor: 4, longest: Duration::from_secs(600) };

/// What the answers so far lead to.
#[derive(Debug, Default)]
pub(super) struct ServerState {
    /// `gitVersion` of the server.
    pub(super) version: Option<String>,
    /// Failed questions in a row.
    pub(super) failures: u32,
    /// After a failed question: nobody who has a Service to publish waits for another one until then.
    pub(super) silent_until: Option<Instant>,
    /// Answers in a row that showed modes dropped by a server that was known to keep them.
    contradictions: u32,
    /// After an answer that showed a mode dropped: one that the server keeps modes is not believed until then. It stays when
    /// it is over.
    pub(super) held_until: Option<Instant>,
    /// When to ask again after a contradiction.
    pub(super) ask_again: Option<Instant>,
}

impl ServerState {
    /// Holds the server to drop modes for a while. After a contradiction longer each time, unless the last hold is long over.
    pub(super) fn hold(&mut self, contradicts: bool) {
        let now = Instant::now();
        if self.held_until.is_none_or(|until| now.saturating_duration_since(until) > HOLD.longest) {
            self.contradictions = 0;
        }
        if contradicts {
            self.contradictions = self.contradictions.saturating_add(1);
        }
        let until = now + HOLD.delay(self.contradictions.saturating_sub(1));
        self.held_until = self.held_until.max(Some(until));
        if self.contradictions > 0 {
            self.ask_again = self.held_until;
        }
    }

    pub(super) fn held(&self) -> bool {
        self.held_until.is_some_and(|until| until > Instant::now())
    }
}

//! Counters of connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many connections there were since the forwarder began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// By the id of each running listener.
    pub listeners: BTreeMap<String, ListenerStatistics>,
    /// Connections that members accepted, health checks not counted, by member id; those of removed members too.
    pub members: BTreeMap<String, u64>,
}

/// The connections of one listener.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListenerStatistics {
    /// All that were accepted, whatever came of them.
    pub total_connections: u64,
    /// Those that are open.
    pub active_connections: u64,
    /// Those from addresses outside `allowed_cidrs`.
    pub denied_connections: u64,
    /// Those for which no member could be reached.
    pub unserved_connections: u64,
}

/// The counters, shared by all connections.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<Statistics>);

impl Counters {
    pub(super) fn read(&self) -> Statistics {
        self.lock().clone()
    }

    /// Begins to count for a listener.
    pub(super) fn add_listener(&self, id: &str) {
        self.lock().listeners.entry(id.to_owned()).or_default();
    }

    /// Forgets a listener.
    pub(super) fn remove_listener(&self, id: &str) {
        self.lock().listeners.remove(id);
    }

    /// Counts a connection as open until the result is dropped.
    pub(super) fn open(self: &Arc<Self>, listener_id: &str) -> OpenConnection {
        self.with(listener_id, |listener| {
            listener.total_connections += 1;
            listener.active_connections += 1;
        });
        OpenConnection { counters: Arc::clone(self), listener_id: listener_id.to_owned() }
    }

    /// Counts a connection to a member.
    pub(super) fn reach_member(&self, id: &str) {
        *self.lock().members.entry(id.to_owned()).or_default() += 1;
    }

    fn with(&self, listener_id: &str, change: impl FnOnce(&mut ListenerStatistics)) {
        if let Some(listener) = self.lock().listeners.get_mut(listener_id) {
            change(listener);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Statistics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection of a listener.
#[derive(Debug)]
pub(super) struct OpenConnection {
    counters: Arc<Counters>,
    listener_id: String,
}

impl OpenConnection {
    /// The client's address is not allowed.
    pub(super) fn denied(&self) {
        self.counters.with(&self.listener_id, |listener| listener.denied_connections += 1);
    }

    /// No member could be reached.
    pub(super) fn unserved(&self) {
        self.counters.with(&self.listener_id, |listener| listener.unserved_connections += 1);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // The listener may have been removed and made again meanwhile.
        self.counters.with(&self.listener_id, |listener| {
            listener.active_connections = listener.active_connections.saturating_sub(1);
        });
    }
}

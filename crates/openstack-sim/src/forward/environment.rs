//! What all listeners and health checks share.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use super::health::HealthTable;
use super::statistics::Counters;

/// Turns an address into another one.
pub(super) type Translation = Arc<dyn Fn(SocketAddr) -> SocketAddr + Send + Sync>;

/// What all listeners and health checks share.
#[derive(Clone)]
pub(super) struct Environment {
    /// From a member's address to one that can be dialled on this machine.
    pub(super) member: Translation,
    /// From the peer of an accepted connection to the client's address in the world.
    pub(super) source: Translation,
    pub(super) health: Arc<HealthTable>,
    pub(super) counters: Arc<Counters>,
}

impl Default for Environment {
    fn default() -> Self {
        let identity: Translation = Arc::new(|address| address);
        Self {
            member: Arc::clone(&identity),
            source: identity,
            health: Arc::default(),
            counters: Arc::default(),
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Environment")
            .field("health", &self.health)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

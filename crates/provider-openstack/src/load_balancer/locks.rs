//! One pass at a time for each load balancer: Services that share one take turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The turn of one pass; it ends when this is dropped.
pub(crate) type LoadBalancerLock = OwnedMutexGuard<()>;

/// The turns, by id or name of the load balancer.
#[derive(Debug, Default)]
pub(crate) struct LoadBalancerLocks {
    turns: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

impl LoadBalancerLocks {
    /// Waits until no other pass works on `load_balancer`; the turn ends when the guard is dropped.
    pub(crate) async fn take(&self, load_balancer: &str) -> LoadBalancerLock {
        self.turn(load_balancer).lock_owned().await
    }

    fn turn(&self, load_balancer: &str) -> Arc<AsyncMutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody holds or waits for those that only the map knows.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(load_balancer.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn two_passes_on_one_load_balancer_take_turns() {
        let turns = LoadBalancerLocks::default();
        let first = turns.take("lb").await;
        assert!(turns.take("lb").now_or_never().is_none());
        assert!(turns.take("another").now_or_never().is_some());
        drop(first);
        assert!(turns.take("lb").now_or_never().is_some());
    }

    #[tokio::test]
    async fn turns_that_nobody_needs_are_forgotten() {
        let turns = LoadBalancerLocks::default();
        for number in 0..100 {
            drop(turns.take(&number.to_string()).await);
        }
        assert_eq!(turns.turns.lock().expect("no poison").len(), 1);
    }
}

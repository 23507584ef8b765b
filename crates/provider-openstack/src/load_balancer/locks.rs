//! One reconciliation at a time for each load balancer: Services that share one wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The locks, by id or name of the load balancer.
#[derive(Debug, Default)]
pub(super) struct LoadBalancerLocks {
    locks: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

/// The lock of one reconciliation; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct LoadBalancerLock<'a> {
    locks: &'a LoadBalancerLocks,
    held: Option<OwnedMutexGuard<()>>,
}

impl LoadBalancerLocks {
    /// Waits until no other reconciliation works on `load_balancer`.
    pub(super) async fn take(&self, load_balancer: &str) -> LoadBalancerLock<'_> {
        let held = self.of(load_balancer).lock_owned().await;
        LoadBalancerLock { locks: self, held: Some(held) }
    }

    fn of(&self, load_balancer: &str) -> Arc<AsyncMutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody holds or waits for those that only the map knows.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(load_balancer.to_owned()).or_default())
    }
}

impl LoadBalancerLock<'_> {
    /// Lets go, and waits until no other reconciliation works on `load_balancer`. Never both at once: two that move to each
    /// other's would wait for ever.
    pub(super) async fn move_to(&mut self, load_balancer: &str) {
        self.held = None;
        self.held = Some(self.locks.of(load_balancer).lock_owned().await);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn two_reconciliations_of_one_load_balancer_wait_for_each_other() {
        let locks = LoadBalancerLocks::default();
        let mut first = locks.take("lb").await;
        assert!(locks.take("lb").now_or_never().is_none());
        assert!(locks.take("another").now_or_never().is_some());
        first.move_to("another").await;
        assert!(locks.take("lb").now_or_never().is_some());
        assert!(locks.take("another").now_or_never().is_none());
        drop(first);
        assert!(locks.take("another").now_or_never().is_some());
    }

    #[tokio::test]
    async fn locks_that_nobody_needs_are_forgotten() {
        let locks = LoadBalancerLocks::default();
        for number in 0..100 {
            drop(locks.take(&number.to_string()).await);
        }
        assert_eq!(locks.locks.lock().expect("no poison").len(), 1);
    }
}

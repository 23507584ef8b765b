//! One reconciliation at a time for each load balancer: Services that share one take turns.
//!
//! No worker blocks on a lock, since other Services need it. A Service that cannot have the lock joins the lock's queue in the same
//! atomic operation, and its reconciliation ends. When the holder is done, only the first in the queue is woken: of all at once,
//! most would find the lock taken again.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::lock::lock;
use openstack_ccm_core::provider::{Waiting, WaitsOn, Wake};
use openstack_ccm_core::service::ServiceKey;

/// A woken Service may no longer need the lock, and then wakes no other: the others retry by themselves after this time.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(30);

/// The locks, by id or name of the load balancer.
pub(in crate::load_balancer) struct LoadBalancerLocks {
    locks: Mutex<HashMap<String, Lock>>,
    wake: Arc<dyn Wake>,
}

#[derive(Debug, Default)]
struct Lock {
    is_held: bool,
    waiting: VecDeque<ServiceKey>,
}

/// The lock that one reconciliation holds; dropping it releases the lock.
#[derive(Debug)]
pub(in crate::load_balancer) struct LoadBalancerLock<'a> {
    locks: &'a LoadBalancerLocks,
    service: &'a ServiceKey,
    held: Option<String>,
    is_denied: bool,
}

impl fmt::Debug for LoadBalancerLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadBalancerLocks").field("locks", &self.locks).finish_non_exhaustive()
    }
}

impl LoadBalancerLocks {
    /// Creates free locks. Waiting Services are woken with `wake`.
    pub(in crate::load_balancer) fn new(wake: Arc<dyn Wake>) -> Self {
        Self { locks: Mutex::default(), wake }
    }

    /// Takes the lock for a Service; where another reconciliation holds it, the Service is queued and woken at its turn.
    pub(in crate::load_balancer) fn take<'a>(
        &'a self,
        load_balancer: &str,
        service: &'a ServiceKey,
    ) -> Option<LoadBalancerLock<'a>> {
        let held = self.is_taken(load_balancer, service).then(|| load_balancer.to_owned())?;
        Some(LoadBalancerLock { locks: self, service, held: Some(held), is_denied: false })
    }

    /// Returns what a Service that could not have a lock waits for.
    pub(in crate::load_balancer) fn turn() -> Waiting {
        Waiting { on: WaitsOn::Turn, at_most: MAX_LOCK_WAIT, unfinished: None }
    }

    fn is_taken(&self, load_balancer: &str, service: &ServiceKey) -> bool {
        let mut locks = self.locks();
        let lock = locks.entry(load_balancer.to_owned()).or_default();
        if !lock.is_held {
            lock.is_held = true;
            lock.waiting.retain(|waits| waits != service);
            return true;
        }
        if !lock.waiting.contains(service) {
            lock.waiting.push_back(service.clone());
        }
        false
    }

    fn release(&self, load_balancer: &str) {
        let mut locks = self.locks();
        let Some(lock) = locks.get_mut(load_balancer) else { return };
        lock.is_held = false;
        let next = lock.waiting.pop_front();
        if lock.waiting.is_empty() {
            locks.remove(load_balancer);
        }
        drop(locks);
        if let Some(next) = next {
            self.wake.wake(&next);
        }
    }

    /// Removes a Service that is being deleted from all queues.
    pub(in crate::load_balancer) fn forget(&self, service: &ServiceKey) {
        self.locks().retain(|_, lock| {
            lock.waiting.retain(|waits| waits != service);
            lock.is_held || !lock.waiting.is_empty()
        });
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<String, Lock>> {
        lock(&self.locks)
    }
}

impl LoadBalancerLock<'_> {
    /// Releases the held lock, and takes that of `load_balancer`. Holding both could deadlock two reconciliations that swap locks.
    ///
    /// # Errors
    /// Another reconciliation holds the lock. Nothing may be written from here on.
    pub(in crate::load_balancer) fn move_to(&mut self, load_balancer: &str) -> Result<(), Failure> {
        if self.held.as_deref() == Some(load_balancer) {
            return Ok(());
        }
        self.let_go();
        if !self.locks.is_taken(load_balancer, self.service) {
            self.is_denied = true;
            return Err(Failure::new(FailureClass::Busy, WaitsOn::Turn.to_string()));
        }
        self.held = Some(load_balancer.to_owned());
        Ok(())
    }

    /// Returns whether another reconciliation held a lock that this one needed.
    pub(in crate::load_balancer) fn is_denied(&self) -> bool {
        self.is_denied
    }

    fn let_go(&mut self) {
        if let Some(held) = self.held.take() {
            self.locks.release(&held);
        }
    }
}

impl Drop for LoadBalancerLock<'_> {
    fn drop(&mut self) {
        self.let_go();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Woken(Mutex<Vec<String>>);

    impl Wake for Woken {
        fn wake(&self, key: &ServiceKey) {
            self.0.lock().unwrap().push(key.name.to_string());
        }
    }

    fn locks() -> (LoadBalancerLocks, Arc<Woken>) {
        let woken = Arc::new(Woken::default());
        (LoadBalancerLocks::new(Arc::clone(&woken) as Arc<dyn Wake>), woken)
    }

    fn key(name: &str) -> ServiceKey {
        ServiceKey::new("default", name)
    }

    #[test]
    fn who_waits_is_woken_one_at_a_time_in_order() {
        let (locks, woken) = locks();
        let [first, second, third] = ["first", "second", "third"].map(key);
        let mut lock = locks.take("lb", &first).unwrap();
        for waits in [&second, &third, &second] {
            assert!(locks.take("lb", waits).is_none());
        }
        assert!(locks.take("another", &third).is_some());
        lock.move_to("another").unwrap();
        assert_eq!(*woken.0.lock().unwrap(), ["second"]);
        let taken = locks.take("lb", &second).unwrap();
        assert!(locks.take("another", &second).is_none());
        drop(taken);
        assert_eq!(*woken.0.lock().unwrap(), ["second", "third"]);
        drop(lock);
        assert_eq!(*woken.0.lock().unwrap(), ["second", "third", "second"]);
    }

    #[test]
    fn who_cannot_move_has_neither_lock() {
        let (locks, woken) = locks();
        let [first, second] = ["first", "second"].map(key);
        let other = locks.take("another", &second).unwrap();
        let mut lock = locks.take("lb", &first).unwrap();
        assert!(lock.move_to("another").is_err() && lock.is_denied());
        assert!(locks.take("lb", &second).is_some());
        drop(other);
        assert_eq!(*woken.0.lock().unwrap(), ["first"]);
    }

    #[test]
    fn locks_that_nobody_needs_are_forgotten() {
        let (locks, _) = locks();
        let [first, second] = ["first", "second"].map(key);
        for number in 0..100 {
            let lock = locks.take(&number.to_string(), &first).unwrap();
            assert!(locks.take(&number.to_string(), &second).is_none());
            locks.forget(&second);
            drop(lock);
        }
        assert!(locks.locks().is_empty());
    }
}

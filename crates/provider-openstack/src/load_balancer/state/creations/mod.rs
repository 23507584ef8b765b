//! How many load balancers are created at once.
//!
//! Octavia works on everything that it was sent at the same time: of thirty creations that it gets at once each one is late, the
//! first one too. So only as many are under way as it finishes without taking longer for each; the others wait in a queue,
//! which costs nothing. Other changes never wait for creations.
//!
//! | module | |
//! | --- | --- |
//! | `window` | how many (pure) |
//! | `queue` | who, and who is next (pure) |

mod queue;
mod window;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openstack_ccm_core::provider::{Gauge, Waiting, WaitsOn, Wake};
use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;
use tracing::{debug, info};

use crate::load_balancer::state::watchlist::EndObserver;
use queue::{ADMISSION_LIFETIME, Admission, Counts, CreationQueue};

/// The creations of load balancers that are under way, and the Services that wait for theirs. Clones are the same.
#[derive(Clone)]
pub(in crate::load_balancer) struct Creations {
    queue: Arc<Mutex<CreationQueue>>,
    wake: Arc<dyn Wake>,
}

impl fmt::Debug for Creations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Creations").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Creations {
    /// None yet. Services are woken with `wake`.
    pub(in crate::load_balancer) fn new(wake: Arc<dyn Wake>) -> Self {
        Self { queue: Arc::default(), wake }
    }

    /// How many there are now.
    fn counts(&self) -> Counts {
        self.lock().counts()
    }

    /// The same for the page of metrics.
    pub(in crate::load_balancer) fn gauges(&self) -> Vec<Gauge> {
        let Counts { waiting, under_way, limit } = self.counts();
        vec![
            Gauge {
                name: "openstack_ccm_load_balancer_creations_waiting",
                help: "Services whose load balancer is not created yet, because Octavia is busy with others",
                value: waiting,
            },
            Gauge {
                name: "openstack_ccm_load_balancer_creations",
                help: "Load balancers that are being created",
                value: under_way,
            },
            Gauge {
                name: "openstack_ccm_load_balancer_creations_limit",
                help: "Maximum number of load balancers that are created at once; it depends on how fast Octavia finishes them",
                value: limit,
            },
        ]
    }

    fn lock(&self) -> MutexGuard<'_, CreationQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks whether the load balancer of a Service may be created now. If not, the Service is woken when it may, and waits until then.
    pub(in crate::load_balancer) fn ask(&self, service: &ServiceKey) -> Result<(), Waiting> {
        let (admission, next) = self.change(|queue| queue.ask(service, Instant::now()));
        self.wake_all(&next);
        match admission {
            Admission::Granted => Ok(()),
            Admission::Queued { before } => {
                Err(Waiting { on: WaitsOn::Creations(before), at_most: ADMISSION_LIFETIME, unfinished: None })
            }
        }
    }

    /// Octavia took the creation.
    pub(in crate::load_balancer) fn sent(&self, service: &ServiceKey) {
        let ((), next) = self.change(|queue| queue.sent(service));
        self.wake_all(&next);
    }

    /// A reconciliation of the Service came to its end. An admission that it did not use goes to another Service.
    pub(in crate::load_balancer) fn reconciled(&self, service: &ServiceKey, is_ready: bool) {
        let ((), next) = self.change(|queue| queue.reconciled(service, is_ready, Instant::now()));
        self.wake_all(&next);
    }

    /// The Service goes.
    pub(in crate::load_balancer) fn forget(&self, service: &ServiceKey) {
        let ((), next) = self.change(|queue| queue.forget(service, Instant::now()));
        self.wake_all(&next);
    }

    /// Makes a change, and returns its result and the Services that are admitted now.
    fn change<R>(&self, change: impl FnOnce(&mut CreationQueue) -> R) -> (R, Vec<ServiceKey>) {
        let mut queue = self.lock();
        let before = queue.counts();
        let result = change(&mut queue);
        let next = queue.take_next(Instant::now());
        let after = queue.counts();
        drop(queue);
        log(before, after);
        (result, next)
    }

    fn wake_all(&self, services: &[ServiceKey]) {
        services.iter().for_each(|service| self.wake.wake(service));
    }
}

impl EndObserver for Creations {
    fn ended(&self, service: &ServiceKey, is_active: bool) {
        let ((), next) = self.change(|queue| queue.ended(service, is_active, Instant::now()));
        self.wake.wake(service);
        self.wake_all(&next);
    }
}

fn log(before: Counts, after: Counts) {
    let Counts { waiting, under_way, limit } = after;
    if (before.waiting == 0) != (waiting == 0) {
        info!(
            waiting,
            under_way,
            limit,
            "Services wait for their load balancers to be created because Octavia is busy creating others"
        );
    } else if before != after {
        debug!(waiting, under_way, limit, "creations of load balancers");
    }
}

#[cfg(test)]
mod tests;

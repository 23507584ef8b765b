//! How many load balancers are created at once.
//!
//! Octavia works on all requests at the same time: of thirty creations that it gets at once, even the first is late. So only as
//! many are under way as Octavia finishes without taking longer for each; until the first one has ended, slowly more. The other Services
//! wait in a queue, which costs nothing. Other changes never wait for creations.
//!
//! | module | |
//! | --- | --- |
//! | `window` | how many creations may be under way (pure) |
//! | `queue` | which Services create, and which is next (pure) |

mod queue;
mod window;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use openstack_ccm_core::lock::lock;
use openstack_ccm_core::provider::{Gauge, Waiting, WaitsOn, Wake};
use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;
use tracing::{debug, info};

use crate::load_balancer::state::watchlist::EndObserver;
use queue::{ADMISSION_LIFETIME, Admission, Counts, CreationQueue};

/// The load balancers that are being created, and the Services that wait to create theirs. Clones share the queue.
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
    /// Creates an empty queue. Services are woken with `wake`.
    pub(in crate::load_balancer) fn new(wake: Arc<dyn Wake>) -> Self {
        Self { queue: Arc::default(), wake }
    }

    /// Returns the current numbers.
    fn counts(&self) -> Counts {
        self.lock().counts()
    }

    /// Returns the current numbers as metrics.
    pub(in crate::load_balancer) fn gauges(&self) -> Vec<Gauge> {
        let Counts { waiting, under_way, limit } = self.counts();
        vec![
            Gauge {
                name: "openstack_ccm_load_balancer_creations_waiting",
                help: "Services whose load balancer is not created yet, because Octavia is busy with others",
                value: waiting,
            },
            Gauge {
                name: "openstack_ccm_load_balancers_being_created",
                help: "Load balancers that are being created",
                value: under_way,
            },
            Gauge {
                name: "openstack_ccm_load_balancer_creations",
                help: "The same as openstack_ccm_load_balancers_being_created, under its name until 0.3",
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
        lock(&self.queue)
    }

    /// Asks whether the Service may create its load balancer now. If not, the Service is queued, and woken when it may.
    pub(in crate::load_balancer) fn ask(&self, service: &ServiceKey) -> Result<(), Waiting> {
        let (admission, mut next) = self.change(|queue| queue.ask(service, Instant::now()));
        // Who asks while a place comes free may be the next one. It uses the place now: woken for it, it would lose it before.
        let is_next = next.iter().position(|admitted| admitted == service).map(|place| next.remove(place));
        self.wake_all(&next);
        match admission {
            Admission::Granted => Ok(()),
            Admission::Queued { .. } if is_next.is_some() => Ok(()),
            Admission::Queued { before } => {
                Err(Waiting { on: WaitsOn::Creations(before), at_most: ADMISSION_LIFETIME, unfinished: None })
            }
        }
    }

    /// Returns whether the Service's load balancer is being created, or waits for its turn.
    pub(in crate::load_balancer) fn includes(&self, service: &ServiceKey) -> bool {
        self.lock().includes(service)
    }

    /// Notes that Octavia accepted the creation.
    pub(in crate::load_balancer) fn sent(&self, service: &ServiceKey) {
        let ((), next) = self.change(|queue| queue.sent(service));
        self.wake_all(&next);
    }

    /// Notes the end of a reconciliation. An admission that it did not use goes to another Service.
    pub(in crate::load_balancer) fn reconciled(&self, service: &ServiceKey, is_ready: bool) {
        let ((), next) = self.change(|queue| queue.reconciled(service, is_ready, Instant::now()));
        self.wake_all(&next);
    }

    /// Removes a Service that is being deleted.
    pub(in crate::load_balancer) fn forget(&self, service: &ServiceKey) {
        let ((), next) = self.change(|queue| queue.forget(service, Instant::now()));
        self.wake_all(&next);
    }

    /// Changes the queue. Returns the result, and the Services that are admitted now.
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

    fn looked(&self) {
        let ((), next) = self.change(|_| ());
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

//! The service controller in a dry run: one Service after the other, each until nothing more would be done.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as k8s;
use kube::Api;
use openstack_ccm_core::failure::FailureClass;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::listed;
use openstack_ccm_runtime::watch::list_all;

use super::cause::{Cause, Causes};
use super::controller::ServiceController;
use super::intent::{Wanted, key};
use super::queue::Reschedule;
use super::trim::trim;
use crate::dry_run::{Concluded, End, recorded};

/// Maximum of reconciliations of one Service. All but the last few of them write, so this is more than any load balancer
/// takes.
const MAX_RECONCILIATIONS: usize = 2000;
/// Reconciliations in a row that write nothing and are answered with "not now".
const MAX_IDLE_RECONCILIATIONS: usize = 3;

/// The controller in a dry run. Its client and its provider's client must not write.
impl ServiceController {
    /// Lists the Services of the cluster, and returns the names of those for which the controller would do something. The
    /// nodes have to be listed before.
    ///
    /// # Errors
    /// The Services cannot be listed.
    pub async fn list(&self) -> kube::Result<Vec<ServiceKey>> {
        let mut concerned = Vec::new();
        let services =
            list_all::<listed::Service, k8s::Service>(Api::all(self.client.clone()), self.sync.reading());
        for mut service in services.await? {
            let ours = &self.sync.ours;
            if ours.wanted(&service, false) != Wanted::Nothing {
                concerned.push(key(&service));
            }
            trim(&mut service, ours, false);
            self.sync.cache.put(key(&service), Arc::new(service));
        }
        concerned.sort();
        Ok(concerned)
    }

    /// Returns a Service as it was listed.
    pub fn object(&self, key: &ServiceKey) -> Option<Arc<k8s::Service>> {
        self.sync.cache.get(key)
    }

    /// Reconciles one Service until nothing more would be done. `writes` returns the number of calls recorded so far.
    pub async fn converge(&mut self, key: &ServiceKey, writes: impl Fn() -> usize) -> Concluded {
        let mut end = End::Waits;
        let (mut before, mut idle) = (writes(), 0);
        for _ in 0..MAX_RECONCILIATIONS {
            let next = self.sync.reconcile(key, Causes::only(Cause::Changed)).await;
            end = match next {
                Reschedule::Done(_) | Reschedule::Unchanged => End::Done,
                Reschedule::Wait(_) | Reschedule::WaitFor(..) => End::Waits,
                Reschedule::Backoff(failure) => End::Failed(failure),
            };
            let now = writes();
            let progressed = now > std::mem::replace(&mut before, now);
            idle = if progressed { 0 } else { idle + 1 };
            let may_go_on = match &end {
                // A load balancer that the Service left is given up only when the Service is served elsewhere. A released
                // Service is still in the cache, and would be released again.
                End::Done => progressed && self.sync.memory.serves(key),
                End::Waits => progressed,
                End::Failed(failure) => {
                    progressed || (failure.class == FailureClass::Busy && idle < MAX_IDLE_RECONCILIATIONS)
                }
            };
            if !may_go_on {
                break;
            }
        }
        Concluded { end, events: recorded(&mut self.events) }
    }

    /// Returns the converged Services that have work again because a Service on the same address converged.
    pub fn woken(&self) -> Vec<ServiceKey> {
        self.queue.drain()
    }
}

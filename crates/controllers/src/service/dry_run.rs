//! The service controller on a dry run: one Service after the other, each until nothing more would be done.

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

/// Reconciliations of one Service in a row. Each of them but the last few writes, so this is more than any load balancer
/// takes.
const MAX_RECONCILIATIONS: usize = 2000;
/// Reconciliations in a row that write nothing and are answered with "not now".
const MAX_IDLE_RECONCILIATIONS: usize = 3;

/// The controller on a dry run. Its client, and the one of its provider, must not write.
impl ServiceController {
    /// Lists the Services of the cluster, and answers for which of them the controller would do something, by name. The
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

    /// A Service as it was listed.
    pub fn object(&self, key: &ServiceKey) -> Option<Arc<k8s::Service>> {
        self.sync.cache.get(key)
    }

    /// Reconciles one Service until nothing more would be done. `writes` says how many calls were recorded so far.
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
                // A load balancer that the Service left is given up only when the Service is served elsewhere. What was
                // released stands in the cache still, and would be released once more.
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

    /// The Services, of those that have converged, that another one's convergence gives something to do: they share an address.
    pub fn woken(&self) -> Vec<ServiceKey> {
        self.queue.drain()
    }
}

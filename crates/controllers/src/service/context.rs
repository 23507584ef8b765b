//! The context of the reconciliation of one Service, and the reports and counts that its parts share.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_advertise::measured::Measured;
use openstack_ccm_advertise::metrics::AdvertiseMetrics;
use openstack_ccm_advertise::server::ServerDetection;
use openstack_ccm_advertise::writer::StatusWriter;
use openstack_ccm_core::failure::{Failure, FailureClass, Hold};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::permit::Gate;
use openstack_ccm_core::provider::{LoadBalancers, Outcome, ProviderNames, Reconciliation, WaitsOn};
use openstack_ccm_core::service::{Goal, ServiceKey};
use openstack_ccm_runtime::events::EventRecorder;
use openstack_ccm_runtime::listed::Interest;
use openstack_ccm_runtime::watch::Reading;
use tokio::sync::watch;
use tokio::time::Instant;

use super::backends::{NodeSelectors, NodeSnapshot};
use super::cache::ServiceCache;
use super::event_texts;
use super::intent::Ours;
use super::memory::Memory;
use super::node_rollout::NodeRollouts;
use super::queue::{Reschedule, ServiceQueue};
use super::wait::{self, Wait};
use crate::PAGE_SIZE;
use crate::known_cluster::KnownCluster;
use crate::metrics::{Operation, ServiceMetrics};
use crate::names::SERVICE_CONTROLLER;

/// Delay after a decision was based on old data: the watch brings the new data sooner.
pub(super) const STALE_CACHE_DELAY: Duration = Duration::from_secs(1);

/// Everything that a reconciliation needs.
pub(crate) struct ServiceSync {
    pub(super) cluster: Arc<KnownCluster>,
    /// The gate of all writes.
    pub(super) gate: Gate,
    pub(super) provider: Arc<dyn LoadBalancers>,
    pub(super) ours: Ours,
    /// The names by which the provider is known.
    pub(super) names: ProviderNames,
    pub(super) writer: StatusWriter,
    pub(super) cache: Arc<ServiceCache>,
    pub(super) memory: Memory,
    pub(super) nodes: watch::Receiver<Arc<NodeSnapshot>>,
    pub(super) selectors: NodeSelectors,
    pub(super) server: Arc<ServerDetection>,
    /// The measurements of the service proxies on nodes.
    pub(super) measured: Measured,
    pub(super) events: EventRecorder,
    pub(super) metrics: ServiceMetrics,
    pub(super) advertise_metrics: AdvertiseMetrics,
    pub(super) rollouts: NodeRollouts,
    /// Delay between two checks for drift.
    pub(super) resync: Option<Duration>,
    /// Queues other Services that a reconciliation affects.
    pub(super) queue: ServiceQueue,
}

/// Returns which metadata of Services is read: the annotations that the provider uses.
pub(super) fn interest(provider: &Arc<dyn LoadBalancers>) -> Interest {
    let provider = Arc::clone(provider);
    Interest::in_annotations(move |key| provider.use_of_annotation(key))
}

impl ServiceSync {
    /// Returns the settings for reading Services.
    pub(super) fn reading(&self) -> Reading {
        Reading { page: PAGE_SIZE, interest: interest(&self.provider) }
    }

    /// Notes the answer to a write, until the watch has it too.
    pub(super) fn answered(&self, key: &ServiceKey, answer: &Arc<k8s::Service>) {
        let answer = Arc::clone(answer);
        self.memory.with(key, |known| known.latest = Some(answer));
    }

    /// Runs a reconciliation of the provider, and counts it.
    pub(super) async fn reconcile_cloud(&self, goal: &Goal, operation: Operation) -> Reconciliation {
        let service = goal.service();
        let start = Instant::now();
        let reconciliation = self.provider.reconcile(goal).await;
        let finished = match &reconciliation.result {
            Ok(Outcome::Ready(ready)) => ready.unfinished.is_none(),
            Ok(Outcome::Waiting(_) | Outcome::Released) => true,
            Err(_) => false,
        };
        if wait::is_over(&reconciliation.result) {
            self.memory.with(&service.key, |known| known.wait = None);
        }
        self.metrics.reconciled(operation, start.elapsed(), !finished);
        let object = event_texts::object(&service.key, &service.uid);
        for notice in &reconciliation.notices {
            self.events.record(&object, self.names.event_source, notice.clone());
        }
        reconciliation
    }

    /// Makes the Service wait for the cloud: the provider wakes it, or it is queued again after `at_most`.
    pub(super) fn wait(&self, key: &ServiceKey, uid: &str, on: WaitsOn, at_most: Duration) -> Reschedule {
        let now = Instant::now();
        self.memory.with(key, |known| known.wait = Some(Wait::again(known.wait.take(), on, now, at_most)));
        self.go_on_waiting(key, uid)
    }

    /// Reports what the Service waits for, if that is due.
    pub(super) fn go_on_waiting(&self, key: &ServiceKey, uid: &str) -> Reschedule {
        let next = self.memory.with(key, |known| known.wait.as_mut().map(|wait| wait.next(Instant::now())));
        // A forgotten Service is reconciled at once.
        let Some((notice, next)) = next.flatten() else { return Reschedule::Wait(Duration::ZERO) };
        if let Some(notice) = notice {
            tracing::info!(service = %key, reason = notice.reason, message = notice.message, "waiting");
            self.record_event(key, uid, notice);
        }
        next
    }

    /// Reports a failure and plans the next try.
    pub(super) fn failed(
        &self,
        key: &ServiceKey,
        uid: &str,
        operation: Operation,
        failure: Failure,
        backends: &[Arc<openstack_ccm_core::node::Node>],
    ) -> Reschedule {
        if self.gate.closed().is_some() {
            // The Service itself is not in trouble, and the present leader reports on it.
            return self.retry(key, failure);
        }
        if let FailureClass::Held(hold) = failure.class
            && !self.note_hold(key, Some(hold))
        {
            // Nothing changes until a person acts on the Event, which is still there.
            self.metrics.failures.count(failure.class);
            return Reschedule::Backoff(failure);
        }
        self.record_event(key, uid, event_texts::failed(operation, &failure, backends));
        self.retry(key, failure)
    }

    /// Notes why the load balancer is held, if it is. Returns whether to report that: the hold is new, or was reported as long ago as the
    /// interval between checks for drift.
    pub(super) fn note_hold(&self, key: &ServiceKey, hold: Option<Hold>) -> bool {
        let now = Instant::now();
        let noted = self.memory.with(key, |known| {
            let before = known.held.map(|(before, _)| before);
            let is_due = |(_, reported): (Hold, Instant)| {
                self.resync.is_some_and(|resync| now.duration_since(reported) >= resync)
            };
            let is_reported = before != hold || known.held.is_some_and(is_due);
            if is_reported {
                known.held = hold.map(|hold| (hold, now));
            }
            (before, is_reported)
        });
        let Some((before, is_reported)) = noted else { return true };
        if before != hold {
            self.metrics.hold_changed(before, hold);
        }
        is_reported
    }

    /// Notes whether no node can take the traffic of a Service.
    pub(super) fn note_without_nodes(&self, key: &ServiceKey, now: bool) {
        let before = self.memory.with(key, |known| std::mem::replace(&mut known.without_nodes, now));
        match (before, now) {
            (Some(false), true) => drop(self.metrics.without_nodes.inc()),
            (Some(true), false) => drop(self.metrics.without_nodes.dec()),
            _ => {}
        }
    }

    /// Counts and logs a failure, and plans the next try.
    pub(super) fn retry(&self, key: &ServiceKey, failure: Failure) -> Reschedule {
        self.metrics.failures.count(failure.class);
        tracing::warn!(service = %key, class = %failure.class, error = %failure, "reconciliation failed");
        Reschedule::Backoff(failure)
    }

    /// Records an event of the controller itself.
    pub(super) fn record_event(&self, key: &ServiceKey, uid: &str, notice: Notice) {
        self.events.record(&event_texts::object(key, uid), SERVICE_CONTROLLER, notice);
    }
}

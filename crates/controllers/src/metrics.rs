//! Metrics of the service controller: the framework's names, those of the provider, and our own.

use std::time::Duration;

use openstack_ccm_core::failure::{FailureClass, Hold};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// One label.
type Label = [(&'static str, &'static str); 1];

/// Buckets of the duration of a reconciliation of the provider, in seconds.
const RECONCILE_BUCKETS: [f64; 21] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 22.5, 25.0, 27.5, 30.0, 50.0,
    75.0, 100.0, 1000.0,
];

/// What one reconciliation of a Service is about; the label `operation` of the metrics of reconciliations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// The load balancer is to agree with the Service.
    Ensure,
    /// Only the nodes changed.
    UpdateNodes,
    /// Nothing is to be left.
    Release,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Ensure, Self::UpdateNodes, Self::Release];

    fn as_str(self) -> &'static str {
        match self {
            Self::Ensure => "loadbalancer_ensure",
            Self::UpdateNodes => "loadbalancer_update",
            Self::Release => "loadbalancer_delete",
        }
    }
}

/// The metrics of one service controller. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct ServiceMetrics {
    host_updates: Counter,
    host_update_errors: Counter,
    host_update_seconds: Histogram,
    node_change_seconds: Histogram,
    reconciles: Family<Label, Counter>,
    reconcile_errors: Family<Label, Counter>,
    reconcile_seconds: Family<Label, Histogram, fn() -> Histogram>,
    failures: Family<Label, Counter>,
    drift_repairs: Counter,
    orphans: Gauge,
    held: Family<Label, Gauge>,
}

impl Default for ServiceMetrics {
    fn default() -> Self {
        Self {
            host_updates: Counter::default(),
            host_update_errors: Counter::default(),
            host_update_seconds: Histogram::new(exponential_buckets(1.0, 2.0, 15)),
            node_change_seconds: Histogram::new(exponential_buckets(1.0, 2.0, 15)),
            reconciles: Family::default(),
            reconcile_errors: Family::default(),
            reconcile_seconds: Family::new_with_constructor(|| Histogram::new(RECONCILE_BUCKETS)),
            failures: Family::default(),
            drift_repairs: Counter::default(),
            orphans: Gauge::default(),
            held: Family::default(),
        }
    }
}

impl ServiceMetrics {
    /// Creates the metrics and makes them visible in `registry`; those that count reconciliations of the provider have its prefix.
    pub(crate) fn registered(registry: &mut Registry, provider: &str) -> Self {
        let metrics = Self::default();
        metrics.register_known(registry);
        metrics.register_reconciliations(registry.sub_registry_with_prefix(provider));
        metrics.register_own(registry);
        for operation in Operation::ALL {
            let label = [("operation", operation.as_str())];
            drop(metrics.reconciles.get_or_create(&label));
            drop(metrics.reconcile_errors.get_or_create(&label));
        }
        for class in FailureClass::ALL {
            drop(metrics.failures.get_or_create(&[("class", class.as_str())]));
        }
        for hold in Hold::ALL {
            drop(metrics.held.get_or_create(&[("reason", hold.as_str())]));
        }
        metrics
    }

    /// Names that dashboards know from the framework.
    fn register_known(&self, registry: &mut Registry) {
        registry.register(
            "service_controller_loadbalancer_sync",
            "Updates of the backends of a load balancer after a change of nodes",
            self.host_updates.clone(),
        );
        registry.register(
            "service_controller_nodesync_error",
            "Failed updates of the backends of a load balancer after a change of nodes",
            self.host_update_errors.clone(),
        );
        registry.register(
            "service_controller_nodesync_latency_seconds",
            "Seconds from a change of nodes until every load balancer was checked",
            self.node_change_seconds.clone(),
        );
        registry.register(
            "service_controller_update_loadbalancer_host_latency_seconds",
            "Seconds that one update of the backends of a load balancer took",
            self.host_update_seconds.clone(),
        );
    }

    /// Names that dashboards know from other controllers of the same cloud.
    fn register_reconciliations(&self, registry: &mut Registry) {
        registry.register("reconcile", "Reconciliations of Services, by operation", self.reconciles.clone());
        registry.register(
            "reconcile_errors",
            "Failed reconciliations of Services, by operation",
            self.reconcile_errors.clone(),
        );
        registry.register(
            "reconcile_duration_seconds",
            "Seconds that the cloud provider took to reconcile a Service",
            self.reconcile_seconds.clone(),
        );
    }

    fn register_own(&self, registry: &mut Registry) {
        registry.register(
            "openstack_ccm_service_failures",
            "Failed reconciliations of Services, by class of failure",
            self.failures.clone(),
        );
        registry.register(
            "openstack_ccm_drift_repairs",
            "Load balancers that differed from their unchanged Service and were corrected",
            self.drift_repairs.clone(),
        );
        registry.register(
            "openstack_ccm_load_balancers_without_service",
            "Orphaned load balancers: created for Services of this cluster that are gone; the log names them",
            self.orphans.clone(),
        );
        registry.register(
            "openstack_ccm_services_held",
            "Services whose load balancer is left as it is until somebody acts, by reason",
            self.held.clone(),
        );
    }

    /// A reconciliation of the provider ended after `elapsed`.
    pub(crate) fn reconciled(&self, operation: Operation, elapsed: Duration, failed: bool) {
        let label = [("operation", operation.as_str())];
        self.reconciles.get_or_create(&label).inc();
        self.reconcile_seconds.get_or_create(&label).observe(elapsed.as_secs_f64());
        if failed {
            self.reconcile_errors.get_or_create(&label).inc();
        }
        if operation == Operation::UpdateNodes {
            self.host_updates.inc();
            self.host_update_seconds.observe(elapsed.as_secs_f64());
            if failed {
                self.host_update_errors.inc();
            }
        }
    }

    /// A change of nodes came to every load balancer.
    pub(crate) fn nodes_followed(&self, elapsed: Duration) {
        self.node_change_seconds.observe(elapsed.as_secs_f64());
    }

    /// What was changed in the cloud behind our back is as it should be again.
    pub(crate) fn drift_repaired(&self) {
        self.drift_repairs.inc();
    }

    /// So many load balancers are there without their Service.
    pub(crate) fn orphans(&self, count: usize) {
        self.orphans.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A reconciliation failed, wherever.
    pub(crate) fn failed(&self, class: FailureClass) {
        self.failures.get_or_create(&[("class", class.as_str())]).inc();
    }

    /// The load balancer of a Service is held for another reason than before; absent: it is not held.
    pub(crate) fn hold_changed(&self, before: Option<Hold>, now: Option<Hold>) {
        if let Some(before) = before {
            self.held.get_or_create(&[("reason", before.as_str())]).dec();
        }
        if let Some(now) = now {
            self.held.get_or_create(&[("reason", now.as_str())]).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text
    }

    #[test]
    fn names_are_those_that_dashboards_know() {
        let mut registry = Registry::default();
        let metrics = ServiceMetrics::registered(&mut registry, "cloudprovider_example");
        metrics.reconciled(Operation::UpdateNodes, Duration::from_secs(2), true);
        metrics.nodes_followed(Duration::from_secs(3));
        let text = text(&registry);
        for line in [
            "service_controller_loadbalancer_sync_total 1",
            "service_controller_nodesync_error_total 1",
            "service_controller_update_loadbalancer_host_latency_seconds_count 1",
            "service_controller_update_loadbalancer_host_latency_seconds_bucket{le=\"16384.0\"} 1",
            "service_controller_nodesync_latency_seconds_bucket{le=\"2.0\"} 0",
            "service_controller_nodesync_latency_seconds_bucket{le=\"4.0\"} 1",
            "cloudprovider_example_reconcile_total{operation=\"loadbalancer_update\"} 1",
            "cloudprovider_example_reconcile_total{operation=\"loadbalancer_ensure\"} 0",
            "cloudprovider_example_reconcile_errors_total{operation=\"loadbalancer_update\"} 1",
            "cloudprovider_example_reconcile_duration_seconds_count{operation=\"loadbalancer_update\"} 1",
            "openstack_ccm_service_failures_total{class=\"quota\"} 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}

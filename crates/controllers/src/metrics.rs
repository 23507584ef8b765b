//! Metrics of the service controller: the framework's names, those of the provider, and our own.

use std::time::Duration;

use openstack_ccm_core::failure::Hold;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::metrics::{FailureCounts, Labels, count_anew, metric, shown};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Buckets of the duration of a reconciliation of the provider, in seconds.
const RECONCILE_BUCKETS: [f64; 21] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 22.5, 25.0, 27.5, 30.0, 50.0,
    75.0, 100.0, 1000.0,
];

/// The purpose of a reconciliation of a Service; the label `operation` of the metrics of reconciliations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// The load balancer is to agree with the Service.
    Ensure,
    /// Only the nodes changed.
    UpdateNodes,
    /// The load balancer is to be removed.
    Release,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Ensure, Self::UpdateNodes, Self::Release];

    fn label(self) -> Labels<1> {
        let name = match self {
            Self::Ensure => "loadbalancer_ensure",
            Self::UpdateNodes => "loadbalancer_update",
            Self::Release => "loadbalancer_delete",
        };
        [("operation", name)]
    }
}

/// Updates of backends, with metric names that dashboards know from the framework.
#[derive(Clone, Debug)]
struct HostUpdates {
    updates: Counter,
    errors: Counter,
    node_change_seconds: Histogram,
    seconds: Histogram,
}

impl HostUpdates {
    fn registered(registry: &mut Registry) -> Self {
        let buckets = || Histogram::new(exponential_buckets(1.0, 2.0, 15));
        Self {
            updates: metric(
                registry,
                "service_controller_loadbalancer_sync",
                "Updates of the backends of a load balancer after a change of nodes",
            ),
            errors: metric(
                registry,
                "service_controller_nodesync_error",
                "Failed updates of the backends of a load balancer after a change of nodes",
            ),
            node_change_seconds: shown(
                registry,
                "service_controller_nodesync_latency_seconds",
                "Seconds from a change of nodes until every load balancer was checked",
                buckets(),
            ),
            seconds: shown(
                registry,
                "service_controller_update_loadbalancer_host_latency_seconds",
                "Seconds that one update of the backends of a load balancer took",
                buckets(),
            ),
        }
    }
}

/// Reconciliations of the provider, with names that dashboards know from other controllers of the same cloud.
#[derive(Clone, Debug)]
struct ReconcileCounts {
    all: Family<Labels<1>, Counter>,
    errors: Family<Labels<1>, Counter>,
    seconds: Family<Labels<1>, Histogram, fn() -> Histogram>,
}

impl ReconcileCounts {
    fn registered(registry: &mut Registry) -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(RECONCILE_BUCKETS);
        let help = "Seconds that the cloud provider took to reconcile a Service";
        let counts = Self {
            all: metric(registry, "reconcile", "Reconciliations of Services, by operation"),
            errors: metric(registry, "reconcile_errors", "Failed reconciliations of Services, by operation"),
            seconds: shown(
                registry,
                "reconcile_duration_seconds",
                help,
                Family::new_with_constructor(seconds),
            ),
        };
        for operation in Operation::ALL {
            drop(counts.all.get_or_create(&operation.label()));
            drop(counts.errors.get_or_create(&operation.label()));
        }
        counts
    }
}

/// The metrics of one service controller. Clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct ServiceMetrics {
    hosts: HostUpdates,
    reconciles: ReconcileCounts,
    /// Failed reconciliations, in any step.
    pub(crate) failures: FailureCounts,
    /// Changes that other clients made in the cloud, and that were reverted.
    pub(crate) drift_repairs: Counter,
    /// Edits of published statuses by other clients.
    pub(crate) status_edits: Counter,
    /// Load balancers whose Service is gone.
    pub(crate) orphans: Gauge,
    /// Services whose traffic no node can take.
    pub(crate) without_nodes: Gauge,
    held: Family<Labels<1>, Gauge>,
    retained: Family<[(&'static str, String); 1], Gauge>,
}

impl ServiceMetrics {
    /// Creates the metrics and makes them visible in `registry`; those that count reconciliations of the provider have its prefix.
    pub(crate) fn registered(registry: &mut Registry, provider: &str) -> Self {
        let metrics = Self {
            hosts: HostUpdates::registered(registry),
            reconciles: ReconcileCounts::registered(registry.sub_registry_with_prefix(provider)),
            failures: FailureCounts::registered(
                registry,
                "openstack_ccm_service_failures",
                "Failed reconciliations of Services, by class of failure",
            ),
            drift_repairs: metric(
                registry,
                "openstack_ccm_drift_repairs",
                "Load balancers that differed from their unchanged Service and were corrected",
            ),
            status_edits: metric(
                registry,
                "openstack_ccm_status_edits_by_others",
                "Changes to the published status of a Service by other clients; a high rate means that \
                 another controller also serves the Service",
            ),
            orphans: metric(
                registry,
                "openstack_ccm_load_balancers_without_service",
                "Orphaned load balancers: created for Services of this cluster that are gone; the log names them",
            ),
            without_nodes: metric(
                registry,
                "openstack_ccm_services_without_nodes",
                "Services for which no node can take traffic; the existing members of their load balancers are kept",
            ),
            retained: metric(
                registry,
                "openstack_ccm_retained_load_balancers",
                "Load balancers that have outlived their Services on purpose (reclaim-policy: retain), by namespace",
            ),
            held: metric(
                registry,
                "openstack_ccm_services_held",
                "Services whose load balancer is not changed until somebody acts, by reason",
            ),
        };
        for hold in Hold::ALL {
            drop(metrics.held.get_or_create(&[("reason", hold.as_str())]));
        }
        metrics
    }

    /// Counts a reconciliation of the provider that ended after `elapsed`.
    pub(crate) fn reconciled(&self, operation: Operation, elapsed: Duration, failed: bool) {
        let Self { hosts, reconciles, .. } = self;
        reconciles.all.get_or_create(&operation.label()).inc();
        reconciles.seconds.get_or_create(&operation.label()).observe(elapsed.as_secs_f64());
        if failed {
            reconciles.errors.get_or_create(&operation.label()).inc();
        }
        if operation == Operation::UpdateNodes {
            hosts.updates.inc();
            hosts.seconds.observe(elapsed.as_secs_f64());
            if failed {
                hosts.errors.inc();
            }
        }
    }

    /// Records that a change of nodes reached every load balancer.
    pub(crate) fn nodes_followed(&self, elapsed: Duration) {
        self.hosts.node_change_seconds.observe(elapsed.as_secs_f64());
    }

    /// Sets the Services that left their load balancers behind on purpose.
    pub(crate) fn set_retained<'a>(&self, services: impl Iterator<Item = &'a ServiceKey>) {
        self.retained.clear();
        services.for_each(|service| {
            self.retained.get_or_create(&[("namespace", service.namespace.to_string())]).inc();
        });
    }

    /// Moves the load balancer of a Service to another reason for which it is held; `None`: it is not held.
    pub(crate) fn hold_changed(&self, before: Option<Hold>, now: Option<Hold>) {
        let label = |hold: Hold| [("reason", hold.as_str())];
        count_anew(&self.held, before.map(label), now.map(label));
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

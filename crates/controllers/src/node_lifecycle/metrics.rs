//! Metrics of the node lifecycle controller. The framework has none of its own.

use openstack_ccm_core::failure::FailureClass;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The metrics of one controller.
#[derive(Debug, Default)]
pub(super) struct LifecycleMetrics {
    held: Gauge,
    deleted: Counter,
    failures: Family<[(&'static str, &'static str); 1], Counter>,
}

impl LifecycleMetrics {
    /// Creates the metrics and makes them visible in `registry`.
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "openstack_ccm_node_deletions_held",
            "Nodes whose server is missing and that are not deleted, because too many are missing at once",
            metrics.held.clone(),
        );
        registry.register(
            "openstack_ccm_node_deletions",
            "Nodes that were deleted because their server is gone",
            metrics.deleted.clone(),
        );
        registry.register(
            "openstack_ccm_node_lifecycle_failures",
            "Rounds in which nodes that are not ready could not be checked in the cloud, by class of failure",
            metrics.failures.clone(),
        );
        for class in FailureClass::ALL {
            drop(metrics.failures.get_or_create(&[("class", class.as_str())]));
        }
        metrics
    }

    /// So many nodes stay although their machine is missing.
    pub(super) fn held(&self, nodes: usize) {
        self.held.set(i64::try_from(nodes).unwrap_or(i64::MAX));
    }

    /// A node was deleted.
    pub(super) fn deleted(&self) {
        self.deleted.inc();
    }

    /// The cloud could not be asked.
    pub(super) fn failed(&self, class: FailureClass) {
        self.failures.get_or_create(&[("class", class.as_str())]).inc();
    }
}

//! Metrics of the node controller, with the framework's names.

use std::time::Duration;

use openstack_ccm_core::failure::FailureClass;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The metrics of one node controller. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct NodeMetrics {
    initial_sync: Histogram,
    taint_removal: Histogram,
    failures: Family<[(&'static str, &'static str); 1], Counter>,
}

impl NodeMetrics {
    /// Creates the metrics and makes them visible in `registry`.
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let since_creation = || Histogram::new(exponential_buckets(1.0, 4.0, 6));
        let metrics = Self {
            initial_sync: since_creation(),
            taint_removal: since_creation(),
            failures: Family::default(),
        };
        registry.register(
            "node_controller_initial_node_sync_delay_seconds",
            "Seconds from the creation of a node until it was initialised",
            metrics.initial_sync.clone(),
        );
        registry.register(
            "node_controller_cloud_provider_taint_removal_delay_seconds",
            "Seconds from the creation of a node until its uninitialized taint was removed",
            metrics.taint_removal.clone(),
        );
        registry.register(
            "openstack_ccm_node_failures",
            "Failed checks of nodes, by class of failure",
            metrics.failures.clone(),
        );
        for class in FailureClass::ALL {
            drop(metrics.failures.get_or_create(&[("class", class.as_str())]));
        }
        metrics
    }

    /// A node was initialised so long after its creation.
    pub(super) fn initialised(&self, after: Duration) {
        self.initial_sync.observe(after.as_secs_f64());
        self.taint_removal.observe(after.as_secs_f64());
    }

    /// A look at one node, or at many together, failed.
    pub(super) fn failed(&self, class: FailureClass) {
        self.failures.get_or_create(&[("class", class.as_str())]).inc();
    }
}

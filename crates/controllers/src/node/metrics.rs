//! Metrics of the node controller, with the framework's names.

use std::time::Duration;

use openstack_ccm_runtime::metrics::{FailureCounts, shown};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The metrics of one node controller. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct NodeMetrics {
    initial_sync: Histogram,
    taint_removal: Histogram,
    /// Failed looks at one node, or at many together.
    pub(super) failures: FailureCounts,
}

impl NodeMetrics {
    /// Creates the metrics and makes them visible in `registry`.
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let since_creation = || Histogram::new(exponential_buckets(1.0, 4.0, 6));
        Self {
            initial_sync: shown(
                registry,
                "node_controller_initial_node_sync_delay_seconds",
                "Seconds from the creation of a node until it was initialised",
                since_creation(),
            ),
            taint_removal: shown(
                registry,
                "node_controller_cloud_provider_taint_removal_delay_seconds",
                "Seconds from the creation of a node until its uninitialized taint was removed",
                since_creation(),
            ),
            failures: FailureCounts::registered(
                registry,
                "openstack_ccm_node_failures",
                "Failed checks of nodes, by class of failure",
            ),
        }
    }

    /// A node was initialised so long after its creation.
    pub(super) fn initialised(&self, after: Duration) {
        self.initial_sync.observe(after.as_secs_f64());
        self.taint_removal.observe(after.as_secs_f64());
    }
}

//! Metrics of the node lifecycle controller. The framework has none of its own.

use openstack_ccm_runtime::metrics::{FailureCounts, metric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The metrics of one controller.
#[derive(Debug)]
pub(super) struct LifecycleMetrics {
    /// Nodes that stay although their machine is missing.
    pub(super) held: Gauge,
    /// Nodes that were deleted.
    pub(super) deleted: Counter,
    /// How often the cloud could not be asked.
    pub(super) failures: FailureCounts,
}

impl LifecycleMetrics {
    /// Creates the metrics and makes them visible in `registry`.
    pub(super) fn registered(registry: &mut Registry) -> Self {
        Self {
            held: metric(
                registry,
                "openstack_ccm_node_deletions_held",
                "Nodes whose server is missing and that are not deleted, because too many are missing at once",
            ),
            deleted: metric(
                registry,
                "openstack_ccm_node_deletions",
                "Nodes that were deleted because their server is gone",
            ),
            failures: FailureCounts::registered(
                registry,
                "openstack_ccm_node_lifecycle_failures",
                "Rounds in which nodes that are not ready could not be checked in the cloud, by class of failure",
            ),
        }
    }
}

//! Metrics of the node lifecycle controller: the framework's names, and our own.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::Presence;
use openstack_ccm_runtime::metrics::{FailureCounts, Labels, metric, shown};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The framework asks for existence and shutdown apart; here one question answers for both.
const OPERATION: (&str, &str) = ("operation", "instance_exists");

/// The metrics of one controller.
#[derive(Debug)]
pub(super) struct LifecycleMetrics {
    /// How long rounds took.
    pub(super) seconds: Histogram,
    /// Questions to the cloud.
    calls: Family<Labels<2>, Counter>,
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
        let metrics = Self {
            seconds: shown(
                registry,
                "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds",
                "Seconds that one round over all nodes took",
                Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            ),
            calls: metric(
                registry,
                "cloud_node_lifecycle_controller_cloud_provider_calls",
                "Questions to the cloud about servers of nodes, by result; a list that answers for many nodes is one question",
            ),
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
        };
        for result in ["success", "instance_not_found", "error"] {
            drop(metrics.calls.get_or_create(&[OPERATION, ("result", result)]));
        }
        metrics
    }

    /// Counts a question to the cloud. About nodes of other clouds it is not asked.
    pub(super) fn asked(&self, answers: &Result<Vec<Presence>, Failure>) {
        let result = match answers.as_deref() {
            Err(_) | Ok([Presence::Unknown(_)]) => "error",
            Ok([Presence::Gone]) => "instance_not_found",
            Ok(answers) if answers.iter().all(|answer| matches!(answer, Presence::Foreign(_))) => return,
            Ok(_) => "success",
        };
        self.calls.get_or_create(&[OPERATION, ("result", result)]).inc();
    }
}

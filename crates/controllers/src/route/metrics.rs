//! Metrics of the route controller: the framework's names, and our own.

use openstack_ccm_runtime::metrics::{FailureCounts, metric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The metrics of one route controller. Clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct RouteMetrics {
    /// Rounds that began.
    pub(super) rounds: Counter,
    /// Routes that were created or deleted.
    pub(super) corrections: Counter,
    /// Failures, by class.
    pub(super) failures: FailureCounts,
    /// Number of nodes that lack a route now.
    pub(super) unreachable: Gauge,
}

impl RouteMetrics {
    /// Creates the metrics and makes them visible in `registry`.
    pub(super) fn registered(registry: &mut Registry) -> Self {
        Self {
            rounds: metric(
                registry,
                "route_controller_route_sync",
                "Comparisons of the routes of the cloud with the nodes",
            ),
            corrections: metric(
                registry,
                "route_controller_route_corrections",
                "Routes that were created or deleted",
            ),
            failures: FailureCounts::registered(
                registry,
                "openstack_ccm_route_failures",
                "Failures while routes were compared or changed, by class of failure",
            ),
            unreachable: metric(
                registry,
                "openstack_ccm_route_unreachable_nodes",
                "Nodes that lack a route to their pods",
            ),
        }
    }
}

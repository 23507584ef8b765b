//! Metrics of the route controller: the framework's names, and our own.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_runtime::metrics::{FailureCounts, Labels, metric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What began a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// The period was over, or the time after a failure.
    Periodic,
    /// Nodes changed in a way that matters.
    NodeChange,
}

impl Trigger {
    const fn label(self) -> &'static str {
        match self {
            Self::Periodic => "periodic",
            Self::NodeChange => "node_change",
        }
    }
}

/// The metrics of one route controller. Clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct RouteMetrics {
    /// Rounds that ended.
    rounds: Family<Labels<2>, Counter>,
    /// Routes that were created or deleted.
    corrections: Counter,
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
                "Comparisons of the routes of the cloud with the nodes, by outcome and trigger",
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

    /// Counts a round that ended, and what it corrected.
    pub(super) fn compared(&self, trigger: Trigger, result: &Result<(), Failure>, corrected: u64) {
        self.corrections.inc_by(corrected);
        let outcome = match result {
            Err(_) => "error",
            Ok(()) if corrected > 0 => "changed",
            Ok(()) => "noop",
        };
        self.rounds.get_or_create(&[("outcome", outcome), ("trigger", trigger.label())]).inc();
    }
}

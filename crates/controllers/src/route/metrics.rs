//! Metrics of the route controller: the framework's names, and our own.

use openstack_ccm_core::failure::FailureClass;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The class of a failure.
type ClassLabel = [(&'static str, &'static str); 1];

/// The metrics of one route controller. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct RouteMetrics {
    rounds: Counter,
    corrections: Counter,
    failures: Family<ClassLabel, Counter>,
    unreachable: Gauge,
}

impl RouteMetrics {
    /// Creates the metrics and makes them visible in `registry`.
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "route_controller_route_sync",
            "Comparisons of the routes of the cloud with the nodes",
            metrics.rounds.clone(),
        );
        registry.register(
            "route_controller_route_corrections",
            "Routes that were created or deleted",
            metrics.corrections.clone(),
        );
        registry.register(
            "openstack_ccm_route_failures",
            "Failures while routes were compared or changed, by class of failure",
            metrics.failures.clone(),
        );
        registry.register(
            "openstack_ccm_route_unreachable_nodes",
            "Nodes that lack a route to their pods",
            metrics.unreachable.clone(),
        );
        for class in FailureClass::ALL {
            drop(metrics.failures.get_or_create(&[("class", class.as_str())]));
        }
        metrics
    }

    /// A round begins.
    pub(super) fn round(&self) {
        self.rounds.inc();
    }

    /// Routes were made or taken away.
    pub(super) fn corrected(&self, routes: usize) {
        self.corrections.inc_by(u64::try_from(routes).unwrap_or(u64::MAX));
    }

    /// Something failed.
    pub(super) fn failed(&self, class: FailureClass) {
        self.failures.get_or_create(&[("class", class.as_str())]).inc();
    }

    /// How many nodes lack a route now.
    pub(super) fn unreachable(&self, nodes: usize) {
        self.unreachable.set(i64::try_from(nodes).unwrap_or(i64::MAX));
    }
}

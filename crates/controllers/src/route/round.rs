//! One comparison of the routes of the cloud with the nodes, and its consequences.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::route::condition::{Network, network};
use openstack_ccm_core::route::plan::{Changes, NodePlan, Plan, decide};
use openstack_ccm_core::route::range::ClusterRanges;
use openstack_ccm_core::route::{Applied, NodeRoute, RoutedNode, Routes};

use super::condition;
use super::metrics::{RouteMetrics, Trigger};
use crate::nodes::{NodeObject, NodeWriter};
use openstack_ccm_runtime::events::EventRecorder;
use openstack_ccm_runtime::metrics;

/// Component of the events, as the framework spells it.
const ROUTE_CONTROLLER: &str = "route_controller";
/// Maximum of conditions written at a time.
const MAX_CONCURRENT_WRITES: usize = 10;

/// Everything that a round needs.
pub(super) struct Round {
    pub(super) provider: Arc<dyn Routes>,
    pub(super) ranges: ClusterRanges,
    pub(super) writer: NodeWriter,
    pub(super) events: EventRecorder,
    pub(super) metrics: RouteMetrics,
}

impl Round {
    /// Makes the cloud agree with the nodes, as far as that is possible, and reports the result for each node.
    ///
    /// # Errors
    /// Of the failures to be retried, the one with the longest delay.
    pub(super) async fn run(&self, trigger: Trigger, known: &[Arc<NodeObject>]) -> Result<(), Failure> {
        let mut corrected = 0;
        let result = self.compare(known, &mut corrected).await;
        self.metrics.compared(trigger, &result, corrected);
        result
    }

    async fn compare(&self, known: &[Arc<NodeObject>], corrected: &mut u64) -> Result<(), Failure> {
        let listed = match self.provider.list().await {
            Ok(listed) => listed,
            Err(failure) => {
                tracing::warn!(error = %failure, "routes could not be listed; no route is changed");
                self.metrics.failures.count(failure.class);
                return Err(failure);
            }
        };
        let nodes: Vec<RoutedNode> = known.iter().map(|node| routed(node)).collect();
        if nodes.is_empty() {
            tracing::debug!("the cluster has no nodes; routes are not changed");
        }
        let plan = decide(&listed.routes, &nodes, &self.ranges);
        log(&plan.changes);
        let applied = self.provider.apply(&listed, &plan.changes).await;
        *corrected = self.count(&plan.changes, &applied);
        let missing: BTreeMap<NodeRoute, Failure> = applied.missing.iter().cloned().collect();
        for (node, known) in plan.nodes.iter().zip(known) {
            self.report(node, known, &missing);
        }
        self.write_conditions(&plan, known, &missing).await;
        let failures = missing.into_values().chain(applied.left.into_iter().map(|(_, failure)| failure));
        failures.max_by_key(|failure| failure.delay(0)).map_or(Ok(()), Err)
    }

    /// Counts what failed, and returns how many routes were created or deleted.
    fn count(&self, changes: &Changes, applied: &Applied) -> u64 {
        let made =
            changes.add.iter().filter(|route| applied.missing.iter().all(|(missing, _)| missing != *route));
        let corrected = made.count() + changes.remove.len().saturating_sub(applied.left.len());
        for (route, failure) in &applied.left {
            self.metrics.failures.count(failure.class);
            tracing::warn!(
                destination = route.destination, next_hop = route.next_hop, error = %failure, "route could not be deleted"
            );
        }
        for (_, failure) in &applied.missing {
            self.metrics.failures.count(failure.class);
        }
        u64::try_from(corrected).unwrap_or(u64::MAX)
    }

    /// Reports each range of a node's pods that has no route.
    fn report(&self, node: &NodePlan, known: &NodeObject, missing: &BTreeMap<NodeRoute, Failure>) {
        let problems = node.problems.iter().map(|problem| (problem.cidr(), problem.to_string()));
        let failures = node
            .routes
            .iter()
            .filter_map(|route| Some((route.destination.to_string(), missing.get(route)?.message.clone())));
        for (cidr, cause) in problems.chain(failures) {
            // Upstream adds the duration. Without it, repeats of the same failure become one event with a count.
            let message =
                format!("Could not create route {} {cidr} for node {}: {cause}", known.uid, node.name);
            tracing::warn!("{message}");
            self.events.record(
                &known.reference(),
                ROUTE_CONTROLLER,
                Notice::warning("FailedToCreateRoute", message),
            );
        }
    }

    async fn write_conditions(
        &self,
        plan: &Plan,
        known: &[Arc<NodeObject>],
        missing: &BTreeMap<NodeRoute, Failure>,
    ) {
        let verdicts: Vec<(&Arc<NodeObject>, Network)> = plan
            .nodes
            .iter()
            .zip(known)
            .filter_map(|(node, known)| Some((known, network(node, |route| missing.contains_key(route))?)))
            .collect();
        let unreachable = verdicts.iter().filter(|(_, network)| *network == Network::Unavailable).count();
        metrics::set(&self.metrics.unreachable, unreachable);
        let writes: Vec<_> = verdicts
            .into_iter()
            .filter(|(known, network)| {
                let current = known.network.as_ref();
                network.differs_from(current.map(|(status, reason)| (status.as_str(), reason.as_str())))
            })
            .map(|(known, network)| async move {
                let name = &known.name;
                if let Err(error) = condition::write(&self.writer, name, network).await {
                    tracing::warn!(
                        node = name,
                        error = error.message(),
                        "the condition of the node could not be written"
                    );
                }
            })
            .collect();
        stream::iter(writes).buffer_unordered(MAX_CONCURRENT_WRITES).collect::<Vec<()>>().await;
    }
}

fn log(changes: &Changes) {
    for NodeRoute { destination, next_hop } in &changes.add {
        tracing::info!(%destination, %next_hop, "route created");
    }
    for removal in &changes.remove {
        let (destination, next_hop) = (&removal.route.destination, &removal.route.next_hop);
        tracing::info!(destination, next_hop, "route deleted");
    }
}

/// Returns the fields on which the routes of a node depend.
fn routed(node: &NodeObject) -> RoutedNode {
    RoutedNode {
        name: node.name.clone(),
        pod_cidrs: node.pod_cidrs.clone(),
        addresses: node.facts.addresses.clone(),
    }
}

//! One comparison of the routes of the cloud with the nodes, and what follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::route::condition::{Network, network};
use openstack_ccm_core::route::plan::{Changes, NodePlan, Plan, decide};
use openstack_ccm_core::route::range::ClusterRanges;
use openstack_ccm_core::route::{Applied, NodeRoute, RoutedNode, Routes};

use super::condition::ConditionWriter;
use super::metrics::Metrics;
use super::watch::{KnownNode, NodeTable};
use crate::events::EventRecorder;

/// Component of the events, as the framework spells it.
const ROUTE_CONTROLLER: &str = "route_controller";
/// Conditions that are written at the same time.
const AT_ONCE: usize = 10;

/// Everything that a round needs.
pub(super) struct Round {
    pub(super) provider: Arc<dyn Routes>,
    pub(super) ranges: ClusterRanges,
    pub(super) conditions: ConditionWriter,
    pub(super) events: EventRecorder,
    pub(super) metrics: Metrics,
}

impl Round {
    /// Makes the cloud agree with the nodes, as far as that is possible, and says of each node whether it does.
    ///
    /// # Errors
    /// Something has to be tried again: the failure that asks for the longest wait.
    pub(super) async fn run(&self, table: &NodeTable) -> Result<(), Failure> {
        self.metrics.round();
        let listed = match self.provider.list().await {
            Ok(listed) => listed,
            Err(failure) => {
                tracing::warn!(error = %failure, "routes not listed; nothing is changed");
                self.metrics.failed(failure.class);
                return Err(failure);
            }
        };
        let nodes: Vec<RoutedNode> = table.nodes.values().map(|node| node.routed.clone()).collect();
        if nodes.is_empty() {
            tracing::debug!("no node is known; routes are left as they are");
        }
        let plan = decide(&listed.routes, &nodes, &self.ranges);
        log(&plan.changes);
        let applied = self.provider.apply(&listed, &plan.changes).await;
        self.count(&plan.changes, &applied);
        let missing: BTreeMap<NodeRoute, Failure> = applied.missing.iter().cloned().collect();
        for (node, known) in plan.nodes.iter().zip(table.nodes.values()) {
            self.report(node, known, &missing);
        }
        self.write_conditions(&plan, table, &missing).await;
        let failures = missing.into_values().chain(applied.left.into_iter().map(|(_, failure)| failure));
        failures.max_by_key(|failure| failure.delay(0)).map_or(Ok(()), Err)
    }

    fn count(&self, changes: &Changes, applied: &Applied) {
        let made =
            changes.add.iter().filter(|route| applied.missing.iter().all(|(missing, _)| missing != *route));
        self.metrics.corrected(made.count() + changes.remove.len().saturating_sub(applied.left.len()));
        for (route, failure) in &applied.left {
            self.metrics.failed(failure.class);
            tracing::warn!(
                destination = route.destination, next_hop = route.next_hop, error = %failure, "route not taken away"
            );
        }
        for (_, failure) in &applied.missing {
            self.metrics.failed(failure.class);
        }
    }

    /// Tells about each range of a node's pods that has no route.
    fn report(&self, node: &NodePlan, known: &KnownNode, missing: &BTreeMap<NodeRoute, Failure>) {
        let problems = node.problems.iter().map(|problem| (problem.cidr(), problem.to_string()));
        let failures = node
            .routes
            .iter()
            .filter_map(|route| Some((route.destination.to_string(), missing.get(route)?.message.clone())));
        for (cidr, cause) in problems.chain(failures) {
            // Without the duration that upstream adds: repeats of the same failure become one event with a count.
            let message =
                format!("Could not create route {} {cidr} for node {}: {cause}", known.uid, node.name);
            tracing::warn!("{message}");
            self.events.record(
                &object(known),
                ROUTE_CONTROLLER,
                Notice::warning("FailedToCreateRoute", message),
            );
        }
    }

    async fn write_conditions(&self, plan: &Plan, table: &NodeTable, missing: &BTreeMap<NodeRoute, Failure>) {
        let verdicts: Vec<(&Arc<KnownNode>, Network)> = plan
            .nodes
            .iter()
            .zip(table.nodes.values())
            .filter_map(|(node, known)| Some((known, network(node, |route| missing.contains_key(route))?)))
            .collect();
        self.metrics
            .unreachable(verdicts.iter().filter(|(_, network)| *network == Network::Unavailable).count());
        let writes: Vec<_> = verdicts
            .into_iter()
            .filter(|(known, network)| {
                let current = known.condition.as_ref();
                network.differs_from(current.map(|(status, reason)| (status.as_str(), reason.as_str())))
            })
            .map(|(known, network)| async move {
                let name = &known.routed.name;
                if let Err(error) = self.conditions.write(name, network).await {
                    tracing::warn!(node = name, error = error.message(), "condition of the node not written");
                }
            })
            .collect();
        stream::iter(writes).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }
}

fn log(changes: &Changes) {
    for NodeRoute { destination, next_hop } in &changes.add {
        tracing::info!(%destination, %next_hop, "route is made");
    }
    for removal in &changes.remove {
        let (destination, next_hop) = (&removal.route.destination, &removal.route.next_hop);
        tracing::info!(destination, next_hop, "route is taken away");
    }
}

fn object(node: &KnownNode) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(node.routed.name.clone()),
        uid: Some(node.uid.clone()),
        ..ObjectReference::default()
    }
}

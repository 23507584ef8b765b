//! The route controller: keeps the cloud's routes to the pods of nodes, and shows the scheduler which nodes can be reached.
//!
//! | module | step |
//! | --- | --- |
//! | `round` | one comparison of the cloud with the nodes |
//! | `condition` | `NetworkUnavailable` in the status of a node |
//! | `metrics` | counts |
//!
//! Rounds never overlap. A round begins when a node changed in a way that matters, and at the latest after the period; after a
//! failure the period grows.

mod condition;
mod metrics;
mod round;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::route::range::ClusterRanges;
use openstack_ccm_core::route::{Routes, Support};
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::dry_run::{Concluded, End, recorded};
use crate::nodes::{NodeChange, NodeInformer, NodeListener, NodeStore, NodeWriter};

use metrics::{RouteMetrics, Trigger};
use openstack_ccm_runtime::events::{self, EventWriter};
use openstack_ccm_runtime::parts::{ControllerError, EventWriting, becomes};
use round::Round;

/// Longest time between two rounds because of failures, unless the cloud asks for more.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Settings of a [`RouteController`].
#[derive(Clone, Debug)]
pub struct RouteControllerOptions {
    /// `--cluster-cidr`: routes outside of it are left alone.
    pub ranges: ClusterRanges,
    /// `--route-reconciliation-period`: longest time between the starts of two rounds.
    pub period: Duration,
    /// Shortest time between the starts of two rounds.
    pub pause: Duration,
    /// Longest wait for one call to the API server.
    pub call_timeout: Duration,
    /// Time that a running round has to end when the controller is stopped; then it is dropped, which is safe.
    pub shutdown_grace: Duration,
}

impl RouteControllerOptions {
    /// Returns the defaults of upstream, for these ranges.
    pub fn new(ranges: ClusterRanges) -> Self {
        Self {
            ranges,
            period: Duration::from_secs(10),
            pause: Duration::from_secs(1),
            call_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

pub struct RouteController {
    provider: Arc<dyn Routes>,
    options: RouteControllerOptions,
    round: Round,
    events: EventWriter,
    nodes: NodeStore,
    changed: Arc<Notify>,
    ready: watch::Sender<bool>,
}

impl RouteController {
    /// Creates a controller; nothing happens before [`RouteController::run`] and
    /// [`NodeInformer::run`].
    pub fn new(
        client: Client,
        provider: Arc<dyn Routes>,
        options: RouteControllerOptions,
        nodes: &mut NodeInformer,
        registry: &mut Registry,
    ) -> Self {
        let (recorder, events) = events::channel(client.clone());
        let round = Round {
            provider: Arc::clone(&provider),
            ranges: options.ranges.clone(),
            writer: NodeWriter::new(client, options.call_timeout),
            events: recorder,
            metrics: RouteMetrics::registered(registry),
        };
        let changed = Arc::new(Notify::new());
        nodes.listen(Arc::new(RoutedNodes { changed: Arc::clone(&changed) }));
        let (nodes, ready) = (nodes.store(), watch::Sender::new(false));
        Self { provider, options, round, events, nodes, changed, ready }
    }

    /// Waits until the nodes have been listed, or until it is clear that there is nothing to do.
    pub fn listed(&self) -> impl Future<Output = ()> + Send + 'static {
        let (listed, ready) = (self.nodes.wait_listed(), becomes(self.ready.subscribe(), |ready| *ready));
        async move {
            tokio::select! {
                () = listed => {}
                () = ready => {}
            }
        }
    }

    /// Works until `shutdown`, then lets a running round end for [`RouteControllerOptions::shutdown_grace`].
    ///
    /// Dropping the future stops everything at once. That is safe at any point, as a crash is.
    ///
    /// # Errors
    /// A part that runs for ever ended.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ControllerError> {
        let supported = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            supported = supported(self.provider.as_ref()) => supported,
        };
        if !supported {
            self.ready.send_replace(true);
            shutdown.cancelled().await;
            return Ok(());
        }
        let writing = EventWriting::start(self.events);
        rounds(&self.round, &self.nodes, &self.changed, &self.options, &shutdown).await;
        writing.finish().await;
        Ok(())
    }

    /// Runs one round over the nodes, which have to be listed before. The clients of the controller and of its provider
    /// must not write.
    pub async fn dry_run(mut self) -> Concluded {
        let result = match self.provider.support().await {
            Ok(Support::Full) => self.round.run(Trigger::Periodic, &self.nodes.serving()).await,
            Ok(Support::None(reason)) => Err(Failure::user_input(reason)),
            Err(failure) => Err(failure),
        };
        Concluded { end: result.map_or_else(End::Failed, |()| End::Done), events: recorded(&mut self.events) }
    }
}

/// Starts a round after a change of nodes.
struct RoutedNodes {
    changed: Arc<Notify>,
}

impl NodeListener for RoutedNodes {
    fn changed(&self, changes: &[NodeChange]) {
        if changes.iter().any(matters) {
            self.changed.notify_one();
        }
    }
}

/// Whether a change concerns routes: a node is new or gone, or its ranges or addresses changed.
fn matters(change: &NodeChange) -> bool {
    change.has_new(|node| (&node.pod_cidrs, &node.facts.addresses))
}

/// Asks whether the cloud can hold routes, until there is an answer.
async fn supported(provider: &dyn Routes) -> bool {
    let mut attempt = 0;
    loop {
        match provider.support().await {
            Ok(Support::Full) => return true,
            Ok(Support::None(reason)) => {
                tracing::warn!("the route controller has nothing to do: {reason}");
                return false;
            }
            Err(failure) => {
                let delay = failure.delay(attempt);
                tracing::warn!(error = %failure, retry_in = ?delay, "could not determine whether the cloud supports routes");
                tokio::time::sleep(delay).await;
                attempt += 1;
            }
        }
    }
}

/// Runs one round after the other, until `shutdown`.
async fn rounds(
    round: &Round,
    nodes: &NodeStore,
    changed: &Notify,
    options: &RouteControllerOptions,
    shutdown: &CancellationToken,
) {
    let (mut failures, mut trigger) = (0, Trigger::Periodic);
    tokio::select! {
        () = shutdown.cancelled() => return,
        () = nodes.wait_listed() => {}
    }
    loop {
        let start = Instant::now();
        let nodes = nodes.serving();
        let running =
            round.run(trigger, &nodes).instrument(tracing::debug_span!("routes", nodes = nodes.len()));
        let stopped = async {
            shutdown.cancelled().await;
            tokio::time::sleep(options.shutdown_grace).await;
        };
        let result = tokio::select! {
            result = running => result,
            () = stopped => return,
        };
        let wait = match &result {
            Ok(()) => options.period,
            Err(failure) => options.period.max(backoff(failure, failures)),
        };
        failures = if result.is_ok() { 0 } else { failures + 1 };
        trigger = tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep_until(start + wait) => Trigger::Periodic,
            () = changed.notified() => tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep_until(start + options.pause) => Trigger::NodeChange,
            },
        };
    }
}

fn backoff(failure: &Failure, attempt: u32) -> Duration {
    failure.delay(attempt).min(MAX_BACKOFF).max(failure.asked().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as k8s;
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::nodes::NodeObject;

    fn node(spec: &Value, status: &Value) -> Option<Arc<NodeObject>> {
        let node: k8s::Node =
            from_value(json!({"metadata": {"name": "n1", "uid": "u1"}, "spec": spec, "status": status}))
                .unwrap();
        Some(Arc::new(node.into()))
    }

    fn plain() -> (Value, Value) {
        (
            json!({"podCIDRs": ["10.244.1.0/24"]}),
            json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}]}),
        )
    }

    /// A changed address or range of a node starts a round; whatever else changes does not.
    ///
    /// Framework: R14, better: not only with a feature gate, and the round begins within a second, not after up to ten.
    #[rstest]
    #[case::address(json!({"podCIDRs": ["10.244.1.0/24"]}),
        json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.99"}]}), true)]
    #[case::range(json!({"podCIDRs": ["10.244.2.0/24"]}),
        json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}]}), true)]
    #[case::nothing(plain().0, plain().1, false)]
    #[case::images(plain().0, json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}],
        "images": [{"names": ["a:v1"], "sizeBytes": 1}]}), false)]
    #[case::condition(plain().0, json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}],
        "conditions": [{"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}]}), false)]
    fn framework_r14_only_changes_that_routes_follow_start_a_round(
        #[case] spec: Value,
        #[case] status: Value,
        #[case] expected: bool,
    ) {
        let old = node(&plain().0, &plain().1);
        assert_eq!(matters(&NodeChange { old, new: node(&spec, &status), listed: false }), expected);
    }

    #[test]
    fn a_node_that_comes_or_goes_starts_a_round() {
        let node = || node(&plain().0, &plain().1);
        assert!(matters(&NodeChange { old: None, new: node(), listed: false }));
        assert!(matters(&NodeChange { old: node(), new: None, listed: false }));
    }
}

//! The node controller: makes new nodes ready for pods, and keeps the addresses of all nodes as the cloud has them.
//!
//! | module | step |
//! | --- | --- |
//! | `wanted` | what a node gets, from what is known of its machine (pure) |
//! | `sync` | the reconciliation of the nodes that are due |
//! | `refresh` | the addresses of all nodes, now and then |

mod refresh;
mod sync;
mod wanted;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use openstack_ccm_core::instance::Instances;
use openstack_ccm_core::instance::label;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::dry_run::{Concluded, End, recorded};
use crate::nodes::{NodeChange, NodeInformer, NodeListener, NodeObject, NodeWriter};
use crate::queue::{TakenKey, WorkQueue, WorkQueues};
use openstack_ccm_runtime::events::{self, EventWriter, Lasting};
use openstack_ccm_runtime::metrics::{FailureCounts, shown};
use openstack_ccm_runtime::parts::{ControllerError, named, run_parts};
use refresh::Refresh;
use sync::NodeSync;

/// Settings of a [`NodeController`].
#[derive(Clone, Debug)]
pub struct NodeControllerOptions {
    /// New nodes that are written at the same time; at least 1.
    pub concurrency: usize,
    /// Nodes whose addresses are written at the same time; at least 1.
    pub status_concurrency: usize,
    /// How often the addresses of all nodes are compared with the cloud.
    pub status_update_frequency: Duration,
    /// How often a Warning whose cause lasts is written; absent: once.
    pub warning_interval: Option<Duration>,
    /// New nodes within this time are looked at together.
    pub batch_delay: Duration,
    /// Longest wait for one call to the API server.
    pub call_timeout: Duration,
}

impl Default for NodeControllerOptions {
    fn default() -> Self {
        Self {
            concurrency: 1,
            status_concurrency: 1,
            status_update_frequency: Duration::from_secs(300),
            warning_interval: None,
            batch_delay: Duration::from_millis(100),
            call_timeout: Duration::from_secs(30),
        }
    }
}

/// The nodes that deserve a reconciliation. All that are ready are taken together: one question to the cloud serves them all.
type NodeQueue = WorkQueue<String, ()>;

/// A node that was taken out of it.
type TakenNode = TakenKey<String, ()>;

pub struct NodeController {
    options: NodeControllerOptions,
    queue: NodeQueue,
    sync: Arc<NodeSync>,
    events: EventWriter,
}

impl NodeController {
    /// Puts a controller together; nothing happens before [`NodeController::run`] and
    /// [`NodeInformer::run`].
    pub fn new(
        client: Client,
        instances: Arc<dyn Instances>,
        options: NodeControllerOptions,
        nodes: &mut NodeInformer,
        registry: &mut Registry,
        queues: &WorkQueues,
    ) -> Self {
        // No random delays: nodes that failed together are asked about together again.
        let queue = NodeQueue::new((), false);
        queue.register("Nodes", queues);
        nodes.listen(Arc::new(NewNodes { queue: queue.clone() }));
        let (recorder, events) = events::channel(client.clone());
        let sync = Arc::new(NodeSync {
            instances,
            store: nodes.store(),
            writer: NodeWriter::new(client, options.call_timeout),
            events: recorder,
            metrics: NodeMetrics::registered(registry),
        });
        Self { options, queue, sync, events }
    }

    /// Waits until the nodes of the cluster are known, for readiness.
    pub fn listed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.sync.store.wait_listed()
    }

    /// Works until `shutdown`. Every reconciliation may be stopped at any call.
    ///
    /// # Errors
    /// A part ended that runs for ever.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ControllerError> {
        let Self { options, queue, sync, events } = self;
        let mut parts = JoinSet::new();
        let reconciling = sync.clone().work(queue, options.concurrency.max(1), options.batch_delay);
        parts.spawn(named("reconciliation of new nodes", reconciling));
        let lasting = Lasting::new(options.warning_interval);
        let concurrency = options.status_concurrency.max(1);
        let refresh = Refresh { sync, concurrency, lasting }.follow(options.status_update_frequency);
        parts.spawn(named("refresh of addresses", refresh));
        run_parts(parts, events, shutdown).await
    }

    /// Looks once at all nodes, which have to be listed before. The client of the controller must not write.
    pub async fn dry_run(mut self) -> Concluded {
        self.sync.reconcile(self.queue.take_ready(), 1).await;
        let mut refresh = Refresh { sync: self.sync, concurrency: 1, lasting: Lasting::new(None) };
        let end = refresh.round().await.map_or_else(End::Failed, |()| End::Done);
        Concluded { end, events: recorded(&mut self.events) }
    }
}

/// Queues the nodes that need a reconciliation.
struct NewNodes {
    queue: NodeQueue,
}

impl NodeListener for NewNodes {
    fn changed(&self, changes: &[NodeChange]) {
        let due = changes.iter().filter(|change| needs_a_reconciliation(change));
        due.filter_map(|change| change.new.as_ref()).for_each(|node| self.queue.add(&node.name, ()));
    }
}

/// Whether a change can lead to a write. A heartbeat cannot.
fn needs_a_reconciliation(change: &NodeChange) -> bool {
    let is_due =
        |node: &NodeObject| node.is_uninitialized() || !label::reconcile(&node.facts.labels).is_empty();
    change.new.as_deref().is_some_and(is_due)
        && (change.listed
            || change.has_new(|node| {
                (&node.uid, &node.facts.labels, &node.facts.provider_id, &node.taints, &node.provided_ip)
            }))
}

/// The metrics of one node controller. Clones count together. They have the framework's names.
#[derive(Clone, Debug)]
struct NodeMetrics {
    initial_sync: Histogram,
    taint_removal: Histogram,
    /// Failed looks at one node, or at many together.
    failures: FailureCounts,
}

impl NodeMetrics {
    /// Creates the metrics and makes them visible in `registry`.
    fn registered(registry: &mut Registry) -> Self {
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
    fn initialised(&self, after: Duration) {
        self.initial_sync.observe(after.as_secs_f64());
        self.taint_removal.observe(after.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// A restored backup may undo what was written before the watch showed it: then nothing looks new, and the node is tainted.
    #[rstest]
    #[case::a_heartbeat(false, false)]
    #[case::a_list(true, true)]
    fn a_node_that_is_not_initialised_is_due_whenever_it_is_listed(#[case] listed: bool, #[case] due: bool) {
        let node = json!({"metadata": {"name": "node-1", "uid": "n1"}, "spec": {"taints": [
            {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}]}});
        let node: k8s_openapi::api::core::v1::Node = serde_json::from_value(node).unwrap();
        let node = Some(Arc::new(NodeObject::from(node)));
        assert_eq!(needs_a_reconciliation(&NodeChange { old: node.clone(), new: node, listed }), due);
    }
}

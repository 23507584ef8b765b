//! One watch of nodes for all controllers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::runtime::watcher::Event;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::missing::MissingMachines;
use openstack_ccm_core::instance::{Instances, NodeIdentity, Presence};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;

use super::object::reading;
use super::store::{NodeChange, NodeStore};
use crate::known_cluster::ClusterClient;
use openstack_ccm_runtime::listed;
use openstack_ccm_runtime::parts::{ControllerError, named, part_ended};
use openstack_ccm_runtime::watch::{events, list_all};

/// Number of nodes for which an old list is doubted. The encoder of the registry ends help texts with a full stop.
const DOUBTED: &str = "openstack_ccm_doubted_nodes";
const DOUBTED_HELP: &str =
    "Nodes that an outdated list lacks or shows in an earlier state; their last known state is used.";

/// Time between two checks whether the machines of doubted nodes are gone.
const MACHINE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A controller that works on nodes. A call delays the watch, so the controller only notes the changes.
pub(crate) trait NodeListener: Send + Sync {
    /// Notes changes of the known nodes. The first list is passed on as well, even if it is empty.
    fn changed(&self, changes: &[NodeChange]);

    /// Notes that the watch was interrupted: the API server may be another one now.
    fn interrupted(&self) {}
}

/// Follows the nodes of the cluster for all controllers that are created with it.
pub struct NodeInformer {
    client: ClusterClient,
    store: NodeStore,
    instances: Option<Arc<dyn Instances>>,
    listeners: Vec<Arc<dyn NodeListener>>,
}

impl NodeInformer {
    /// Creates an informer; no request is sent before [`NodeInformer::run`].
    pub fn new(client: ClusterClient) -> Self {
        Self { client, store: NodeStore::default(), instances: None, listeners: Vec::new() }
    }

    /// Lets the informer look up the servers of nodes that only a stale list lacks.
    pub fn ask(&mut self, instances: Arc<dyn Instances>) {
        self.instances = Some(instances);
    }

    /// Returns the number of known nodes.
    pub fn count(&self) -> usize {
        self.store.all().len()
    }

    /// Returns the store of the known nodes.
    pub(crate) fn store(&self) -> NodeStore {
        self.store.clone()
    }

    /// Shows in `registry` how many nodes are doubted.
    pub fn show_doubted(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(DoubtedNodes(self.store.clone())));
    }

    /// Passes changes on to a controller.
    pub(crate) fn listen(&mut self, listener: Arc<dyn NodeListener>) {
        self.listeners.push(listener);
    }

    /// Follows the nodes for ever. Dropping the future ends the watch.
    ///
    /// Returns only if the watch ended by itself, which is a defect.
    pub async fn run(self) -> ControllerError {
        let mut parts = JoinSet::new();
        let cluster = Arc::clone(&self.client.cluster);
        parts.spawn(named("check of the cluster's identity", async move { cluster.follow().await }));
        if let Some(instances) = self.instances.clone() {
            let asking = ask_for_doubted(instances, self.store.clone(), self.listeners.clone());
            parts.spawn(named("questions about doubted nodes", asking));
        }
        parts.spawn(named("watch of nodes", self.follow()));
        part_ended(parts.join_next().await)
    }

    /// Lists the nodes once in place of following them, for a dry run.
    ///
    /// # Errors
    /// The nodes cannot be listed.
    pub async fn list(&self) -> kube::Result<()> {
        let mut arriving = BTreeMap::new();
        let nodes = Api::all(self.client.client.clone());
        for node in list_all::<listed::Node, Node>(nodes, reading()).await? {
            let _more = self.store.apply(Event::InitApply(node), &mut arriving);
        }
        let changes = self.store.apply(Event::InitDone, &mut arriving).unwrap_or_default();
        self.listeners.iter().for_each(|listener| listener.changed(&changes));
        self.store.note_listed();
        Ok(())
    }

    async fn follow(self) {
        let Self { client: ClusterClient { client, cluster, .. }, store, listeners, instances: _ } = self;
        let stream = events::<listed::Node, Node>(Api::all(client), reading());
        pin_mut!(stream);
        let mut arriving = BTreeMap::new();
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => {
                    let is_list = matches!(event, Event::InitDone);
                    // The event may be of another cluster; a list needs a check that began after it.
                    if is_list {
                        cluster.begun();
                    }
                    cluster.confirmed().await;
                    let Some(changes) = store.apply(event, &mut arriving) else { continue };
                    listeners.iter().for_each(|listener| listener.changed(&changes));
                    if is_list {
                        store.note_listed();
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "watch of nodes interrupted");
                    listeners.iter().for_each(|listener| listener.interrupted());
                }
            }
        }
    }
}

/// Counts, at each scrape, the nodes for which an old list is doubted.
struct DoubtedNodes(NodeStore);

impl fmt::Debug for DoubtedNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DoubtedNodes").finish_non_exhaustive()
    }
}

impl Collector for DoubtedNodes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let gauge = ConstGauge::new(i64::try_from(self.0.doubted().len()).unwrap_or(i64::MAX));
        gauge.encode(encoder.encode_descriptor(DOUBTED, DOUBTED_HELP, None, MetricType::Gauge)?)
    }
}

/// Checks for ever whether the machines of nodes that only an old list lacks are gone: then these nodes are gone, too.
async fn ask_for_doubted(
    instances: Arc<dyn Instances>,
    store: NodeStore,
    listeners: Vec<Arc<dyn NodeListener>>,
) {
    loop {
        tokio::time::sleep(MACHINE_CHECK_INTERVAL).await;
        match gone(instances.as_ref(), &store).await {
            Ok(names) if names.is_empty() => {}
            Ok(names) => {
                let changes = store.believe(&names);
                listeners.iter().for_each(|listener| listener.changed(&changes));
            }
            Err(failure) => {
                tracing::warn!(
                    %failure,
                    "the servers of the Nodes that the API server returned in an earlier state could not \
                     be looked up; this is retried"
                );
            }
        }
    }
}

/// Returns the doubted nodes whose machines are gone, by a list that is believed and by a request for each machine.
async fn gone(instances: &dyn Instances, store: &NodeStore) -> Result<Vec<String>, Failure> {
    let doubted = store.doubted();
    if doubted.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<NodeIdentity> = store.known().iter().map(|node| node.identity()).collect();
    let answers = instances.presence(&all).await?;
    if MissingMachines::among(&answers).doubt().is_some() {
        return Ok(Vec::new());
    }
    let mut gone = Vec::new();
    for (node, answer) in all.into_iter().zip(answers) {
        if answer != Presence::Gone || !doubted.contains(&node.name) {
            continue;
        }
        if instances.presence(std::slice::from_ref(&node)).await? == [Presence::Gone] {
            gone.push(node.name);
        }
    }
    Ok(gone)
}

//! The nodes of the cluster as a watch tells of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use tokio::sync::watch;

use super::NodeObject;
use crate::lock::lock;
use crate::watch::events;

/// The known nodes. Clones share them.
#[derive(Clone)]
pub(crate) struct NodeStore {
    nodes: Arc<Mutex<BTreeMap<String, Arc<NodeObject>>>>,
    listed: watch::Sender<bool>,
}

impl Default for NodeStore {
    fn default() -> Self {
        Self { nodes: Arc::default(), listed: watch::Sender::new(false) }
    }
}

impl NodeStore {
    /// All nodes, by name.
    pub(crate) fn all(&self) -> Vec<Arc<NodeObject>> {
        lock(&self.nodes).values().cloned().collect()
    }

    /// One node.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<NodeObject>> {
        lock(&self.nodes).get(name).cloned()
    }

    /// Waits until the nodes have been listed once.
    pub(crate) fn wait_listed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut listed = self.listed.subscribe();
        async move {
            // An error means that the watch ended, which is noticed where the watch is joined.
            if listed.wait_for(|listed| *listed).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn insert(&self, node: NodeObject) -> NodeChange {
        let node = Arc::new(node);
        let old = lock(&self.nodes).insert(node.name.clone(), Arc::clone(&node));
        NodeChange { old, new: node }
    }
}

/// A node that is new or changed.
pub(crate) struct NodeChange {
    /// What was known of it.
    pub(crate) old: Option<Arc<NodeObject>>,
    /// What is known now.
    pub(crate) new: Arc<NodeObject>,
}

/// Follows the nodes of the cluster for ever, and reports every one that is new or changed.
pub(crate) async fn follow(client: Client, store: NodeStore, report: impl Fn(&NodeChange) + Send) {
    let stream = events::<Node>(Api::all(client));
    pin_mut!(stream);
    let mut arriving = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => arriving.clear(),
            Ok(Event::InitApply(node)) => arriving.push(NodeObject::from(node)),
            Ok(Event::InitDone) => {
                let mut old = std::mem::take(&mut *lock(&store.nodes));
                for node in arriving.drain(..) {
                    let known = old.remove(&node.name);
                    let change = store.insert(node);
                    report(&NodeChange { old: known, ..change });
                }
                store.listed.send_replace(true);
            }
            Ok(Event::Apply(node)) => report(&store.insert(node.into())),
            Ok(Event::Delete(node)) => {
                lock(&store.nodes).remove(&node.metadata.name.unwrap_or_default());
            }
            Err(error) => tracing::warn!(%error, "watch of nodes interrupted"),
        }
    }
}

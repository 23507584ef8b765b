//! One watch of nodes for all controllers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::NodeObject;
use openstack_ccm_runtime::lock::lock;
use openstack_ccm_runtime::parts::{ControllerError, becomes, named, part_ended};
use openstack_ccm_runtime::watch::{events, list_all};

/// The known nodes. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct NodeStore {
    nodes: Arc<Mutex<BTreeMap<String, Arc<NodeObject>>>>,
    listed: watch::Sender<bool>,
}

impl NodeStore {
    /// All nodes, by name.
    pub(crate) fn all(&self) -> Vec<Arc<NodeObject>> {
        lock(&self.nodes).values().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<NodeObject>> {
        lock(&self.nodes).get(name).cloned()
    }

    /// Waits until the nodes have been listed once.
    pub(crate) fn wait_listed(&self) -> impl Future<Output = ()> + Send + use<> {
        becomes(self.listed.subscribe(), |listed| *listed)
    }

    /// Takes in one event. Answers what changed by it; nothing while a new list arrives.
    fn apply(
        &self,
        event: Event<Node>,
        arriving: &mut BTreeMap<String, Arc<NodeObject>>,
    ) -> Option<Vec<NodeChange>> {
        match event {
            Event::Init => {
                arriving.clear();
                None
            }
            Event::InitApply(node) => {
                let node = self.reduced(node);
                arriving.insert(node.name.clone(), node);
                None
            }
            Event::InitDone => Some(self.replace(std::mem::take(arriving))),
            Event::Apply(node) => {
                let node = self.reduced(node);
                let old = lock(&self.nodes).insert(node.name.clone(), Arc::clone(&node));
                Some(vec![NodeChange { old, new: Some(node), listed: false }])
            }
            Event::Delete(node) => {
                let old = lock(&self.nodes).remove(&node.metadata.name.unwrap_or_default());
                Some(vec![NodeChange { old, new: None, listed: false }])
            }
        }
    }

    fn replace(&self, new: BTreeMap<String, Arc<NodeObject>>) -> Vec<NodeChange> {
        let mut old = std::mem::replace(&mut *lock(&self.nodes), new.clone());
        let there = new.into_iter().map(|(name, node)| (old.remove(&name), Some(node))).collect::<Vec<_>>();
        let gone = old.into_values().map(|node| (Some(node), None));
        there.into_iter().chain(gone).map(|(old, new)| NodeChange { old, new, listed: true }).collect()
    }

    /// Keeps the known facts where nothing that matters changed, so that heartbeats cost no memory.
    fn reduced(&self, node: Node) -> Arc<NodeObject> {
        let mut node = NodeObject::from(node);
        if let Some(known) = self.get(&node.name).filter(|known| known.facts == node.facts) {
            node.facts = Arc::clone(&known.facts);
        }
        Arc::new(node)
    }
}

/// One node before and after an event; absent where it is not there.
pub(crate) struct NodeChange {
    /// What was known of it.
    pub(crate) old: Option<Arc<NodeObject>>,
    /// What is known now.
    pub(crate) new: Option<Arc<NodeObject>>,
    /// Whether a list shows it: what was before that, such as a write of ours that a restored backup undid, may not have been seen.
    pub(crate) listed: bool,
}

impl NodeChange {
    /// Whether the node is new or gone, or this part of it is another one.
    pub(crate) fn has_new<'a, T: PartialEq>(&'a self, part: impl Fn(&'a NodeObject) -> T) -> bool {
        self.old.as_deref().map(&part) != self.new.as_deref().map(&part)
    }
}

/// A controller that works on nodes. It is called while the watch waits, so it only notes what has changed.
pub(crate) trait NodeListener: Send + Sync {
    /// The known nodes may be others now. The first list is passed on as well, also when it is empty.
    fn changed(&self, changes: &[NodeChange]);

    /// The watch was interrupted: the API server may be another one now.
    fn interrupted(&self) {}
}

/// Follows the nodes of the cluster for all controllers that are put together with it.
pub struct NodeInformer {
    client: Client,
    store: NodeStore,
    listeners: Vec<Arc<dyn NodeListener>>,
}

impl NodeInformer {
    /// Nothing is asked before [`NodeInformer::run`].
    pub fn new(client: Client) -> Self {
        Self { client, store: NodeStore::default(), listeners: Vec::new() }
    }

    /// How many nodes are known.
    pub fn count(&self) -> usize {
        self.store.all().len()
    }

    /// The nodes as they are known.
    pub(crate) fn store(&self) -> NodeStore {
        self.store.clone()
    }

    /// Passes changes on to a controller.
    pub(crate) fn listen(&mut self, listener: Arc<dyn NodeListener>) {
        self.listeners.push(listener);
    }

    /// Follows the nodes for ever. Dropping the future ends the watch.
    ///
    /// Answers only when the watch ended by itself, which is a defect.
    pub async fn run(self) -> ControllerError {
        let mut parts = JoinSet::new();
        parts.spawn(named("watch of nodes", self.follow()));
        part_ended(parts.join_next().await)
    }

    /// Lists the nodes once in place of following them, for a dry run.
    ///
    /// # Errors
    /// The nodes cannot be listed.
    pub async fn list(&self) -> kube::Result<()> {
        let mut arriving = BTreeMap::new();
        for node in list_all::<Node>(Api::all(self.client.clone())).await? {
            let _more = self.store.apply(Event::InitApply(node), &mut arriving);
        }
        let changes = self.store.apply(Event::InitDone, &mut arriving).unwrap_or_default();
        self.listeners.iter().for_each(|listener| listener.changed(&changes));
        self.store.listed.send_replace(true);
        Ok(())
    }

    async fn follow(self) {
        let Self { client, store, listeners } = self;
        let stream = events::<Node>(Api::all(client));
        pin_mut!(stream);
        let mut arriving = BTreeMap::new();
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => {
                    let is_list = matches!(event, Event::InitDone);
                    let Some(changes) = store.apply(event, &mut arriving) else { continue };
                    listeners.iter().for_each(|listener| listener.changed(&changes));
                    if is_list {
                        store.listed.send_replace(true);
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

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn node(name: &str, version: &str, status: &str) -> Node {
        from_value(json!({
            "metadata": {"name": name, "uid": format!("uid-of-{name}"), "resourceVersion": version, "labels": {"zone": "a"}},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        }))
        .unwrap()
    }

    fn list(store: &NodeStore, names: &[&str]) -> Vec<NodeChange> {
        let mut arriving = BTreeMap::new();
        assert!(store.apply(Event::Init, &mut arriving).is_none());
        for name in names {
            assert!(store.apply(Event::InitApply(node(name, "1", "True")), &mut arriving).is_none());
        }
        store.apply(Event::InitDone, &mut arriving).unwrap()
    }

    fn names(changes: &[NodeChange]) -> Vec<(Option<&str>, Option<&str>)> {
        fn name(node: Option<&Arc<NodeObject>>) -> Option<&str> {
            node.map(|node| node.name.as_str())
        }
        changes.iter().map(|change| (name(change.old.as_ref()), name(change.new.as_ref()))).collect()
    }

    #[test]
    fn a_new_list_shows_what_came_what_stayed_and_what_is_gone() {
        let store = NodeStore::default();
        assert_eq!(names(&list(&store, &["n1", "n2"])), [(None, Some("n1")), (None, Some("n2"))]);
        let changes = list(&store, &["n2", "n3"]);
        assert_eq!(names(&changes), [(Some("n2"), Some("n2")), (None, Some("n3")), (Some("n1"), None)]);
        assert!(store.get("n1").is_none());
    }

    #[test]
    fn a_list_counts_only_when_it_is_complete() {
        let store = NodeStore::default();
        list(&store, &["n1", "n2"]);
        let mut arriving = BTreeMap::new();
        store.apply(Event::Init, &mut arriving);
        store.apply(Event::InitApply(node("n3", "2", "True")), &mut arriving);
        assert_eq!(store.all().len(), 2);
        // The list broke off and starts over.
        store.apply(Event::Init, &mut arriving);
        store.apply(Event::InitDone, &mut arriving);
        assert!(store.all().is_empty());
    }

    #[test]
    fn a_heartbeat_keeps_the_known_facts() {
        let store = NodeStore::default();
        list(&store, &["n1"]);
        let before = Arc::clone(&store.get("n1").unwrap().facts);
        store.apply(Event::Apply(node("n1", "2", "Unknown")), &mut BTreeMap::new());
        let after = store.get("n1").unwrap();
        assert_eq!(after.resource_version, "2");
        assert!(Arc::ptr_eq(&before, &after.facts));
    }
}

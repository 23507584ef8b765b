//! The known nodes, and the doubt about old lists of them.
//!
//! A list from the past (a restored backup, an API server that lags behind) shows earlier states of nodes, and lacks newer nodes.
//! Such a list alone, or one without any node, does not stop a node from serving. A change or deletion of the node in the watch
//! does, or the cloud's answer that its machine is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::Event;
use openstack_ccm_core::text::some_of;
use tokio::sync::watch;

use super::NodeObject;
use crate::version::number;
use openstack_ccm_core::lock::lock;
use openstack_ccm_runtime::parts::becomes;

/// Maximum of nodes that a log line names.
const MAX_LOGGED_NODES: usize = 10;

type Nodes = BTreeMap<String, Arc<NodeObject>>;

/// The known nodes. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct NodeStore {
    known: Arc<Mutex<Known>>,
    listed: watch::Sender<bool>,
}

#[derive(Default)]
struct Known {
    /// The nodes as the API server shows them.
    nodes: Nodes,
    /// The nodes as known before an old or empty list that lacks them or shows an earlier state.
    doubted: Nodes,
    /// The highest resourceVersion that was seen: all changes up to it were seen.
    newest: u64,
}

impl NodeStore {
    /// Returns all nodes as the API server shows them, by name.
    pub(crate) fn all(&self) -> Vec<Arc<NodeObject>> {
        lock(&self.known).nodes.values().cloned().collect()
    }

    /// Returns all nodes that may serve traffic, by name. None if the API server shows no node at all, so that nothing follows a doubted
    /// node alone.
    pub(crate) fn serving(&self) -> Vec<Arc<NodeObject>> {
        let known = lock(&self.known);
        if known.nodes.is_empty() { Vec::new() } else { known.all() }
    }

    /// Returns all nodes, by name; doubted nodes in the state known before the old or empty list.
    pub(crate) fn known(&self) -> Vec<Arc<NodeObject>> {
        lock(&self.known).all()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<NodeObject>> {
        lock(&self.known).nodes.get(name).cloned()
    }

    /// Waits until the nodes have been listed once.
    pub(crate) fn wait_listed(&self) -> impl Future<Output = ()> + Send + use<> {
        becomes(self.listed.subscribe(), |listed| *listed)
    }

    pub(super) fn note_listed(&self) {
        self.listed.send_replace(true);
    }

    /// Returns the names of nodes for which an old list is doubted.
    pub(super) fn doubted(&self) -> BTreeSet<String> {
        lock(&self.known).doubted.keys().cloned().collect()
    }

    /// Ends the doubt about these nodes. Returns the resulting changes.
    pub(super) fn believe(&self, names: &[String]) -> Vec<NodeChange> {
        let mut known = lock(&self.known);
        let believed = names.iter().filter_map(|name| Some((name, known.doubted.remove(name)?)));
        let believed: Vec<_> = believed.collect();
        let change = |(name, old)| {
            let new = known.nodes.get::<String>(name).cloned();
            NodeChange { old: Some(old), new, listed: false }
        };
        believed.into_iter().map(change).collect()
    }

    /// Applies one event. Returns the resulting changes; `None` while a new list arrives.
    pub(super) fn apply(&self, event: Event<Node>, arriving: &mut Nodes) -> Option<Vec<NodeChange>> {
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
            Event::InitDone => Some(lock(&self.known).replace(std::mem::take(arriving))),
            Event::Apply(node) => {
                let node = self.reduced(node);
                Some(vec![lock(&self.known).changed(&node.name, &node.resource_version, Some(&node))])
            }
            Event::Delete(node) => {
                let name = node.metadata.name.unwrap_or_default();
                let version = node.metadata.resource_version.unwrap_or_default();
                Some(vec![lock(&self.known).changed(&name, &version, None)])
            }
        }
    }

    /// Reduces a Node, and shares the known facts if they are equal, so that heartbeats cost no memory.
    fn reduced(&self, node: Node) -> Arc<NodeObject> {
        let mut node = NodeObject::from(node);
        if let Some(known) = self.get(&node.name).filter(|known| known.facts == node.facts) {
            node.facts = Arc::clone(&known.facts);
        }
        Arc::new(node)
    }
}

impl Known {
    fn all(&self) -> Vec<Arc<NodeObject>> {
        let mut nodes = self.nodes.clone();
        nodes.extend(self.doubted.clone());
        nodes.into_values().collect()
    }

    /// Applies a change or a deletion that the watch shows.
    fn changed(&mut self, name: &str, version: &str, new: Option<&Arc<NodeObject>>) -> NodeChange {
        self.newest = self.newest.max(number(version).unwrap_or_default());
        let shown = match new {
            Some(new) => self.nodes.insert(name.to_owned(), Arc::clone(new)),
            None => self.nodes.remove(name),
        };
        let old = self.doubted.remove(name).or(shown);
        NodeChange { old, new: new.cloned(), listed: false }
    }

    /// Replaces the known nodes by a complete list.
    fn replace(&mut self, new: Nodes) -> Vec<NodeChange> {
        let newest = new.values().filter_map(|node| number(&node.resource_version)).max().unwrap_or_default();
        if new.is_empty() {
            // As from an API server whose data are being restored: what comes next is compared with what was known before.
            self.doubt(&new);
        } else if new.values().any(|node| self.is_of_the_past(node)) {
            self.doubt(&new);
            // The history continues from this list, whatever its numbers are.
            self.newest = newest;
        } else {
            self.newest = self.newest.max(newest);
            let Self { nodes, doubted, .. } = self;
            let version = |nodes: &Nodes, name: &String| {
                nodes.get(name).map(|node| (node.uid.clone(), node.resource_version.clone()))
            };
            doubted.retain(|name, _| version(nodes, name) == version(&new, name));
        }
        let mut old = std::mem::replace(&mut self.nodes, new.clone());
        let there = new.into_iter().map(|(name, node)| (old.remove(&name), Some(node))).collect::<Vec<_>>();
        let gone = old.into_values().map(|node| (Some(node), None));
        there.into_iter().chain(gone).map(|(old, new)| NodeChange { old, new, listed: true }).collect()
    }

    /// Whether a listed state is from the past: neither known nor newer than all that was seen. Changes come in the order of their
    /// numbers.
    fn is_of_the_past(&self, shown: &NodeObject) -> bool {
        let known = [&self.nodes, &self.doubted].into_iter().filter_map(|nodes| nodes.get(&shown.name));
        let mut known = known.map(|known| (&known.uid, &known.resource_version));
        let is_known = known.any(|known| known == (&shown.uid, &shown.resource_version));
        !is_known && number(&shown.resource_version).is_some_and(|version| version <= self.newest)
    }

    /// Keeps the known state of nodes that a list from the past lacks or shows in an earlier state. A node that is listed as it is known
    /// is not doubted; the condition of its network is written anew if the past had another one.
    fn doubt(&mut self, list: &Nodes) {
        let is_lost = |name: &String, known: &NodeObject| {
            list.get(name).is_none_or(|shown| self.is_of_the_past(shown) && !is_same(known, shown))
        };
        let lost = self.nodes.iter().filter(|(name, node)| is_lost(name, node));
        let lost: Vec<_> = lost.map(|(name, node)| (name.clone(), Arc::clone(node))).collect();
        if lost.is_empty() {
            return;
        }
        let names: Vec<&str> = lost.iter().map(|(name, _)| name.as_str()).collect();
        let names = some_of(&names, MAX_LOGGED_NODES);
        tracing::warn!(
            nodes = names,
            "the API server returns an earlier state of these Nodes, or no Node at all, as during a restore from a backup: members and \
             routes are kept until these Nodes change or their servers no longer exist"
        );
        for (name, node) in lost {
            self.doubted.entry(name).or_insert(node);
        }
    }
}

/// Whether two states of a node differ in nothing but the network condition, which the route controller writes.
fn is_same(known: &NodeObject, shown: &NodeObject) -> bool {
    let (resource_version, network) = (shown.resource_version.clone(), shown.network.clone());
    NodeObject { resource_version, network, ..known.clone() } == *shown
}

/// One node before and after an event; `None` where it does not exist.
pub(crate) struct NodeChange {
    /// The state before.
    pub(crate) old: Option<Arc<NodeObject>>,
    /// The state now.
    pub(crate) new: Option<Arc<NodeObject>>,
    /// Whether the change comes from a list: steps before it, such as a write of ours that a restored backup undid, may be unseen.
    pub(crate) listed: bool,
}

impl NodeChange {
    /// Whether the node is new or gone, or this part of it changed.
    pub(crate) fn has_new<'a, T: PartialEq>(&'a self, part: impl Fn(&'a NodeObject) -> T) -> bool {
        self.old.as_deref().map(&part) != self.new.as_deref().map(&part)
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

    /// Returns the nodes that may serve traffic: `n1@5`.
    fn serving(store: &NodeStore) -> Vec<String> {
        let serving = store.serving().into_iter();
        serving.map(|node| format!("{}@{}", node.name, node.resource_version)).collect()
    }

    fn list_of(store: &NodeStore, nodes: &[(&str, &str)]) {
        list_of_status(store, nodes, "True");
    }

    fn list_of_status(store: &NodeStore, nodes: &[(&str, &str)], status: &str) {
        let mut arriving = BTreeMap::new();
        store.apply(Event::Init, &mut arriving);
        for (name, version) in nodes {
            store.apply(Event::InitApply(node(name, version, status)), &mut arriving);
        }
        store.apply(Event::InitDone, &mut arriving).unwrap();
    }

    fn change(store: &NodeStore, event: Event<Node>) -> NodeChange {
        store.apply(event, &mut BTreeMap::new()).unwrap().remove(0)
    }

    #[test]
    fn a_list_of_the_past_takes_no_node_away_until_the_watch_shows_that_it_changed() {
        let store = NodeStore::default();
        list_of(&store, &[("n1", "7"), ("n2", "8"), ("n3", "9")]);
        // `old` was there before all that.
        list_of_status(&store, &[("n1", "3"), ("old", "4")], "False");
        assert_eq!(serving(&store), ["n1@7", "n2@8", "n3@9", "old@4"]);
        assert_eq!(store.all().len(), 2, "what the API server shows is what is written to");
        let changed = change(&store, Event::Apply(node("n1", "20", "True")));
        assert_eq!(changed.old.unwrap().resource_version, "7", "it served until now");
        change(&store, Event::Delete(node("n2", "21", "True")));
        assert_eq!(serving(&store), ["n1@20", "n3@9", "old@4"]);
        let changes = store.believe(&["n3".to_owned()]);
        assert_eq!(names(&changes), [(Some("n3"), None)]);
        assert_eq!(serving(&store), ["n1@20", "old@4"]);
    }

    /// Otherwise the node that is doubted would take all traffic.
    #[test]
    fn an_empty_list_is_no_list_of_the_nodes_that_are_doubted() {
        let store = NodeStore::default();
        list_of(&store, &[("n1", "7"), ("n2", "8"), ("n3", "9")]);
        list_of(&store, &[("n1", "7"), ("old", "2")]);
        assert_eq!(serving(&store), ["n1@7", "n2@8", "n3@9", "old@2"]);
        list_of(&store, &[]);
        assert!(serving(&store).is_empty(), "{:?}", serving(&store));
        list_of(&store, &[("n1", "7"), ("old", "2")]);
        assert_eq!(serving(&store), ["n1@7", "n2@8", "n3@9", "old@2"]);
    }

    #[test]
    fn after_an_empty_list_one_of_the_past_takes_no_node_away() {
        let store = NodeStore::default();
        list_of(&store, &[("n1", "7"), ("n2", "8")]);
        list_of(&store, &[]);
        list_of_status(&store, &[("n1", "3")], "False");
        assert_eq!(serving(&store), ["n1@7", "n2@8"]);
        change(&store, Event::Delete(node("n2", "21", "True")));
        assert_eq!(serving(&store), ["n1@7"]);
    }

    #[test]
    fn a_list_of_all_nodes_as_they_were_known_ends_the_doubt_about_an_empty_one() {
        let store = NodeStore::default();
        list_of(&store, &[("n1", "7"), ("n2", "8")]);
        list_of(&store, &[]);
        assert_eq!(store.doubted().len(), 2);
        list_of(&store, &[("n1", "7"), ("n2", "8")]);
        assert_eq!(store.doubted().len(), 0);
        list_of(&store, &[("n1", "7")]);
        assert_eq!(serving(&store), ["n1@7"]);
    }

    #[test]
    fn lists_of_the_new_history_are_believed_whatever_its_numbers_are() {
        let store = NodeStore::default();
        list_of(&store, &[("n1", "107"), ("n2", "108")]);
        list_of_status(&store, &[("n1", "3"), ("n2", "4")], "False");
        change(&store, Event::Apply(node("n1", "5", "True")));
        change(&store, Event::Apply(node("n2", "6", "True")));
        assert_eq!(serving(&store), ["n1@5", "n2@6"]);
        list_of(&store, &[("n1", "7")]);
        assert_eq!(serving(&store), ["n1@7"]);
    }

    /// The route controller compares the condition with what it would write, so it must see another condition from the backup.
    #[test]
    fn of_a_node_that_a_list_of_the_past_shows_as_it_is_known_the_condition_is_believed() {
        let store = NodeStore::default();
        let with_network = |version: &str, reason: &str| {
            let mut node = node("n1", version, "True");
            let condition = json!({"type": "NetworkUnavailable", "status": "False", "reason": reason});
            let conditions = node.status.as_mut().unwrap().conditions.as_mut().unwrap();
            conditions.push(from_value(condition).unwrap());
            node
        };
        list_of(&store, &[("n1", "7")]);
        change(&store, Event::Apply(with_network("8", "RouteCreated")));
        let mut arriving = BTreeMap::new();
        store.apply(Event::Init, &mut arriving);
        store.apply(Event::InitApply(with_network("3", "NoRouteCreated")), &mut arriving);
        store.apply(Event::InitDone, &mut arriving).unwrap();
        assert!(store.doubted().is_empty());
        assert_eq!(store.serving()[0].network.as_ref().unwrap().1, "NoRouteCreated");
    }

    #[test]
    fn a_node_that_a_list_of_the_present_lacks_is_gone() {
        let store = NodeStore::default();
        list_of(&store, &[("n1", "7"), ("n2", "8")]);
        list_of(&store, &[("n1", "7")]);
        assert_eq!(serving(&store), ["n1@7"]);
        list_of(&store, &[("n1", "9"), ("n3", "10")]);
        assert_eq!(serving(&store), ["n1@9", "n3@10"]);
    }
}

//! Node objects reduced to the facts that load balancers depend on.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1 as k8s;
use kube::Client;
use kube::runtime::watcher::Event;
use openstack_ccm_core::advertise::data_plane::{Evidence, Fitness, judge};
use openstack_ccm_core::node::{
    AUTOSCALER_TAINT, AddressKind, EXCLUDE_LABEL, Eligibility, Node, NodeAddress, is_backend,
};
use tokio::sync::watch;

use crate::watch::events;

/// The nodes that can take traffic, sorted by name.
pub(crate) type Backends = Arc<[Arc<Node>]>;

/// Reduces a Node object. Images, conditions and the rest are forgotten: they are most of its size.
pub(crate) fn facts(node: &k8s::Node) -> Node {
    let metadata = &node.metadata;
    let labels = metadata.labels.clone().unwrap_or_default();
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let backend = is_backend(Eligibility {
        deleting: metadata.deletion_timestamp.is_some(),
        exclude_label: labels.get(EXCLUDE_LABEL).map(String::as_str),
        autoscaler_taint: taints.iter().any(|taint| taint.key == AUTOSCALER_TAINT),
    });
    Node {
        name: metadata.name.clone().unwrap_or_default(),
        provider_id: spec.and_then(|spec| spec.provider_id.clone()).filter(|id| !id.is_empty()),
        addresses: addresses(node),
        labels,
        backend,
        evidence: evidence(node),
    }
}

pub(crate) fn addresses(node: &k8s::Node) -> Vec<NodeAddress> {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
    addresses
        .iter()
        .map(|address| NodeAddress {
            kind: match address.type_.as_str() {
                "InternalIP" => AddressKind::InternalIp,
                "ExternalIP" => AddressKind::ExternalIp,
                _ => AddressKind::Name,
            },
            address: address.address.clone(),
        })
        .collect()
}

fn evidence(node: &k8s::Node) -> Evidence {
    let status = node.status.as_ref();
    let info = status.and_then(|status| status.node_info.as_ref());
    let images = status.and_then(|status| status.images.as_deref()).unwrap_or_default();
    Evidence::new(
        info.map_or("", |info| &info.kubelet_version),
        info.map_or("", |info| &info.operating_system),
        node.metadata.annotations.iter().flat_map(BTreeMap::keys).map(String::as_str),
        images.iter().flat_map(|image| image.names.iter().flatten()).map(String::as_str),
    )
}

/// All nodes at one moment.
#[derive(Clone, Debug)]
pub(crate) struct NodeSnapshot {
    /// Whether the cluster's nodes have been listed at all.
    pub(crate) listed: bool,
    /// The nodes that can take traffic.
    pub(crate) backends: Backends,
    /// Whether every node's service proxy honours `ipMode`.
    pub(crate) fitness: Fitness,
}

impl Default for NodeSnapshot {
    fn default() -> Self {
        Self { listed: false, backends: Arc::from([]), fitness: Fitness::Fit }
    }
}

/// Which labels of nodes a Service's choice of backends depends on.
///
/// The annotation and the configured default hold a comma list of `key=value` or `key`; only the keys are read here,
/// to tell which label changes matter. The provider interprets the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeSelectors {
    /// Annotation of a Service that replaces the default.
    pub(crate) annotation: Option<String>,
    /// What the operator configured for all Services.
    pub(crate) default: Option<String>,
}

impl NodeSelectors {
    /// The label keys that matter to a Service with these annotations.
    pub(crate) fn keys<'a>(&'a self, annotations: &'a BTreeMap<String, String>) -> Vec<&'a str> {
        let own = self.annotation.as_ref().and_then(|key| annotations.get(key));
        let selector = own.or(self.default.as_ref()).map_or("", String::as_str);
        selector
            .split(',')
            .filter_map(|pair| pair.split('=').next().map(str::trim).filter(|key| !key.is_empty()))
            .collect()
    }
}

/// Whether two sets of backends are the same to a load balancer: the same nodes with the same provider id, addresses
/// and values of the labels in `keys`.
pub(crate) fn same_backends(one: &[Arc<Node>], other: &[Arc<Node>], keys: &[&str]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            Arc::ptr_eq(one, other)
                || (same_machine(one, other)
                    && keys.iter().all(|key| one.labels.get(*key) == other.labels.get(*key)))
        })
}

fn same_machine(one: &Node, other: &Node) -> bool {
    one.name == other.name && one.provider_id == other.provider_id && one.addresses == other.addresses
}

/// Whether a change of the backends deserves a look at every Service. A label may be one that a Service selects by;
/// each Service then tells for itself whether it is.
fn matters(old: &[Arc<Node>], new: &[Arc<Node>]) -> bool {
    old.len() != new.len()
        || old.iter().zip(new).any(|(old, new)| !same_machine(old, new) || old.labels != new.labels)
}

/// The nodes as they are known so far.
#[derive(Default)]
struct Inventory {
    nodes: BTreeMap<String, Arc<Node>>,
    /// Collects a new list until it is complete.
    arriving: BTreeMap<String, Arc<Node>>,
    listed: bool,
}

impl Inventory {
    /// Takes in one event; answers whether the known nodes may have changed.
    fn apply(&mut self, event: Event<k8s::Node>) -> bool {
        match event {
            Event::Init => {
                self.arriving.clear();
                false
            }
            Event::InitApply(node) => {
                let node = self.reduced(&node);
                self.arriving.insert(node.name.clone(), node);
                false
            }
            Event::InitDone => {
                self.nodes = std::mem::take(&mut self.arriving);
                self.listed = true;
                true
            }
            Event::Apply(node) => {
                let node = self.reduced(&node);
                let same = self.nodes.get(&node.name).is_some_and(|known| Arc::ptr_eq(known, &node));
                self.nodes.insert(node.name.clone(), node);
                !same
            }
            Event::Delete(node) => self.nodes.remove(&node.metadata.name.unwrap_or_default()).is_some(),
        }
    }

    /// Keeps the known facts where nothing that matters changed, so that heartbeats cost no memory.
    fn reduced(&self, node: &k8s::Node) -> Arc<Node> {
        let facts = facts(node);
        match self.nodes.get(&facts.name) {
            Some(known) if **known == facts => Arc::clone(known),
            _ => Arc::new(facts),
        }
    }

    fn snapshot(&self) -> NodeSnapshot {
        NodeSnapshot {
            listed: self.listed,
            backends: self.nodes.values().filter(|node| node.backend).cloned().collect(),
            fitness: judge(self.nodes.values().map(|node| (node.name.as_str(), &node.evidence))),
        }
    }
}

/// What the node watch tells the rest of the controller.
pub(crate) trait NodeObserver: Send + Sync {
    /// The set of backends changed in a way that load balancers may have to follow.
    fn backends_changed(&self);
    /// The watch was interrupted: the API server may be another one now.
    fn interrupted(&self);
}

/// Follows the nodes of the cluster for ever.
pub(crate) async fn follow(
    client: Client,
    snapshots: watch::Sender<Arc<NodeSnapshot>>,
    observer: Arc<dyn NodeObserver>,
) {
    let stream = events::<k8s::Node>(kube::Api::all(client));
    pin_mut!(stream);
    let mut inventory = Inventory::default();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                if inventory.apply(event) {
                    publish(&inventory, &snapshots, observer.as_ref());
                }
            }
            Err(error) => {
                tracing::warn!(%error, "watch of nodes interrupted");
                observer.interrupted();
            }
        }
    }
}

fn publish(inventory: &Inventory, snapshots: &watch::Sender<Arc<NodeSnapshot>>, observer: &dyn NodeObserver) {
    let new = Arc::new(inventory.snapshot());
    let old = snapshots.send_replace(Arc::clone(&new));
    if old.listed && matters(&old.backends, &new.backends) {
        observer.backends_changed();
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn node(name: &str, patch: &Value) -> k8s::Node {
        let mut node = json!({
            "metadata": {"name": name, "labels": {"zone": "a", "unrelated": "1"}},
            "spec": {"providerID": format!("openstack:///{name}")},
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "10.0.0.11"},
                    {"type": "Hostname", "address": name},
                ],
                "nodeInfo": {
                    "kubeletVersion": "v1.36.1", "operatingSystem": "linux", "architecture": "", "bootID": "",
                    "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
                    "machineID": "", "osImage": "", "systemUUID": "",
                },
            },
        });
        merge(&mut node, patch);
        from_value(node).unwrap()
    }

    fn merge(into: &mut Value, patch: &Value) {
        match (into, patch) {
            (Value::Object(into), Value::Object(patch)) => {
                for (key, value) in patch {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, patch) => *into = patch.clone(),
        }
    }

    fn change(inventory: &mut Inventory, node: k8s::Node) -> bool {
        let before = inventory.snapshot();
        inventory.apply(Event::Apply(node));
        matters(&before.backends, &inventory.snapshot().backends)
    }

    fn with_two() -> Inventory {
        let mut inventory = Inventory::default();
        inventory.apply(Event::Init);
        inventory.apply(Event::InitApply(node("n1", &json!({}))));
        inventory.apply(Event::InitApply(node("n2", &json!({}))));
        inventory.apply(Event::InitDone);
        inventory
    }

    fn ready(status: &str) -> Value {
        json!({"status": {"conditions": [{"type": "Ready", "status": status}]}})
    }

    /// A change of a node reaches the load balancers only when they depend on it.
    ///
    /// Framework: P3, same.
    /// Framework: P6, same.
    /// Framework: P10, same.
    /// Framework: P12, same.
    /// Framework: P13, same.
    #[rstest]
    #[case::p3_p13_nothing(&json!({}), false)]
    #[case::p6_not_ready(&ready("False"), false)]
    #[case::p6_ready(&ready("True"), false)]
    #[case::p7_autoscaler(&json!({"spec": {"taints": [{"key": AUTOSCALER_TAINT, "effect": "NoSchedule", "value": "1700000000"}]}}), true)]
    #[case::p8_excluded(&json!({"metadata": {"labels": {EXCLUDE_LABEL: ""}}}), true)]
    #[case::p9_deleting(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), true)]
    #[case::p10_other_taint(&json!({"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}), false)]
    #[case::p12_other_provider_id(&json!({"spec": {"providerID": "openstack:///other"}}), true)]
    #[case::p17_label_false(&json!({"metadata": {"labels": {EXCLUDE_LABEL: "false"}}}), true)]
    #[case::address(&json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.99"}]}}), true)]
    #[case::label(&json!({"metadata": {"labels": {"zone": "b"}}}), true)]
    #[case::images(&json!({"status": {"images": [{"names": ["a:v1.0.0"], "sizeBytes": 1}]}}), false)]
    fn framework_p3_to_p17_only_changes_that_load_balancers_follow_matter(
        #[case] patch: &Value,
        #[case] expected: bool,
    ) {
        assert_eq!(change(&mut with_two(), node("n2", patch)), expected);
    }

    /// A node that takes the place of another is brought to all load balancers.
    ///
    /// Framework: P14, same.
    #[test]
    fn framework_p14_a_new_and_a_removed_node_matter() {
        let mut inventory = with_two();
        assert!(change(&mut inventory, node("n3", &json!({}))));
        let before = inventory.snapshot();
        inventory.apply(Event::Delete(node("n1", &json!({}))));
        let after = inventory.snapshot();
        assert!(matters(&before.backends, &after.backends));
        let names: Vec<&str> = after.backends.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n2", "n3"]);
    }

    #[test]
    fn changes_of_an_excluded_node_do_not_matter() {
        let mut inventory = with_two();
        let excluded = json!({"metadata": {"labels": {EXCLUDE_LABEL: "true"}}});
        assert!(change(&mut inventory, node("n2", &excluded)));
        let mut moved = excluded.clone();
        merge(&mut moved, &json!({"spec": {"providerID": "openstack:///moved"}}));
        assert!(!change(&mut inventory, node("n2", &moved)));
    }

    #[test]
    fn a_heartbeat_keeps_the_known_facts() {
        let mut inventory = with_two();
        let before = Arc::clone(&inventory.nodes["n1"]);
        assert!(!inventory.apply(Event::Apply(node("n1", &ready("Unknown")))));
        assert!(Arc::ptr_eq(&before, &inventory.nodes["n1"]));
    }

    #[test]
    fn a_new_list_replaces_the_old_one_only_when_complete() {
        let mut inventory = with_two();
        inventory.apply(Event::Init);
        assert!(!inventory.apply(Event::InitApply(node("n3", &json!({})))));
        assert_eq!(inventory.snapshot().backends.len(), 2);
        assert!(inventory.apply(Event::InitDone));
        assert_eq!(inventory.snapshot().backends.len(), 1);
    }

    #[test]
    fn an_old_kubelet_makes_the_cluster_unfit() {
        let mut inventory = with_two();
        assert_eq!(inventory.snapshot().fitness, Fitness::Fit);
        inventory
            .apply(Event::Apply(node("n2", &json!({"status": {"nodeInfo": {"kubeletVersion": "v1.28.3"}}}))));
        let Fitness::Unfit { count, node, .. } = inventory.snapshot().fitness else { panic!("fit") };
        assert_eq!((count, node.as_str()), (1, "n2"));
    }

    #[rstest]
    #[case::none(&[], None, &[])]
    #[case::configured(&[], Some("env=prod, zone"), &["env", "zone"])]
    #[case::annotation_replaces(&[("selector", "zone=a")], Some("env=prod"), &["zone"])]
    #[case::empty_annotation_means_all(&[("selector", "")], Some("env=prod"), &[])]
    fn selector_keys(
        #[case] annotations: &[(&str, &str)],
        #[case] default: Option<&str>,
        #[case] keys: &[&str],
    ) {
        let annotations = annotations.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let selectors =
            NodeSelectors { annotation: Some("selector".into()), default: default.map(str::to_owned) };
        assert_eq!(selectors.keys(&annotations), keys);
    }

    #[test]
    fn a_label_matters_only_to_services_that_select_by_it() {
        let mut inventory = with_two();
        let before = inventory.snapshot().backends;
        inventory.apply(Event::Apply(node("n2", &json!({"metadata": {"labels": {"zone": "b"}}}))));
        let after = inventory.snapshot().backends;
        assert!(same_backends(&before, &after, &["unrelated"]));
        assert!(!same_backends(&before, &after, &["zone"]));
    }
}

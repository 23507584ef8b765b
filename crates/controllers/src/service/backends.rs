//! The nodes as the backends of load balancers.

use std::collections::BTreeMap;
use std::sync::Arc;

use openstack_ccm_advertise::measured::Measurements;
use openstack_ccm_advertise::node::{Fitness, NodeVerdict, is_unreachable_for_long, judge};
use openstack_ccm_core::node::{AUTOSCALER_TAINT, EXCLUDE_LABEL, LeftOut, Node};
use openstack_ccm_core::node_selector::NodeSelector;

use crate::nodes::{NodeChange, NodeObject};

/// The nodes that can take traffic, sorted by name.
pub(super) type Backends = Arc<[Arc<Node>]>;

/// All nodes at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeSnapshot {
    /// Whether the cluster's nodes have been listed at all.
    pub(super) listed: bool,
    /// The nodes that can take traffic.
    pub(super) backends: Backends,
    /// Why the other nodes take none, by name.
    pub(super) left_out: Arc<BTreeMap<String, LeftOut>>,
    /// Whether the service proxy of every node that counts honours `ipMode`.
    pub(super) fitness: Fitness,
    /// The verdict on the service proxy of each such node.
    pub(super) verdicts: Arc<BTreeMap<String, NodeVerdict>>,
    /// The measurements of service proxies.
    pub(super) measured: Arc<Measurements>,
}

impl NodeSnapshot {
    /// Evaluates all nodes of the cluster for load balancers, at this moment.
    pub(super) fn of(nodes: &[Arc<NodeObject>], measured: &Arc<Measurements>, now: jiff::Timestamp) -> Self {
        let alive = nodes.iter().filter(|node| !is_unreachable_for_long(node.unreachable_since, now));
        let standing = |node: &NodeObject| {
            measured.standing_since(&node.name, &node.service_proxy, node.unreachable_since, now)
        };
        let verdicts: BTreeMap<String, NodeVerdict> =
            alive.map(|node| (node.name.clone(), standing(node))).collect();
        let left_out = nodes.iter().filter_map(|node| Some((node.name.clone(), node.left_out?)));
        Self {
            listed: true,
            left_out: Arc::new(left_out.collect()),
            backends: nodes.iter().map(|node| &node.facts).filter(|node| node.backend).cloned().collect(),
            fitness: judge(verdicts.iter().map(|(name, held)| (name.as_str(), held))),
            verdicts: Arc::new(verdicts),
            measured: Arc::clone(measured),
        }
    }
}

/// Which nodes a Service selects by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeSelectors {
    /// Annotation of a Service that replaces the default.
    pub(super) annotation: Option<String>,
    /// The operator's selector for all Services.
    pub(super) default: Option<String>,
}

impl NodeSelectors {
    /// Returns the selector of a Service with these annotations; `None` if it is invalid, which the provider reports.
    pub(super) fn of(&self, annotations: &BTreeMap<String, String>) -> Option<NodeSelector> {
        NodeSelector::parse(self.text(annotations)).ok()
    }

    fn text<'a>(&'a self, annotations: &'a BTreeMap<String, String>) -> &'a str {
        let own = self.annotation.as_ref().and_then(|key| annotations.get(key));
        own.or(self.default.as_ref()).map_or("", String::as_str)
    }

    /// Returns why no node takes the traffic of a Service with these annotations, if none does.
    pub(super) fn why_none(
        &self,
        annotations: &BTreeMap<String, String>,
        nodes: &NodeSnapshot,
    ) -> Option<String> {
        let takes = nodes.backends.len();
        if takes > 0 {
            let selector = self.of(annotations)?;
            let matches_one = nodes.backends.iter().any(|node| selector.matches(node));
            let nodes = if takes == 1 {
                "the one Node that takes traffic".to_owned()
            } else {
                format!("the {takes} Nodes that take traffic")
            };
            return (!matches_one)
                .then(|| format!("node-selector {:?} matches none of {nodes}", self.text(annotations)));
        }
        let all = nodes.left_out.len();
        if all == 0 {
            return Some("the cluster has no Nodes".to_owned());
        }
        let mut counts = BTreeMap::<LeftOut, usize>::new();
        nodes.left_out.values().for_each(|reason| *counts.entry(*reason).or_default() += 1);
        let causes: Vec<String> = counts.iter().map(|(reason, count)| cause(*reason, *count)).collect();
        Some(format!("{all} {}: {}", if all == 1 { "Node" } else { "Nodes" }, causes.join(", ")))
    }
}

/// Returns the node that stops taking traffic with this change, and why.
pub(super) fn why_it_leaves(change: &NodeChange) -> Option<(&str, String)> {
    let old = change.old.as_ref().filter(|old| old.facts.backend)?;
    let why = match change.new.as_ref().map(|new| new.left_out) {
        None => "it is gone".to_owned(),
        Some(None) => return None,
        Some(Some(LeftOut::Deleting)) => "it is being deleted".to_owned(),
        Some(Some(LeftOut::Excluded)) => format!("it has the label {EXCLUDE_LABEL}"),
        Some(Some(LeftOut::Autoscaler)) => format!("it has the taint {AUTOSCALER_TAINT}"),
    };
    Some((&old.name, why))
}

fn cause(reason: LeftOut, count: usize) -> String {
    let (have, are) = if count == 1 { ("has", "is") } else { ("have", "are") };
    match reason {
        LeftOut::Deleting => format!("{count} {are} being deleted"),
        LeftOut::Excluded => format!("{count} {have} the label {EXCLUDE_LABEL}"),
        LeftOut::Autoscaler => format!("{count} {have} the taint {AUTOSCALER_TAINT}"),
    }
}

/// Whether two sets of backends are the same to a load balancer: the same nodes with the same provider id, addresses
/// and values of the labels in `keys`.
pub(super) fn same_backends(one: &[Arc<Node>], other: &[Arc<Node>], keys: &[&str]) -> bool {
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

/// Whether a change of the backends concerns any Service. A Service may select by a changed label; each Service then
/// finds out for itself whether it does.
pub(super) fn matters(old: &[Arc<Node>], new: &[Arc<Node>]) -> bool {
    old.len() != new.len()
        || old.iter().zip(new).any(|(old, new)| !same_machine(old, new) || old.labels != new.labels)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as k8s;
    use openstack_ccm_kube_sim::merge_patch;
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn node(name: &str, patch: &Value) -> k8s::Node {
        let mut node = json!({
            "metadata": {"name": name, "labels": {"zone": "a", "unrelated": "1"}},
            "spec": {"providerID": format!("example:///{name}")},
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
        merge_patch(&mut node, patch);
        from_value(node).unwrap()
    }

    #[rstest]
    #[case::gone(None, Some("it is gone"))]
    #[case::excluded(
        Some(json!({"metadata": {"labels": {EXCLUDE_LABEL: ""}}})),
        Some("it has the label node.kubernetes.io/exclude-from-external-load-balancers")
    )]
    #[case::deleting(
        Some(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})),
        Some("it is being deleted")
    )]
    #[case::scaled_down(
        Some(json!({"spec": {"taints": [{"key": AUTOSCALER_TAINT, "effect": "NoSchedule"}]}})),
        Some("it has the taint ToBeDeletedByClusterAutoscaler")
    )]
    #[case::another_label(Some(json!({"metadata": {"labels": {"zone": "b"}}})), None)]
    fn the_log_says_why_a_node_leaves(#[case] change: Option<Value>, #[case] expected: Option<&str>) {
        let object = |patch: &Value| Some(Arc::new(NodeObject::from(node("n1", patch))));
        let new = change.as_ref().and_then(object);
        let change = NodeChange { old: object(&json!({})), new, listed: false };
        assert_eq!(why_it_leaves(&change).map(|(_, why)| why).as_deref(), expected);
    }

    /// The nodes of a cluster, by name.
    #[derive(Default)]
    struct Cluster(BTreeMap<String, Arc<NodeObject>>);

    impl Cluster {
        fn set(&mut self, node: k8s::Node) {
            let node = NodeObject::from(node);
            self.0.insert(node.name.clone(), Arc::new(node));
        }

        fn snapshot(&self) -> NodeSnapshot {
            self.snapshot_at("2026-01-01T00:00:00Z")
        }

        fn snapshot_at(&self, now: &str) -> NodeSnapshot {
            let nodes = self.0.values().cloned().collect::<Vec<_>>();
            NodeSnapshot::of(&nodes, &Arc::default(), now.parse().unwrap())
        }

        /// Sets a node; returns whether that matters.
        fn change(&mut self, node: k8s::Node) -> bool {
            let before = self.snapshot();
            self.set(node);
            matters(&before.backends, &self.snapshot().backends)
        }
    }

    fn with_two() -> Cluster {
        let mut cluster = Cluster::default();
        cluster.set(node("n1", &json!({})));
        cluster.set(node("n2", &json!({})));
        cluster
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
    #[case::p12_other_provider_id(&json!({"spec": {"providerID": "example:///other"}}), true)]
    #[case::p17_label_false(&json!({"metadata": {"labels": {EXCLUDE_LABEL: "false"}}}), true)]
    #[case::address(&json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.99"}]}}), true)]
    #[case::label(&json!({"metadata": {"labels": {"zone": "b"}}}), true)]
    #[case::images(&json!({"status": {"images": [{"names": ["a:v1.0.0"], "sizeBytes": 1}]}}), false)]
    fn framework_p3_to_p17_only_changes_that_load_balancers_follow_matter(
        #[case] patch: &Value,
        #[case] expected: bool,
    ) {
        assert_eq!(with_two().change(node("n2", patch)), expected);
    }

    /// A node that takes the place of another is brought to all load balancers.
    ///
    /// Framework: P14, same.
    #[test]
    fn framework_p14_a_new_and_a_removed_node_matter() {
        let mut cluster = with_two();
        assert!(cluster.change(node("n3", &json!({}))));
        let before = cluster.snapshot();
        cluster.0.remove("n1");
        let after = cluster.snapshot();
        assert!(matters(&before.backends, &after.backends));
        let names: Vec<&str> = after.backends.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n2", "n3"]);
    }

    #[test]
    fn changes_of_an_excluded_node_do_not_matter() {
        let mut cluster = with_two();
        let excluded = json!({"metadata": {"labels": {EXCLUDE_LABEL: "true"}}});
        assert!(cluster.change(node("n2", &excluded)));
        let mut moved = excluded.clone();
        merge_patch(&mut moved, &json!({"spec": {"providerID": "example:///moved"}}));
        assert!(!cluster.change(node("n2", &moved)));
    }

    #[test]
    fn an_old_kubelet_makes_the_cluster_unfit() {
        let mut cluster = with_two();
        assert_eq!(cluster.snapshot().fitness, Fitness::Fit);
        cluster.set(node("n2", &json!({"status": {"nodeInfo": {"kubeletVersion": "v1.28.3"}}})));
        let Fitness::Unfit { count, node, .. } = cluster.snapshot().fitness else { panic!("fit") };
        assert_eq!((count, node.as_str()), (1, "n2"));
    }

    #[rstest]
    #[case::just_lost("Unknown", "2026-01-01T00:05:00Z", "2026-01-01T00:09:00Z", true)]
    #[case::lost_for_long("Unknown", "2026-01-01T00:05:00Z", "2026-01-01T00:15:00Z", false)]
    #[case::not_ready_but_heard_of("False", "2026-01-01T00:05:00Z", "2026-01-01T09:00:00Z", true)]
    fn a_node_that_has_been_unreachable_for_long_does_not_count(
        #[case] status: &str,
        #[case] since: &str,
        #[case] now: &str,
        #[case] counts: bool,
    ) {
        let mut cluster = with_two();
        let ready = json!({"type": "Ready", "status": status, "lastTransitionTime": since});
        let old = json!({"nodeInfo": {"kubeletVersion": "v1.28.3"}, "conditions": [ready]});
        cluster.set(node("n2", &json!({"status": old})));
        let snapshot = cluster.snapshot_at(now);
        assert_eq!(snapshot.fitness != Fitness::Fit, counts);
        assert_eq!(snapshot.backends.len(), 2, "what it means to load balancers is decided elsewhere");
    }

    #[rstest]
    #[case::virtual_kubelet(&json!({
        "metadata": {"labels": {"type": "virtual-kubelet"}},
        "status": {"nodeInfo": {"kubeletVersion": "v1.15.2-vk-azure-aci-1.5.1"}},
    }))]
    #[case::kwok(&json!({
        "metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"nodeInfo": {"kubeletVersion": "kwok-v0.6.0"}},
    }))]
    #[case::tainted(&json!({
        "spec": {"taints": [{"key": "virtual-kubelet.io/provider", "effect": "NoSchedule"}]},
        "status": {"nodeInfo": {"kubeletVersion": "v1.29.3"}},
    }))]
    fn a_virtual_node_does_not_count(#[case] patch: &Value) {
        let mut cluster = with_two();
        cluster.set(node("n2", patch));
        assert_eq!(cluster.snapshot().fitness, Fitness::Fit);
    }

    #[rstest]
    #[case::no_choice(&[], None, "")]
    #[case::configured(&[], Some("zone=a"), "")]
    #[case::configured_that_matches_none(&[], Some("zone=b"), "node-selector \"zone=b\" matches none of the 2 Nodes that take traffic")]
    #[case::annotation_replaces(&[("selector", "zone=a")], Some("zone=b"), "")]
    #[case::empty_annotation_means_all(&[("selector", "")], Some("zone=b"), "")]
    #[case::one_that_cannot_be_read(&[("selector", "zone = b")], None, "")]
    fn a_choice_that_matches_no_node_is_named(
        #[case] annotations: &[(&str, &str)],
        #[case] default: Option<&str>,
        #[case] expected: &str,
    ) {
        let annotations = annotations.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let selectors =
            NodeSelectors { annotation: Some("selector".into()), default: default.map(str::to_owned) };
        let why = selectors.why_none(&annotations, &with_two().snapshot());
        assert_eq!(why.unwrap_or_default(), expected);
    }

    #[test]
    fn nodes_that_take_no_traffic_are_counted_by_cause() {
        let why = |cluster: &Cluster| {
            NodeSelectors::default().why_none(&BTreeMap::new(), &cluster.snapshot()).unwrap_or_default()
        };
        let mut cluster = Cluster::default();
        assert_eq!(why(&cluster), "the cluster has no Nodes");
        for name in ["n1", "n2"] {
            cluster.set(node(name, &json!({"metadata": {"labels": {EXCLUDE_LABEL: ""}}})));
        }
        assert_eq!(why(&cluster), format!("2 Nodes: 2 have the label {EXCLUDE_LABEL}"));
        cluster.set(node("n3", &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})));
        assert_eq!(why(&cluster), format!("3 Nodes: 1 is being deleted, 2 have the label {EXCLUDE_LABEL}"));
    }

    #[test]
    fn a_label_matters_only_to_services_that_select_by_it() {
        let mut cluster = with_two();
        let before = cluster.snapshot().backends;
        cluster.set(node("n2", &json!({"metadata": {"labels": {"zone": "b"}}})));
        let after = cluster.snapshot().backends;
        assert!(same_backends(&before, &after, &["unrelated"]));
        assert!(!same_backends(&before, &after, &["zone"]));
    }
}

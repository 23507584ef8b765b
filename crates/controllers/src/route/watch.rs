//! The nodes, reduced to what routes depend on.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1 as k8s;
use kube::Client;
use kube::runtime::watcher::Event;
use openstack_ccm_core::route::RoutedNode;
use openstack_ccm_core::route::condition::NETWORK_UNAVAILABLE;
use tokio::sync::{Notify, watch};

use crate::nodes::addresses;
use crate::watch::events;

/// What is known of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownNode {
    /// What its routes depend on.
    pub(super) routed: RoutedNode,
    /// `metadata.uid`
    pub(super) uid: String,
    /// Status and reason of the condition `NetworkUnavailable`.
    pub(super) condition: Option<(String, String)>,
}

/// All nodes at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeTable {
    /// Whether the cluster's nodes have been listed at all.
    pub(super) listed: bool,
    /// The nodes by name.
    pub(super) nodes: BTreeMap<String, Arc<KnownNode>>,
}

fn known(node: &k8s::Node) -> Arc<KnownNode> {
    let metadata = &node.metadata;
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let condition = conditions.iter().find(|condition| condition.type_ == NETWORK_UNAVAILABLE);
    Arc::new(KnownNode {
        routed: RoutedNode {
            name: metadata.name.clone().unwrap_or_default(),
            pod_cidrs: node.spec.as_ref().and_then(|spec| spec.pod_cidrs.clone()).unwrap_or_default(),
            addresses: addresses(node),
        },
        uid: metadata.uid.clone().unwrap_or_default(),
        condition: condition
            .map(|condition| (condition.status.clone(), condition.reason.clone().unwrap_or_default())),
    })
}

/// What an event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// Nothing that is read here changed: a heartbeat.
    None,
    /// Nothing that routes depend on.
    Known,
    /// Routes may have to follow: the ranges or the addresses of a node are others, or the nodes are.
    Routed,
}

/// Takes in the events of a watch.
#[derive(Default)]
struct Inventory {
    table: NodeTable,
    /// Collects a new list until it is complete.
    arriving: BTreeMap<String, Arc<KnownNode>>,
}

impl Inventory {
    fn apply(&mut self, event: Event<k8s::Node>) -> News {
        match event {
            Event::Init => {
                self.arriving.clear();
                News::None
            }
            Event::InitApply(node) => {
                let node = known(&node);
                self.arriving.insert(node.routed.name.clone(), node);
                News::None
            }
            Event::InitDone => {
                let nodes = std::mem::take(&mut self.arriving);
                let same = self.table.listed && routed(&self.table.nodes).eq(routed(&nodes));
                self.table = NodeTable { listed: true, nodes };
                if same { News::Known } else { News::Routed }
            }
            Event::Apply(node) => {
                let node = known(&node);
                let before = self.table.nodes.insert(node.routed.name.clone(), Arc::clone(&node));
                match before {
                    Some(before) if before == node => News::None,
                    Some(before) if before.routed == node.routed => News::Known,
                    Some(_) | None => News::Routed,
                }
            }
            Event::Delete(node) => match self.table.nodes.remove(&node.metadata.name.unwrap_or_default()) {
                Some(_) => News::Routed,
                None => News::None,
            },
        }
    }
}

fn routed(nodes: &BTreeMap<String, Arc<KnownNode>>) -> impl Iterator<Item = &RoutedNode> {
    nodes.values().map(|node| &node.routed)
}

/// Follows the nodes of the cluster for ever, and tells when routes may have to follow them.
pub(super) async fn follow(client: Client, tables: watch::Sender<Arc<NodeTable>>, changed: Arc<Notify>) {
    let stream = events::<k8s::Node>(kube::Api::all(client));
    pin_mut!(stream);
    let mut inventory = Inventory::default();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                let news = inventory.apply(event);
                if news != News::None {
                    tables.send_replace(Arc::new(inventory.table.clone()));
                }
                if news == News::Routed {
                    changed.notify_one();
                }
            }
            Err(error) => tracing::warn!(%error, "watch of nodes interrupted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn node(spec: &Value, status: &Value) -> k8s::Node {
        from_value(json!({"metadata": {"name": "n1", "uid": "u1"}, "spec": spec, "status": status})).unwrap()
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
        json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.99"}]}), News::Routed)]
    #[case::range(json!({"podCIDRs": ["10.244.2.0/24"]}),
        json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}]}), News::Routed)]
    #[case::nothing(plain().0, plain().1, News::None)]
    #[case::images(plain().0, json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}],
        "images": [{"names": ["a:v1"], "sizeBytes": 1}]}), News::None)]
    #[case::condition(plain().0, json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}],
        "conditions": [{"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}]}), News::Known)]
    fn framework_r14_only_changes_that_routes_follow_start_a_round(
        #[case] spec: Value,
        #[case] status: Value,
        #[case] expected: News,
    ) {
        let mut inventory = Inventory::default();
        inventory.apply(Event::Init);
        inventory.apply(Event::InitApply(node(&plain().0, &plain().1)));
        assert_eq!(inventory.apply(Event::InitDone), News::Routed);
        assert_eq!(inventory.apply(Event::Apply(node(&spec, &status))), expected);
    }

    #[test]
    fn a_list_that_says_the_same_again_starts_no_round() {
        let mut inventory = Inventory::default();
        for expected in [News::Routed, News::Known] {
            inventory.apply(Event::Init);
            inventory.apply(Event::InitApply(node(&plain().0, &plain().1)));
            assert_eq!(inventory.apply(Event::InitDone), expected);
        }
        assert_eq!(inventory.apply(Event::Delete(node(&plain().0, &plain().1))), News::Routed);
    }
}

//! A cluster, a cloud, and the controllers between them.

use std::sync::Arc;

use kube::Client;
use openstack_ccm_controllers::node::{NodeController, NodeControllerOptions};
use openstack_ccm_controllers::node_lifecycle::{NodeLifecycleController, NodeLifecycleOptions};
use openstack_ccm_controllers::nodes::NodeInformer;
use openstack_ccm_controllers::{ClusterClient, KnownCluster, WorkQueues};
use openstack_ccm_core::permit::Gate;
use openstack_ccm_kube_sim::{ApiVersion, Fault, Sim, merge_patch};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use crate::base::{self, Running};
use crate::cloud::Cloud;

pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
pub(crate) const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

pub(crate) struct World {
    pub(crate) kube: Sim,
    pub(crate) cloud: Arc<Cloud>,
    pub(crate) registry: Registry,
    running: Vec<Running>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            kube: Sim::new(ApiVersion::V1_36),
            cloud: Arc::default(),
            registry: Registry::default(),
            running: Vec::new(),
        }
    }

    fn client(&self) -> Client {
        base::client(&self.kube)
    }

    fn informer(&self) -> NodeInformer {
        let identity = self.kube.get("namespaces", "", "kube-system").unwrap();
        let uid = identity["metadata"]["uid"].as_str().unwrap().to_owned();
        let cluster = Arc::new(KnownCluster::new(self.client(), uid));
        NodeInformer::new(ClusterClient { client: self.client(), cluster, gate: Gate::open() })
    }

    pub(crate) async fn start_node_controller(&mut self) {
        self.start_node_controller_with(NodeControllerOptions::default()).await;
    }

    pub(crate) async fn start_node_controller_with(&mut self, options: NodeControllerOptions) {
        let cloud = Arc::clone(&self.cloud);
        let mut nodes = self.informer();
        let queues = WorkQueues::registered(&mut self.registry);
        let controller =
            NodeController::new(self.client(), cloud, options, &mut nodes, &mut self.registry, &queues);
        let listed = controller.listed();
        self.running.push(Running::start_beside(nodes.run(), |shutdown| controller.run(shutdown)));
        listed.await;
    }

    pub(crate) async fn start_lifecycle_controller(&mut self) {
        let (cloud, options) = (Arc::clone(&self.cloud), NodeLifecycleOptions::default());
        let nodes = self.informer();
        let controller =
            NodeLifecycleController::new(self.client(), cloud, options, &nodes, &mut self.registry);
        let listed = controller.listed();
        self.running.push(Running::start_beside(nodes.run(), |shutdown| controller.run(shutdown)));
        listed.await;
    }

    /// Stops the controllers as SIGTERM does.
    pub(crate) async fn stop(&mut self) {
        for running in self.running.drain(..) {
            running.stop().await;
        }
    }

    // Nodes.

    /// A ready node with a provider id and two addresses, changed by a merge patch.
    #[allow(clippy::needless_pass_by_value, reason = "json! literals read better by value")]
    pub(crate) fn create(&self, name: &str, change: Value) {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name},
            "spec": {"providerID": format!("example:///{name}")},
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "10.0.0.11"},
                    {"type": "Hostname", "address": name},
                ],
                "conditions": [condition("True")],
            },
        });
        merge_patch(&mut node, &change);
        self.kube.create(&node).unwrap();
    }

    /// A new node whose kubelet waits for a cloud provider.
    #[allow(clippy::needless_pass_by_value, reason = "json! literals read better by value")]
    pub(crate) fn create_uninitialized(&self, name: &str, change: Value) {
        let mut patch = json!({
            "spec": {"providerID": null, "taints": [taint(UNINITIALIZED)]},
            "status": {"addresses": [{"type": "Hostname", "address": name}]},
        });
        merge_patch(&mut patch, &change);
        self.create(name, patch);
    }

    pub(crate) fn set_ready(&self, name: &str, status: &str) {
        let patch = json!({"status": {"conditions": [condition(status)]}});
        self.kube.patch_status("nodes", "", name, &patch).unwrap();
    }

    /// The node; null when there is none.
    pub(crate) fn node(&self, name: &str) -> Value {
        self.kube.get("nodes", "", name).unwrap_or_default()
    }

    /// Keys of the taints, in order.
    pub(crate) fn taints(&self, name: &str) -> Vec<String> {
        let taints = self.node(name)["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn is_uninitialized(&self, name: &str) -> bool {
        self.taints(name).iter().any(|key| key == UNINITIALIZED)
    }

    /// `InternalIP 10.0.0.11, Hostname n1`
    pub(crate) fn addresses(&self, name: &str) -> String {
        let addresses = self.node(name)["status"]["addresses"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let entries =
            addresses.iter().map(|entry| format!("{} {}", text(&entry["type"]), text(&entry["address"])));
        entries.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn label(&self, name: &str, key: &str) -> Value {
        self.node(name)["metadata"]["labels"][key].clone()
    }

    // What the controllers did.

    /// Writes to nodes since the last time: `PATCH /api/v1/nodes/n1/status`.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        let writes = self
            .kube
            .requests_where(|request| request.method.as_str() != "GET" && request.path.contains("/nodes/"));
        let writes = writes.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
        self.kube.clear_requests();
        writes
    }

    /// Fails writes to the node itself, not to its status.
    pub(crate) fn on_patch(name: &str) -> Fault {
        let end = format!("/nodes/{name}");
        Fault::when(move |request| request.method.as_str() == "PATCH" && request.path.ends_with(&end))
    }

    /// `Normal Synced: Node synced successfully`, oldest first, repeats folded.
    pub(crate) fn events(&self, name: &str) -> Vec<String> {
        let text = |event: &Value| {
            assert_eq!(event["involvedObject"]["apiVersion"], "v1");
            assert_eq!(event["involvedObject"]["kind"], "Node");
            base::event_text(event)
        };
        base::events(&self.kube, name).iter().map(text).collect()
    }

    /// The value of a metric, by the start of its line.
    pub(crate) fn metric(&self, start: &str) -> String {
        base::metric(&self.registry, start)
    }

    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        base::until(what, async || condition(self)).await;
    }
}

pub(crate) fn taint(key: &str) -> Value {
    json!({"key": key, "value": "true", "effect": "NoSchedule"})
}

pub(crate) fn condition(status: &str) -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({"type": "Ready", "status": status, "lastHeartbeatTime": time, "lastTransitionTime": time})
}

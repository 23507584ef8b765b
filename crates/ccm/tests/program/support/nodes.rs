//! Clusters whose nodes are the subject.

use std::time::Duration;

use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::Sim as Cloud;
use serde_json::{Value, json};

use super::World;

pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
pub(crate) const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

impl World {
    /// A newest cluster without nodes, whose program will run the node controllers.
    pub(crate) fn without_nodes() -> Self {
        let lifetime = Duration::from_secs(1 << 30);
        let mut world = Self::in_cloud(
            ApiVersion::V1_36,
            Cloud::builder().nodes(0).ipv6(true).token_lifetime(lifetime).build(),
        );
        world.settings.node = Some(NodeControllerOptions::default());
        world.settings.node_lifecycle = Some(NodeLifecycleOptions::default());
        world
    }

    /// Registers a node as a kubelet does that waits for a cloud provider.
    pub(crate) fn register(&self, name: &str) {
        self.register_with(name, &json!({}));
    }

    /// The same with more in `spec`.
    pub(crate) fn register_with(&self, name: &str, spec: &Value) {
        self.create_node(name, spec, &json!({}));
    }

    /// A kubelet registers its node and says which machine and address it has.
    pub(crate) fn register_machine(&self, name: &str, system_uuid: &str, address: &str) {
        let mut info = json!({"systemUUID": system_uuid});
        for key in [
            "architecture",
            "bootID",
            "containerRuntimeVersion",
            "kernelVersion",
            "kubeProxyVersion",
            "kubeletVersion",
            "machineID",
            "operatingSystem",
            "osImage",
        ] {
            info[key] = json!("");
        }
        let addresses = json!([{"type": "InternalIP", "address": address}]);
        self.create_node(name, &json!({}), &json!({"nodeInfo": info, "addresses": addresses}));
    }

    fn create_node(&self, name: &str, spec: &Value, status: &Value) {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]},
            "status": {"addresses": [{"type": "Hostname", "address": name}]},
        });
        for (part, more) in [("spec", spec), ("status", status)] {
            node[part].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        }
        self.kube.create(&node).unwrap();
        self.set_ready(name, "True");
    }

    /// A server and its node, which is registered and initialised.
    pub(crate) async fn join(&self, name: &str) {
        self.cloud.add_node(name);
        self.register(name);
        self.until_initialised(name).await;
    }

    pub(crate) async fn until_initialised(&self, name: &str) {
        self.until(&format!("{name} is initialised"), |world| !world.is_uninitialized(name)).await;
    }

    /// What the kubelet, or who watches over it, says in the condition Ready.
    pub(crate) fn set_ready(&self, name: &str, status: &str) {
        let time = "2026-01-01T00:00:00Z";
        let ready =
            json!({"type": "Ready", "status": status, "lastHeartbeatTime": time, "lastTransitionTime": time});
        let patch = json!({"status": {"conditions": [ready]}});
        self.kube.patch_status("nodes", "", name, &patch).unwrap();
    }

    /// The node; null when there is none.
    pub(crate) fn node(&self, name: &str) -> Value {
        self.kube.get("nodes", "", name).unwrap_or_default()
    }

    pub(crate) fn provider_id(&self, name: &str) -> Value {
        self.node(name)["spec"]["providerID"].clone()
    }

    pub(crate) fn label(&self, name: &str, key: &str) -> Value {
        self.node(name)["metadata"]["labels"][key].clone()
    }

    pub(crate) fn has_taint(&self, name: &str, key: &str) -> bool {
        let taints = self.node(name)["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().any(|taint| taint["key"] == key)
    }

    pub(crate) fn is_uninitialized(&self, name: &str) -> bool {
        self.has_taint(name, UNINITIALIZED)
    }

    /// `InternalIP 198.18.0.50, Hostname node-1`
    pub(crate) fn node_addresses(&self, name: &str) -> String {
        let addresses = self.node(name)["status"]["addresses"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let entries =
            addresses.iter().map(|entry| format!("{} {}", text(&entry["type"]), text(&entry["address"])));
        entries.collect::<Vec<_>>().join(", ")
    }

    /// Warnings about a node, oldest first, with ids: `NodeDeletionHeld: …`.
    pub(crate) fn node_warnings(&self, name: &str) -> Vec<String> {
        let mut events = self.kube.list("events", "default").unwrap();
        events.retain(|event| event["involvedObject"]["name"] == name && event["type"] == "Warning");
        events.sort_by_key(|event| event["metadata"]["name"].to_string());
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        events.iter().map(|event| format!("{}: {}", text(event, "reason"), text(event, "message"))).collect()
    }

    /// The id of the server with this name.
    pub(crate) fn server_id(&self, name: &str) -> String {
        self.cloud.nodes().into_iter().find(|node| node.name == name).unwrap().server_id
    }

    /// Names of the calls to OpenStack since the last time.
    pub(crate) fn take_cloud_calls(&self) -> Vec<String> {
        let calls = self.take_calls().into_iter();
        calls.filter(|call| call.side == super::Side::OpenStack).map(|call| call.name).collect()
    }
}

//! A cluster whose nodes have ranges of pod addresses, on a cloud whose router gets routes to them.

use std::time::Duration;

use openstack_ccm_controllers::route::RouteControllerOptions;
use openstack_ccm_core::route::range::ClusterRanges;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::Sim as Cloud;
use serde_json::{Value, json};

use crate::support::World;

/// The address of the first node.
pub(super) const NODE_1: &str = "198.18.0.50";
/// The routes of the first two nodes.
pub(super) const ROUTE_1: &str = "10.244.1.0/24 via 198.18.0.50";
pub(super) const ROUTE_2: &str = "10.244.2.0/24 via 198.18.0.51";
/// The condition of a node that can be reached, and of one that cannot.
pub(super) const REACHABLE: &str = "False RouteCreated";
pub(super) const UNREACHABLE: &str = "True NoRouteCreated";

pub(super) struct Stage {
    pub(super) world: World,
}

impl Stage {
    /// Two nodes without ranges, and no program yet.
    pub(super) fn empty() -> Self {
        let cloud = Cloud::builder().nodes(2).ipv6(true).token_lifetime(Duration::from_secs(1 << 30)).build();
        let router_id = cloud.seed().router_id.clone();
        let mut world = World::in_cloud(ApiVersion::V1_36, cloud);
        world.settings.cloud_conf = format!("[Route]\nrouter-id = {router_id}\n");
        let ranges = ["10.244.0.0/16", "fd00:244::/48"].map(|range| range.parse().unwrap()).to_vec();
        world.settings.route = Some(RouteControllerOptions::new(ClusterRanges::new(ranges)));
        Self { world }
    }

    /// Two nodes with a range each, and no program yet.
    pub(super) fn new() -> Self {
        let stage = Self::empty();
        stage.set_ranges("node-1", &["10.244.1.0/24"]);
        stage.set_ranges("node-2", &["10.244.2.0/24"]);
        stage
    }

    /// The same without a part of Neutron.
    pub(super) fn without(self, extension: &str) -> Self {
        self.world.cloud.remove_extension(extension);
        self
    }

    /// The program has done everything; what that took is forgotten.
    pub(super) async fn converged(mut self) -> Self {
        self.world.start_to_rest().await;
        self.world.take_calls();
        self
    }

    // Nodes.

    pub(super) fn set_ranges(&self, node: &str, ranges: &[&str]) {
        self.world
            .kube
            .patch("nodes", "", node, &json!({"spec": {"podCIDR": ranges.first(), "podCIDRs": ranges}}))
            .unwrap();
    }

    pub(super) fn set_addresses(&self, node: &str, internal: &[&str]) {
        let addresses: Vec<Value> =
            internal.iter().map(|address| json!({"type": "InternalIP", "address": address})).collect();
        self.world
            .kube
            .patch_status("nodes", "", node, &json!({"status": {"addresses": addresses}}))
            .unwrap();
    }

    pub(super) fn set_condition(&self, node: &str, status: &str, reason: &str) {
        let condition = json!({
            "type": "NetworkUnavailable", "status": status, "reason": reason, "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let patch = json!({"status": {"conditions": [condition, ready]}});
        self.world.kube.patch_status("nodes", "", node, &patch).unwrap();
    }

    /// Adds a server and its node.
    pub(super) fn add_node(&self, name: &str, ranges: &[&str]) {
        self.world.add_node(name, "v1.36.0");
        self.set_ranges(name, ranges);
    }

    /// Removes a node and its server.
    pub(super) fn remove_node(&self, name: &str) {
        self.world.cloud.remove_node(name);
        self.world.kube.delete("nodes", "", name).unwrap();
    }

    /// `False RouteCreated`; empty when there is no such condition.
    pub(super) fn condition(&self, node: &str) -> String {
        let node = self.world.kube.get("nodes", "", node).unwrap();
        let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == "NetworkUnavailable");
        found.map_or_else(String::new, |condition| {
            format!("{} {}", condition["status"].as_str().unwrap(), condition["reason"].as_str().unwrap())
        })
    }

    pub(super) fn conditions(&self) -> Vec<String> {
        let nodes = self.world.kube.list("nodes", "").unwrap();
        nodes.iter().map(|node| self.condition(node["metadata"]["name"].as_str().unwrap())).collect()
    }

    // The cloud.

    /// The routes of the router, sorted: `10.244.1.0/24 via 198.18.0.50`.
    pub(super) fn routes(&self) -> Vec<String> {
        let router = &self.world.cloud.routers()[0];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut routes: Vec<String> = router["routes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|route| format!("{} via {}", text(&route["destination"]), text(&route["nexthop"])))
            .collect();
        routes.sort();
        routes
    }

    /// Adds routes as somebody else does.
    pub(super) fn add_routes(&self, routes: &[&str]) {
        self.change_routes("add_extraroutes", routes);
    }

    /// Removes routes as somebody else does.
    pub(super) fn remove_routes(&self, routes: &[&str]) {
        self.change_routes("remove_extraroutes", routes);
    }

    fn change_routes(&self, action: &str, routes: &[&str]) {
        let routes: Vec<Value> = routes
            .iter()
            .map(|route| {
                let (destination, nexthop) = route.split_once(" via ").unwrap();
                json!({"destination": destination, "nexthop": nexthop})
            })
            .collect();
        // Administrators of the cloud can do so also where the extension is missing for others.
        let path = format!("/v2.0/routers/{}", self.world.cloud.seed().router_id);
        let present = self.world.cloud.routers()[0]["routes"].as_array().unwrap().clone();
        let mut all: Vec<Value> = present.into_iter().filter(|route| !routes.contains(route)).collect();
        if action == "add_extraroutes" {
            all.extend(routes);
        }
        self.put(&path, &json!({"router": {"routes": all}}));
    }

    /// A change by another user of the project.
    pub(super) fn put(&self, path: &str, body: &Value) {
        let (status, answer) = self.world.cloud.user().put("network", path, body);
        assert!((200..300).contains(&status), "{status} {answer}");
    }

    pub(super) fn port_id(&self, node: &str) -> String {
        self.world.cloud.nodes().into_iter().find(|one| one.name == node).unwrap().port_id
    }

    /// The allowed address pairs of a node's port, sorted.
    pub(super) fn pairs(&self, node: &str) -> Vec<String> {
        let id = self.port_id(node);
        let port = self.world.cloud.ports().into_iter().find(|port| port["id"] == id.as_str()).unwrap();
        let pairs = port["allowed_address_pairs"].as_array().cloned().unwrap_or_default();
        let mut pairs: Vec<String> =
            pairs.iter().map(|pair| pair["ip_address"].as_str().unwrap().to_owned()).collect();
        pairs.sort();
        pairs
    }

    /// Routes, pairs and conditions as text.
    pub(super) fn state(&self) -> String {
        let mut lines = self.routes();
        for node in self.world.cloud.nodes() {
            lines.push(format!("{}: pairs {}", node.name, self.pairs(&node.name).join(", ")));
        }
        for node in self.world.kube.list("nodes", "").unwrap() {
            let name = node["metadata"]["name"].as_str().unwrap().to_owned();
            lines.push(format!("{name}: {}", self.condition(&name)));
        }
        lines.join("\n")
    }
}

//! What is in the cluster beside the Service: the application, clients, and the security groups of the nodes.

use openstack_ccm_kube_sim::READS_HEADER;
use serde_json::{Value, json};

use super::stage::Kind;
use super::{kube_proxy, programs};
use crate::support::World;

/// Everything that others make.
pub(super) fn furnish(world: &World, kind: Kind, version: &str) {
    for node in world.cloud.nodes() {
        let addresses: Vec<Value> =
            node.addresses.iter().map(|address| json!({"type": "InternalIP", "address": address})).collect();
        let status = json!({"status": {"addresses": addresses}});
        world.kube.patch_status("nodes", "", &node.name, &status).unwrap();
        world.set_ready(&node.name, "True");
        world.kube.patch("nodes", "", &node.name, &json!({"spec": {"taints": null}})).unwrap();
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    world.kube.create(&namespace).unwrap();
    let corefile = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"},
        "data": {"Corefile": ".:53 {\n    kubernetes cluster.local\n}\n"}});
    world.kube.create(&corefile).unwrap();
    kube_proxy::install(world, version);
    application(world, kind);
    for (namespace, name, node, address) in CLIENTS {
        let labels = json!({"app": "client"});
        pod(
            world,
            namespace,
            name,
            &labels,
            node,
            &[address],
            &json!([{"name": "shell", "image": "busybox"}]),
        );
    }
    guard_nodes(world, &[open_group(world)]);
}

/// Pods that go to the Service: namespace, name, node and address.
pub(super) const CLIENTS: [(&str, &str, &str, &str); 3] = [
    ("default", "client-1", "node-1", "10.244.1.21"),
    ("default", "client-2", "node-2", "10.244.2.22"),
    ("shop", "client-3", "node-1", "10.244.1.23"),
];
/// Addresses of the application's pod, which is on node-2.
pub(super) const APPLICATION: [&str; 2] = ["10.244.2.7", "fd00:244:2::7"];

fn application(world: &World, kind: Kind) {
    let addresses = if kind == Kind::DualStack { &APPLICATION[..] } else { &APPLICATION[..1] };
    programs::install(world, kind);
    pod(
        world,
        "default",
        "web-1",
        &programs::labels(kind),
        "node-2",
        addresses,
        &json!([programs::container(kind)]),
    );
    let annotations = json!({READS_HEADER: programs::readings(kind).to_string()});
    world.kube.patch("pods", "default", "web-1", &json!({"metadata": {"annotations": annotations}})).unwrap();
    for address in addresses {
        world.kube.create(&slice(kind, address)).unwrap();
    }
    if kind == Kind::Shared {
        let mut other = slice(kind, APPLICATION[0]);
        other["metadata"] = json!({"name": "web2-ipv4", "labels": {"kubernetes.io/service-name": "web2"}});
        other["ports"] = json!([{"name": "other", "port": 8443, "protocol": "TCP"}]);
        world.kube.create(&other).unwrap();
    }
}

/// The slice of the Service with this address.
fn slice(kind: Kind, address: &str) -> Value {
    let (family, name) = if address.contains(':') { ("IPv6", "web-ipv6") } else { ("IPv4", "web-ipv4") };
    let ports = kind.ports().into_iter();
    let ports: Value =
        ports.map(|port| json!({"name": port.name, "port": port.at, "protocol": port.protocol})).collect();
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family,
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "web"}},
        "endpoints": [{"addresses": [address], "nodeName": "node-2", "conditions": {"ready": true, "serving": true, "terminating": false},
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-1"}}],
        "ports": ports})
}

pub(super) fn pod(
    world: &World,
    namespace: &str,
    name: &str,
    labels: &Value,
    node: &str,
    addresses: &[&str],
    containers: &Value,
) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"nodeName": node, "containers": containers}});
    world.kube.create(&pod).unwrap();
    let ips: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip})).collect();
    let status = json!({"status": {"phase": "Running", "podIP": addresses[0], "podIPs": ips,
        "conditions": [{"type": "Ready", "status": "True"}]}});
    world.kube.patch_status("pods", namespace, name, &status).unwrap();
}

/// A security group that lets everybody in at node ports.
pub(super) fn open_group(world: &World) -> String {
    let rules = [("tcp", "IPv4"), ("udp", "IPv4"), ("tcp", "IPv6")].map(|(protocol, ethertype)| {
        json!({"protocol": protocol, "ethertype": ethertype, "port_range_min": 30000, "port_range_max": 32767})
    });
    group(world, &rules)
}

/// A security group of the project with these rules for what comes in.
pub(super) fn group(world: &World, rules: &[Value]) -> String {
    let cloud = world.cloud.user();
    let body = json!({"security_group": {"name": "nodes"}});
    let (_, group) = cloud.post("network", "/v2.0/security-groups", &body);
    let group = group["security_group"]["id"].as_str().unwrap().to_owned();
    for rule in rules {
        let mut rule = rule.clone();
        rule["security_group_id"] = json!(group);
        rule["direction"] = json!("ingress");
        if rule["remote_group_id"] == "itself" {
            rule["remote_group_id"] = json!(group);
        }
        let body = json!({"security_group_rule": rule});
        cloud.make("network", "/v2.0/security-group-rules", &body);
    }
    group
}

/// Gives the ports of all nodes these groups.
pub(super) fn guard_nodes(world: &World, groups: &[String]) {
    for node in world.cloud.nodes() {
        guard_node(world, &node.name, &json!({"security_groups": groups}));
    }
}

/// Changes the port of one node.
pub(super) fn guard_node(world: &World, name: &str, change: &Value) {
    let node = world.cloud.nodes().into_iter().find(|node| node.name == name).unwrap();
    let path = format!("/v2.0/ports/{}", node.port_id);
    world.cloud.admin().change("network", &path, &json!({"port": change}));
}

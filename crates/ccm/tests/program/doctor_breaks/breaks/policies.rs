//! NetworkPolicies, of clients and of the application.

use serde_json::{Value, json};

use super::{Break, anywhere};
use crate::doctor_breaks::stage::{Kind, Stage};

pub(super) const BREAKS: &[Break] = &[
    Break::new("egress to nothing", anywhere, |stage| egress(stage, "default", &json!([]))),
    Break::new("egress to the pods only", anywhere, |stage| egress(stage, "default", &to_pods())),
    Break::new("egress of another namespace to the pods only", anywhere, |stage| {
        egress(
            stage,
            "shop",
            &json!([{"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "web"}}}]}]),
        );
    }),
    Break::new("egress to the pods and to the address", has_address, |stage| {
        let block = json!({"to": [{"ipBlock": {"cidr": format!("{}/32", stage.address())}}]});
        egress(stage, "default", &json!([to_pods()[0], block]));
    }),
    Break::new("egress to the address on another port", has_address, |stage| {
        let block = json!({"to": [{"ipBlock": {"cidr": format!("{}/32", stage.address())}}], "ports": [{"port": 8080}]});
        egress(stage, "default", &json!([to_pods()[0], block]));
    }),
    Break::new("egress to all but the address", has_address, |stage| {
        let block = json!({"cidr": "0.0.0.0/0", "except": [format!("{}/32", stage.address())]});
        egress(stage, "default", &json!([to_pods()[0], {"to": [{"ipBlock": block}]}]));
    }),
    Break::new("egress to everything", anywhere, |stage| egress(stage, "default", &json!([{}]))),
    Break::new("ingress from nobody", anywhere, |stage| ingress(stage, &json!([]))),
    Break::new("ingress from pods only", anywhere, |stage| {
        ingress(stage, &json!([{"from": [{"namespaceSelector": {}}]}]));
    }),
    Break::new("ingress from outside only", anywhere, |stage| {
        ingress(stage, &json!([{"from": [{"ipBlock": {"cidr": "203.0.113.0/24"}}]}]));
    }),
    Break::new("ingress from the network of the nodes", is_ipv4, |stage| {
        let blocks = json!([{"ipBlock": {"cidr": "198.18.0.0/24"}}, {"namespaceSelector": {}}]);
        ingress(stage, &json!([{"from": blocks}]));
    }),
    Break::new("ingress on another port", anywhere, |stage| {
        let port = |protocol: &str| json!({"port": 9999, "protocol": protocol});
        ingress(stage, &json!([{"ports": [port("TCP"), port("UDP")]}]));
    }),
    Break::new("ingress on the ports of the pod by name", anywhere, |stage| {
        let names: &[(&str, &str)] = match stage.kind {
            Kind::Udp => &[("dns", "UDP"), ("dns-tcp", "TCP")],
            _ => &[("http", "TCP"), ("https", "TCP")],
        };
        let ports: Vec<Value> =
            names.iter().map(|(name, protocol)| json!({"port": name, "protocol": protocol})).collect();
        ingress(stage, &json!([{"ports": ports}]));
    }),
    Break::new("ingress for UDP only", anywhere, |stage| {
        ingress(stage, &json!([{"ports": [{"protocol": "UDP"}]}]));
    }),
];

fn has_address(kind: Kind) -> bool {
    !matches!(kind, Kind::Hostname | Kind::DualStack)
}

fn is_ipv4(kind: Kind) -> bool {
    kind != Kind::DualStack
}

fn to_pods() -> Value {
    json!([{"to": [{"podSelector": {"matchLabels": {"app": "web"}}}]}])
}

fn create(stage: &Stage, namespace: &str, spec: &Value) {
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "narrow", "namespace": namespace}, "spec": spec});
    stage.world.kube.create(&policy).unwrap();
}

/// For the clients in a namespace.
fn egress(stage: &Stage, namespace: &str, rules: &Value) {
    let pods = json!({"matchLabels": {"app": "client"}});
    create(stage, namespace, &json!({"podSelector": pods, "policyTypes": ["Egress"], "egress": rules}));
}

/// For the application.
fn ingress(stage: &Stage, rules: &Value) {
    create(stage, "default", &json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": rules}));
}

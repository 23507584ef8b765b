//! NetworkPolicies, of clients and of the application.

use serde_json::{Value, json};

use super::{Break, anywhere};
use crate::doctor_breaks::stage::{Kind, Program, Stage};

pub(super) const BREAKS: &[Break] = &[
    Break::new("egress to nothing", anywhere, |stage| egress(stage, "default", &json!([]))).told(&["D401"]),
    Break::new("egress to the pods only", anywhere, |stage| egress(stage, "default", &to_pods())).told(&["D401"])
    .told_in(Kind::has_header),
    Break::new("egress of another namespace to the pods only", anywhere, |stage| {
        egress(
            stage,
            "shop",
            &json!([{"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "web"}}}]}]),
        );
    }).told(&["D401"])
    .told_in(Kind::has_header),
    Break::new("egress to the pods and to the address", has_address, |stage| {
        let block = json!({"to": [{"ipBlock": {"cidr": format!("{}/32", stage.address())}}]});
        egress(stage, "default", &json!([to_pods()[0], block]));
    }),
    Break::new("egress to the address on another port", has_address, |stage| {
        let block = json!({"to": [{"ipBlock": {"cidr": format!("{}/32", stage.address())}}], "ports": [{"port": 8080}]});
        egress(stage, "default", &json!([to_pods()[0], block]));
    }).told(&["D401"])
    .told_in(Kind::has_header),
    Break::new("egress to all but the address", has_address, |stage| {
        let block = json!({"cidr": "0.0.0.0/0", "except": [format!("{}/32", stage.address())]});
        egress(stage, "default", &json!([to_pods()[0], {"to": [{"ipBlock": block}]}]));
    }).told(&["D401"])
    .told_in(Kind::has_header),
    Break::new("egress to DNS only", anywhere, |stage| egress(stage, "default", &json!([dns()]))).told(&["D401"]),
    Break::new("egress of another namespace to DNS only", anywhere, |stage| {
        egress(stage, "shop", &json!([dns()]));
    }),
    Break::new("egress to DNS and port 443", anywhere, |stage| {
        egress(stage, "default", &json!([dns(), {"ports": [{"port": 443}]}]));
    }).told(&["D401"]),
    Break::new("egress to all but the network of floating IPs", has_address, |stage| {
        let block = json!({"cidr": "0.0.0.0/0", "except": ["198.18.0.0/15", "203.0.113.0/24"]});
        egress(stage, "default", &json!([{"to": [{"ipBlock": block}]}]));
    }).told(&["D401"])
    .told_in(Kind::has_header),
    Break::new("egress to everything", anywhere, |stage| egress(stage, "default", &json!([{}]))),
    Break::new("ingress from nobody", anywhere, |stage| ingress(stage, &json!([]))).told(&["D805"]),
    Break::new("ingress from pods only", anywhere, |stage| {
        ingress(stage, &json!([{"from": [{"namespaceSelector": {}}]}]));
    }).told(&["D805"]),
    Break::new("ingress from outside only", anywhere, |stage| {
        ingress(stage, &json!([{"from": [{"ipBlock": {"cidr": "203.0.113.0/24"}}]}]));
    }).told(&["D805"]),
    Break::new("ingress from the network of the nodes", is_ipv4, |stage| {
        let blocks = json!([{"ipBlock": {"cidr": "198.18.0.0/24"}}, {"namespaceSelector": {}}]);
        ingress(stage, &json!([{"from": blocks}]));
    }),
    Break::new("ingress on another port", anywhere, |stage| {
        let port = |protocol: &str| json!({"port": 9999, "protocol": protocol});
        ingress(stage, &json!([{"ports": [port("TCP"), port("UDP")]}]));
    }).told(&["D805"]),
    Break::new("ingress on the ports of the pod by name", anywhere, |stage| {
        let names: &[(&str, &str)] = match stage.kind {
            Kind::Udp => &[("dns", "UDP"), ("dns-tcp", "TCP")],
            _ => &[("http", "TCP"), ("https", "TCP")],
        };
        let ports: Vec<Value> =
            names.iter().map(|(name, protocol)| json!({"port": name, "protocol": protocol})).collect();
        ingress(stage, &json!([{"ports": ports}]));
    })
    .told(&["D805"])
    // Their pods give their ports other names, or none.
    .told_in(|kind| matches!(kind.program(), Program::Traefik | Program::EnvoyGateway)),
    Break::new("ingress for UDP only", anywhere, |stage| {
        ingress(stage, &json!([{"ports": [{"protocol": "UDP"}]}]));
    }).told(&["D805"]),
];

fn has_address(kind: Kind) -> bool {
    !matches!(kind, Kind::Hostname | Kind::DualStack)
}

fn is_ipv4(kind: Kind) -> bool {
    kind != Kind::DualStack
}

fn dns() -> Value {
    let ports = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]);
    json!({"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}], "ports": ports})
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

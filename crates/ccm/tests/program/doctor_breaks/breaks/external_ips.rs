//! `externalIPs`: kube-proxy leads packets for such an address to the pods of that Service, whatever any status says. It ignores
//! headless Services and those that are left to another service proxy.

use serde_json::{Value, json};

use super::{Break, needs_way};
use crate::doctor_breaks::stage::{Kind, Stage};

pub(super) const BREAKS: &[Break] = &[
    Break::new(
        "external IP of the Service itself",
        |kind| has_address(kind) && needs_way(kind),
        |stage| {
            stage.patch("services", "web", &json!({"spec": {"externalIPs": [stage.address()]}}));
        },
    )
    .told(&["D208"]),
    Break::new(
        "external IP of a Service that needs no load balancer",
        |kind| has_address(kind) && !kind.has_header(),
        |stage| {
            stage.patch("services", "web", &json!({"spec": {"externalIPs": [stage.address()]}}));
        },
    ),
    Break::new("external IP of a forgotten Service without pods", has_address, |stage| {
        create(stage, json!({}), &stage.address(), 0, "TCP");
    })
    .told(&["D208"]),
    Break::new("external IP of a forgotten Service in another namespace", has_address, |stage| {
        create(stage, json!({"metadata": {"namespace": "shop"}}), &stage.address(), 0, "TCP");
    })
    .told(&["D208"]),
    Break::new("external IP of a Service of type LoadBalancer that waits", has_address, |stage| {
        create(stage, json!({"spec": {"type": "NodePort"}}), &stage.address(), 0, "TCP");
    })
    .told(&["D208"]),
    Break::new("external IP of a headless Service", has_address, |stage| {
        create(stage, json!({"spec": {"clusterIP": "None"}}), &stage.address(), 0, "TCP");
    }),
    Break::new("external IP on another port", has_address, |stage| {
        create(stage, json!({}), &stage.address(), 9999, "TCP");
    }),
    Break::new(
        "external IP for another protocol",
        |kind| has_address(kind) && kind != Kind::Udp,
        |stage| {
            create(stage, json!({}), &stage.address(), 0, "UDP");
        },
    ),
    Break::new("external IP of another address", has_address, |stage| {
        create(stage, json!({}), "203.0.113.99", 0, "TCP");
    }),
    Break::new("external IP of a Service for another service proxy", has_address, |stage| {
        let labels = json!({"service.kubernetes.io/service-proxy-name": "other"});
        create(stage, json!({"metadata": {"labels": labels}}), &stage.address(), 0, "TCP");
    }),
];

fn has_address(kind: Kind) -> bool {
    kind != Kind::Hostname
}

/// A Service of others with this address on a port: on the last of the examined Service where none is given.
fn create(stage: &Stage, change: Value, address: &str, port: u16, protocol: &str) {
    let last = stage.kind.ports().pop().unwrap().number;
    let port = if port == 0 { last } else { port };
    let mut service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "forgotten", "namespace": "default"},
        "spec": {"externalIPs": [address], "selector": {"app": "gone"},
            "ports": [{"name": "one", "port": port, "protocol": protocol}]}});
    json_merge(&mut service, change);
    stage.world.kube.create(&service).unwrap();
}

fn json_merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                json_merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

//! What doctor sees of a gateway: the Pod, and the objects beside it, that its chart or Envoy Gateway would make of the values that the
//! program really runs with. No kubelet runs these pods; the program itself is in their namespace.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::SERVICE;
use crate::backends::gateway::{Gateway, PORT, traefik_flags};
use crate::kubernetes::api::Kubernetes;
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace};
use crate::scenario::plan::operator;
use crate::stage::Stage;

/// How a gateway came into the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// By its chart, or by Envoy Gateway.
    Named,
    /// As a pod with a file of its own.
    Raw,
}

impl Shape {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Named => "by its objects",
            Self::Raw => "as a raw pod",
        }
    }
}

/// How a gateway may come into a cluster.
pub(super) fn shapes(gateway: Gateway) -> Vec<Shape> {
    match gateway {
        Gateway::Traefik => vec![Shape::Named],
        Gateway::Envoy | Gateway::EnvoyOptional => vec![Shape::Named, Shape::Raw],
        Gateway::Haproxy => vec![Shape::Raw],
    }
}

/// Shows the objects, asks doctor, and compares with what the application does: `reads` is whether it takes the header.
pub(super) fn examined(stage: &mut Stage, gateway: Gateway, shape: Shape, reads: bool) -> Result<String> {
    let api = stage.api()?;
    let name = format!("{gateway:?}-{shape:?}-{reads}").to_lowercase();
    show(&api, gateway, shape, reads, &name)?;
    let service = Kubernetes::service_path(SERVICE);
    api.patch(&service, &json!({"spec": {"selector": {"app": name}}}))?;
    let subject = format!("default/{SERVICE}");
    let words = ["doctor", &subject, "--cluster-name=e2e", "--controllers=service", "-o", "json"];
    let report = operator(stage)?.types(&words)?.json(&[0, 2, 3])?;
    let conclusion = report["services"][0]["conclusion"].as_array().context("doctor concludes nothing")?;
    for end in conclusion {
        let unseen = end["notSeen"].as_array().into_iter().flatten().any(|one| one["hop"] == 9);
        let is_right = match (shape, reads) {
            (Shape::Named, true) => end["verdict"] == "no-fault-found" && !unseen,
            (Shape::Named, false) => end["verdict"] == "ends" && end["code"] == "D901",
            (Shape::Raw, _) => end["verdict"] == "no-fault-found" && unseen,
        };
        ensure!(is_right, "the application reads the header: {reads}; doctor says {end}");
    }
    ensure!(shape == Shape::Named || report["exitCode"] == 3, "{}", report["exitCode"]);
    Ok(report["services"][0]["sentence"].as_str().unwrap_or_default().to_owned())
}

fn show(api: &Kubernetes, gateway: Gateway, shape: Shape, reads: bool, name: &str) -> Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    api.ensure("/api/v1/namespaces/default/serviceaccounts", &account)?;
    let mut labels = json!({"app": name});
    let container = match (gateway, shape) {
        (Gateway::Traefik, _) => {
            json!({"name": "traefik", "image": "docker.io/traefik:v3", "args": traefik_flags(reads),
            "ports": [{"name": "web", "containerPort": PORT, "protocol": "TCP"}]})
        }
        (Gateway::Haproxy, _) => {
            json!({"name": "haproxy", "image": "docker.io/haproxy:3", "args": ["-f", "/etc/haproxy/haproxy.cfg"]})
        }
        (_, Shape::Raw) => {
            json!({"name": "envoy", "image": "docker.io/envoyproxy/envoy:v1", "args": ["-c", "/etc/envoy/envoy.yaml"]})
        }
        (_, Shape::Named) => {
            labels["app.kubernetes.io/managed-by"] = json!("envoy-gateway");
            labels["gateway.envoyproxy.io/owning-gateway-name"] = json!(name);
            labels["gateway.envoyproxy.io/owning-gateway-namespace"] = json!("default");
            envoy_gateway(api, gateway, reads, name)?;
            json!({"name": "envoy", "image": "docker.io/envoyproxy/envoy:distroless-v1",
                "ports": [{"name": "metrics", "containerPort": 19001}, {"name": "readiness", "containerPort": 19003}]})
        }
    };
    for place in [NODES[0], NODES[1]] {
        add_pod(api, place, name, &labels, &container)?;
    }
    Ok(())
}

/// A pod on a node, with the status that a kubelet writes.
fn add_pod(api: &Kubernetes, place: NodePlace, name: &str, labels: &Value, container: &Value) -> Result<()> {
    let (name, address) = (format!("{name}-{}", place.name()), place.ingress_address());
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": place.name(), "containers": [container]}});
    api.ensure("/api/v1/namespaces/default/pods", &pod)?;
    let status = json!({"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True"}]});
    api.patch(&format!("/api/v1/namespaces/default/pods/{name}/status"), &json!({"status": status})).map(drop)
}

/// The Gateway, and the policy that switches the header on, if it is on.
fn envoy_gateway(api: &Kubernetes, gateway: Gateway, reads: bool, name: &str) -> Result<()> {
    define(api, "gateway.networking.k8s.io", "v1", "Gateway", "gateways")?;
    define(api, "gateway.envoyproxy.io", "v1alpha1", "ClientTrafficPolicy", "clienttrafficpolicies")?;
    let object = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": name},
        "spec": {"gatewayClassName": "eg", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}});
    ensure_soon(api, "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways", &object)?;
    if !reads {
        return Ok(());
    }
    let setting = if gateway == Gateway::EnvoyOptional { json!({"optional": true}) } else { json!({}) };
    let target = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": name});
    let policy = json!({"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "ClientTrafficPolicy", "metadata": {"name": name},
        "spec": {"targetRefs": [target], "proxyProtocol": setting}});
    ensure_soon(api, "/apis/gateway.envoyproxy.io/v1alpha1/namespaces/default/clienttrafficpolicies", &policy)
}

/// The API server serves a new kind after a moment.
fn ensure_soon(api: &Kubernetes, path: &str, object: &Value) -> Result<()> {
    soon(&format!("{path} is served"), || api.ensure(path, object))
}

fn define(api: &Kubernetes, group: &str, version: &str, kind: &str, plural: &str) -> Result<()> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"}},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    api.ensure("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition)
}

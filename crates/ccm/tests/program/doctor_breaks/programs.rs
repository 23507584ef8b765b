//! The programs behind a Service, as their charts, or Envoy Gateway itself, would make their objects.

use serde_json::{Value, json};

use super::stage::{Kind, Program};
use crate::support::World;

/// The networks of nodes, load balancers and pods.
pub(super) const TRUSTED: &str = "198.18.0.0/24,10.244.0.0/16";

/// The objects beside the pod.
pub(super) fn install(world: &World, kind: Kind) {
    match kind.program() {
        Program::CoreDns | Program::Traefik => {}
        Program::Nginx => {
            config_map(world, "nginx", &json!({"use-proxy-protocol": kind.has_header().to_string()}));
        }
        Program::Haproxy => config_map(world, "haproxy", &json!({"proxy-protocol": TRUSTED})),
        Program::EnvoyGateway => {
            let listener = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "protocol": protocol});
            let listeners = json!([listener("http", 80, "HTTP"), listener("https", 443, "HTTPS")]);
            gateway(world, "eg", &listeners);
            if kind.has_header() {
                traffic_policy(
                    world,
                    "default",
                    "header",
                    &json!({"targetRefs": [gateway_ref("eg")], "enableProxyProtocol": true}),
                );
            } else {
                gateway(world, "internal", &listeners);
                let spec = json!({"targetRefs": [gateway_ref("internal")], "enableProxyProtocol": true});
                traffic_policy(world, "default", "of-another", &spec);
            }
        }
    }
}

pub(super) fn config_map(world: &World, name: &str, data: &Value) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    world.kube.create(&map).unwrap();
}

fn gateway(world: &World, name: &str, listeners: &Value) {
    let gateway = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": name, "namespace": "default", "labels": {"team": name}},
        "spec": {"gatewayClassName": "eg", "listeners": listeners}});
    world.kube.create(&gateway).unwrap();
}

pub(super) fn gateway_ref(name: &str) -> Value {
    json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": name})
}

pub(super) fn traffic_policy(world: &World, namespace: &str, name: &str, spec: &Value) {
    let policy = json!({"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "ClientTrafficPolicy",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    world.kube.create(&policy).unwrap();
}

pub(super) fn labels(kind: Kind) -> Value {
    let mut labels = json!({"app": "web"});
    if kind.program() == Program::EnvoyGateway {
        labels["app.kubernetes.io/managed-by"] = json!("envoy-gateway");
        labels["app.kubernetes.io/component"] = json!("proxy");
        labels["gateway.envoyproxy.io/owning-gateway-name"] = json!("eg");
        labels["gateway.envoyproxy.io/owning-gateway-namespace"] = json!("default");
    }
    labels
}

fn port(name: &str, number: u16) -> Value {
    json!({"name": name, "containerPort": number, "protocol": "TCP"})
}

pub(super) fn container(kind: Kind) -> Value {
    let field =
        |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    match kind.program() {
        Program::CoreDns => json!({"name": "dns", "image": "registry.example.org/coredns/coredns:v1.12.0",
            "ports": [{"name": "dns", "containerPort": 5353, "protocol": "UDP"}, port("dns-tcp", 5353)]}),
        Program::Nginx => {
            json!({"name": "controller", "image": "registry.example.org/ingress-nginx/controller:v1.15.1",
            "args": ["/nginx-ingress-controller", "--configmap=$(POD_NAMESPACE)/nginx", "--http-port=8080", "--https-port=8443"],
            "env": [field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace")],
            "ports": [port("http", 8080), port("https", 8443)]})
        }
        Program::Traefik => json!({"name": "traefik", "image": "docker.io/traefik:v3.6.2",
            "args": traefik_flags(&["web", "websecure"]),
            "ports": [port("metrics", 9100), port("traefik", 8080), port("web", 8000), port("websecure", 8443)]}),
        Program::Haproxy => {
            json!({"name": "kubernetes-ingress-controller", "image": "docker.io/haproxytech/kubernetes-ingress:3.1.9",
            "args": ["--default-ssl-certificate=default/cert", "--configmap=default/haproxy", "--http-bind-port=8080", "--https-bind-port=8443",
                "--ingress.class=haproxy", "--publish-service=default/web", "--log=info"],
            "ports": [port("http", 8080), port("https", 8443), port("stat", 1024)]})
        }
        Program::EnvoyGateway => {
            json!({"name": "envoy", "image": "docker.io/envoyproxy/envoy:distroless-v1.34.1", "command": ["envoy"],
            "args": ["--service-cluster default/eg", "--log-level warn"],
            "ports": [port("metrics", 19001), port("readiness", 19003)]})
        }
    }
}

/// The flags of Traefik's chart, with trusted networks at these entry points.
pub(super) fn traefik_flags(trusting: &[&str]) -> Vec<String> {
    let mut flags: Vec<String> = [("metrics", 9100), ("traefik", 8080), ("web", 8000), ("websecure", 8443)]
        .map(|(name, port)| format!("--entryPoints.{name}.address=:{port}/tcp"))
        .to_vec();
    flags.extend(["--api.dashboard=true", "--ping=true", "--providers.kubernetescrd"].map(str::to_owned));
    flags.extend(
        trusting.iter().map(|name| format!("--entryPoints.{name}.proxyProtocol.trustedIPs={TRUSTED}")),
    );
    flags
}

/// What the ports of the pod make of the header.
pub(super) fn readings(kind: Kind) -> Value {
    let word = match kind.program() {
        Program::CoreDns => return json!({}),
        _ if !kind.has_header() => "never".to_owned(),
        Program::Traefik => "optional".to_owned(),
        Program::Haproxy => format!("required from {TRUSTED}"),
        Program::Nginx | Program::EnvoyGateway => "required".to_owned(),
    };
    kind.ports()
        .into_iter()
        .map(|port| (port.at.to_string(), json!(word)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

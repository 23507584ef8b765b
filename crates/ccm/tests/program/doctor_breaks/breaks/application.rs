//! The application, and what the Service asks for.

use openstack_ccm_kube_sim::READS_HEADER;
use serde_json::{Value, json};

use super::{Break, Sight, anywhere, in_cloud};
use crate::doctor_breaks::stage::{Kind, Program, Stage};
use crate::support::PROXY;

pub(super) const BREAKS: &[Break] = &[
    Break::new("the application does not expect the header", is_nginx, |stage| expects(stage, false))
        .told(&["D901"])
        .configures(),
    Break::new("the application expects a header that nobody sends", is_plain, |stage| expects(stage, true))
        .told(&["D902"])
        .configures(),
    Break::new("the containers listen on another port", is_declared, |stage| {
        let at = stage.kind.ports()[0].at;
        let mut pod = stage.world.kube.get("pods", "default", "web-1").unwrap();
        let ports = pod["spec"]["containers"][0]["ports"].as_array_mut().unwrap();
        ports.iter_mut().find(|port| port["containerPort"] == at).unwrap()["containerPort"] = json!(9090);
        stage.patch("pods", "web-1", &json!({"spec": {"containers": pod["spec"]["containers"]}}));
        reads(stage, "web-1", &[(at, "nobody listens")]);
    })
    .seen(Sight::Doubt)
    .told(&["D703"])
    // A monitor sees it, but not that of `Local`, which asks kube-proxy.
    .told_in(|kind| kind == Kind::Monitored)
    .configures(),
    Break::new("a value that is none", has_proxy, |stage| {
        stage.world.annotate("web", PROXY, Some("yes"));
    })
    .told(&["D512"])
    .seen(Sight::Spare),
    Break::new("a misspelt annotation", in_cloud, |stage| {
        stage.world.annotate("web", "loadbalancer.openstack.org/proxy-protocl", Some("v2"));
    })
    .told(&["D508"]),
    Break::new("source ranges that are not at the load balancer yet", has_mode, |stage| {
        stage.patch("services", "web", &json!({"spec": {"loadBalancerSourceRanges": ["198.51.100.0/24"]}}));
    })
    .told(&["D511"])
    .seen(Sight::Spare),
    Break::new("a line of the Corefile that leads away", anywhere, |stage| {
        let text = ".:53 {\n    rewrite name shop.example.org web.gone.svc.cluster.local\n    kubernetes cluster.local\n}\n";
        stage
            .world
            .kube
            .patch("configmaps", "kube-system", "coredns", &json!({"data": {"Corefile": text}}))
            .unwrap();
    }),
];

fn is_plain(kind: Kind) -> bool {
    matches!(kind, Kind::Plain | Kind::Managed)
}

/// With the header, and ingress-nginx.
pub(super) fn is_nginx(kind: Kind) -> bool {
    kind.has_header() && kind.program() == Program::Nginx
}

/// Ports that are declared: those of Envoy are not.
fn is_declared(kind: Kind) -> bool {
    kind.program() != Program::EnvoyGateway
}

fn has_proxy(kind: Kind) -> bool {
    kind.has_header() && kind.is_in_cloud()
}

fn has_mode(kind: Kind) -> bool {
    kind.is_in_cloud()
}

/// What ports of a pod make of the header from now on: the truth, which doctor has to find in what the row changes.
pub(super) fn reads(stage: &Stage, pod: &str, ports: &[(u16, &str)]) {
    let object = stage.world.kube.get("pods", "default", pod).unwrap();
    let before = object["metadata"]["annotations"][READS_HEADER].as_str().unwrap_or("{}");
    let mut readings: Value = serde_json::from_str(before).unwrap();
    for (port, word) in ports {
        readings[port.to_string()] = match *word {
            "nobody listens" => Value::Null,
            word => json!(word),
        };
    }
    let annotations = json!({READS_HEADER: readings.to_string()});
    stage.patch("pods", pod, &json!({"metadata": {"annotations": annotations}}));
}

fn expects(stage: &Stage, header: bool) {
    stage.patch("configmaps", "nginx", &json!({"data": {"use-proxy-protocol": header.to_string()}}));
    let word = if header { "required" } else { "never" };
    reads(stage, "web-1", &[(8080, word), (8443, word)]);
}

//! The application, and what the Service asks for.

use serde_json::json;

use super::{Break, Sight, anywhere, in_cloud};
use crate::doctor_breaks::stage::{Kind, Stage};
use crate::support::PROXY;

pub(super) const BREAKS: &[Break] = &[
    Break::new("the application does not expect the header", Kind::has_header, |stage| expects(stage, false)),
    Break::new("the application expects a header that nobody sends", is_plain, |stage| expects(stage, true)),
    Break::new("the containers listen on another port", anywhere, |stage| {
        let mut pod = stage.world.kube.get("pods", "default", "web-1").unwrap();
        pod["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(9090);
        stage.patch("pods", "web-1", &json!({"spec": {"containers": pod["spec"]["containers"]}}));
    })
    .seen(Sight::Doubt),
    Break::new("a value that is none", has_proxy, |stage| {
        stage.world.annotate("web", PROXY, Some("yes"));
    })
    .seen(Sight::Spare),
    Break::new("a misspelt annotation", in_cloud, |stage| {
        stage.world.annotate("web", "loadbalancer.openstack.org/proxy-protocl", Some("v2"));
    }),
    Break::new("source ranges that are not at the load balancer yet", has_mode, |stage| {
        stage.patch("services", "web", &json!({"spec": {"loadBalancerSourceRanges": ["198.51.100.0/24"]}}));
    })
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

fn has_proxy(kind: Kind) -> bool {
    kind.has_header() && kind.is_in_cloud()
}

fn has_mode(kind: Kind) -> bool {
    kind.is_in_cloud()
}

fn expects(stage: &Stage, header: bool) {
    stage.patch("configmaps", "nginx", &json!({"data": {"use-proxy-protocol": header.to_string()}}));
}

//! The floating IP: detached, deleted, led elsewhere.

use http::Method;
use serde_json::{Value, json};

use super::Break;
use crate::doctor_breaks::stage::{Kind, Stage};

pub(super) const BREAKS: &[Break] = &[
    Break::new("floating IP detached", Kind::is_floating, |stage| attach(stage, &Value::Null))
        .told(&["D509", "D105"]),
    Break::new("floating IP deleted", Kind::is_floating, |stage| {
        stage.neutron(&Method::DELETE, &path(stage), &Value::Null);
    })
    .told(&["D509"]),
    Break::new("floating IP on a node", Kind::is_floating, |stage| {
        attach(stage, &json!(stage.world.cloud.nodes()[0].port_id));
    })
    .told(&["D512"]),
    Break::new("another floating IP on the load balancer", Kind::is_floating, |stage| {
        attach(stage, &Value::Null);
        let network = stage.world.cloud.seed().public_network_id.clone();
        let load_balancer = stage.world.cloud.load_balancers().remove(0);
        let body =
            json!({"floatingip": {"floating_network_id": network, "port_id": load_balancer["vip_port_id"]}});
        stage.world.cloud.user().make("network", "/v2.0/floatingips", &body);
    })
    .told(&["D509", "D105"]),
];

fn path(stage: &Stage) -> String {
    let floating = stage.world.cloud.floating_ips().remove(0);
    format!("/floatingips/{}", floating["id"].as_str().unwrap())
}

fn attach(stage: &Stage, port: &Value) {
    stage.neutron(&Method::PUT, &path(stage), &json!({"floatingip": {"port_id": port}}));
}

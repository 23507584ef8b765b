//! The status of the Service.

use serde_json::json;

use super::{Break, anywhere, in_cloud};
use crate::doctor_breaks::stage::Kind;

pub(super) const BREAKS: &[Break] = &[
    Break::new("nothing published", anywhere, |stage| stage.publish(&json!([]))).told(&["D206"]),
    Break::new("published as VIP", has_mode, |stage| {
        stage.publish(&json!([{"ip": stage.address(), "ipMode": "VIP"}]));
    })
    .told(&["D201", "D204"])
    .told_in(Kind::has_header),
    Break::new("published without a mode", anywhere, |stage| {
        stage.publish(&json!([{"ip": stage.address()}]));
    })
    .told(&["D204", "D201"])
    .told_in(Kind::has_header),
    Break::new("published by an address of nobody", anywhere, |stage| {
        stage.publish(&json!([proxy("198.19.0.99")]));
    })
    .told(&["D207"])
    .told_in(in_cloud),
    Break::new("published by an address of nobody as VIP", has_mode, |stage| {
        stage.publish(&json!([{"ip": "198.19.0.99", "ipMode": "VIP"}]));
    })
    .told(&["D207", "D201"]),
    Break::new("published by a second address of nobody", anywhere, |stage| {
        stage.publish(&json!([proxy(&stage.address()), proxy("198.19.0.99")]));
    })
    .told(&["D207"])
    .told_in(in_cloud),
    Break::new("published by the VIP behind the floating IP", Kind::is_floating, |stage| {
        let load_balancer = stage.world.cloud.load_balancers().remove(0);
        stage.publish(&json!([proxy(load_balancer["vip_address"].as_str().unwrap())]));
    })
    .told(&["D207"]),
    Break::new("published by the address of a node", anywhere, |stage| {
        stage.publish(&json!([proxy("198.18.0.50")]));
    })
    .told(&["D207"])
    .told_in(in_cloud),
    Break::new("published by address and hostname", has_mode, |stage| {
        stage.publish(&json!([{"ip": stage.address(), "ipMode": "VIP", "hostname": "web.lb.example.org"}]));
    })
    .told(&["D204", "D203"]),
    Break::new("published by a name that nobody knows", anywhere, |stage| {
        stage.publish(&json!([{"hostname": "web.example.org"}]));
    })
    .told(&["D102"]),
    Break::new("published by a name of another address", anywhere, |stage| {
        stage.publish(&json!([{"hostname": "198.19.0.77.nip.io"}]));
    })
    .told(&["D105"])
    .told_in(in_cloud),
    Break::new("published by a name of its address", anywhere, |stage| {
        stage.publish(&json!([{"hostname": format!("{}.lb.example.org", stage.address())}]));
    })
    .told(&["D204"])
    .told_in(|kind| !matches!(kind, Kind::Hostname | Kind::Overlay)),
];

/// Whether the API server keeps a mode.
fn has_mode(kind: Kind) -> bool {
    kind != Kind::Hostname
}

fn proxy(address: &str) -> serde_json::Value {
    json!({"ip": address, "ipMode": "Proxy"})
}

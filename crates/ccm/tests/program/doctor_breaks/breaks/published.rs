//! The status of the Service.

use serde_json::json;

use super::{Break, anywhere};
use crate::doctor_breaks::stage::Kind;

pub(super) const BREAKS: &[Break] = &[
    Break::new("nothing published", anywhere, |stage| stage.publish(&json!([]))),
    Break::new("published as VIP", has_mode, |stage| {
        stage.publish(&json!([{"ip": stage.address(), "ipMode": "VIP"}]));
    }),
    Break::new("published without a mode", anywhere, |stage| {
        stage.publish(&json!([{"ip": stage.address()}]));
    }),
    Break::new("published by an address of nobody", anywhere, |stage| {
        stage.publish(&json!([proxy("198.19.0.99")]));
    }),
    Break::new("published by an address of nobody as VIP", has_mode, |stage| {
        stage.publish(&json!([{"ip": "198.19.0.99", "ipMode": "VIP"}]));
    }),
    Break::new("published by a second address of nobody", anywhere, |stage| {
        stage.publish(&json!([proxy(&stage.address()), proxy("198.19.0.99")]));
    }),
    Break::new("published by the VIP behind the floating IP", Kind::is_floating, |stage| {
        let load_balancer = stage.world.cloud.load_balancers().remove(0);
        stage.publish(&json!([proxy(load_balancer["vip_address"].as_str().unwrap())]));
    }),
    Break::new("published by the address of a node", anywhere, |stage| {
        stage.publish(&json!([proxy("198.18.0.50")]));
    }),
    Break::new("published by address and hostname", has_mode, |stage| {
        stage.publish(&json!([{"ip": stage.address(), "ipMode": "VIP", "hostname": "web.lb.example.org"}]));
    }),
    Break::new("published by a name that nobody knows", anywhere, |stage| {
        stage.publish(&json!([{"hostname": "web.example.org"}]));
    }),
    Break::new("published by a name of another address", anywhere, |stage| {
        stage.publish(&json!([{"hostname": "198.19.0.77.nip.io"}]));
    }),
    Break::new("published by a name of its address", anywhere, |stage| {
        stage.publish(&json!([{"hostname": format!("{}.lb.example.org", stage.address())}]));
    }),
];

/// Whether the API server keeps a mode.
fn has_mode(kind: Kind) -> bool {
    kind != Kind::Hostname
}

fn proxy(address: &str) -> serde_json::Value {
    json!({"ip": address, "ipMode": "Proxy"})
}

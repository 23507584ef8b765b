//! Security groups of the nodes: by rule, protocol, port, family and source.

use serde_json::{Value, json};

use super::{Break, Sight, in_cloud};
use crate::doctor_breaks::cluster::{group, guard_node, guard_nodes};
use crate::doctor_breaks::stage::Stage;

const FIRST: u16 = 30000;
const LAST: u16 = 32767;

pub(super) const BREAKS: &[Break] = &[
    Break::new("no security group", in_cloud, |stage| guard_nodes(&stage.world, &[])),
    Break::new("a security group without rules", in_cloud, |stage| only(stage, &[])),
    Break::new("rules for TCP only", in_cloud, |stage| only(stage, &[ports("tcp")])),
    Break::new("rules for UDP only", in_cloud, |stage| only(stage, &[ports("udp")])),
    Break::new("rules for other ports", in_cloud, |stage| {
        let rule =
            |protocol: &str| json!({"protocol": protocol, "port_range_min": 22, "port_range_max": 1024});
        only(stage, &[rule("tcp"), rule("udp")]);
    }),
    Break::new("a rule for the first node port only", in_cloud, |stage| {
        let port = stage.node_port(0);
        let rule =
            |protocol: &str| json!({"protocol": protocol, "port_range_min": port, "port_range_max": port});
        only(stage, &[rule("tcp"), rule("udp")]);
    }),
    Break::new("rules for another network", in_cloud, |stage| from(stage, "10.0.0.0/8")),
    Break::new("rules for the address of the load balancer only", in_cloud, |stage| {
        let load_balancer = stage.world.cloud.load_balancers().remove(0);
        let vip = load_balancer["vip_address"].as_str().unwrap();
        if vip.contains(':') {
            return only(stage, &[]);
        }
        from(stage, &format!("{vip}/32"));
    })
    // The project does not see the addresses from which an amphora sends.
    .seen(Sight::Doubt),
    Break::new("rules for the network of the load balancer", in_cloud, |stage| from(stage, "198.18.0.0/24")),
    Break::new("rules for the members of the group itself", in_cloud, |stage| {
        let rule = |protocol: &str| with(ports(protocol), "remote_group_id", json!("itself"));
        only(stage, &[rule("tcp"), rule("udp")]);
    }),
    Break::new("rules for IPv6 only", in_cloud, |stage| {
        let rule = |protocol: &str| with(ports(protocol), "ethertype", json!("IPv6"));
        only(stage, &[rule("tcp"), rule("udp")]);
    }),
    Break::new("a rule for every protocol", in_cloud, |stage| only(stage, &[json!({})])),
    Break::new("one node without a security group", in_cloud, |stage| {
        guard_node(&stage.world, "node-2", &json!({"security_groups": []}));
    }),
    Break::new("no port security on the nodes", in_cloud, |stage| {
        for node in ["node-1", "node-2"] {
            guard_node(&stage.world, node, &json!({"security_groups": [], "port_security_enabled": false}));
        }
    }),
];

fn ports(protocol: &str) -> Value {
    json!({"protocol": protocol, "port_range_min": FIRST, "port_range_max": LAST})
}

fn with(mut rule: Value, key: &str, value: Value) -> Value {
    rule[key] = value;
    rule
}

fn only(stage: &Stage, rules: &[Value]) {
    let group = group(&stage.world, rules);
    guard_nodes(&stage.world, &[group]);
}

fn from(stage: &Stage, prefix: &str) {
    let rule = |protocol: &str| with(ports(protocol), "remote_ip_prefix", json!(prefix));
    only(stage, &[rule("tcp"), rule("udp")]);
}

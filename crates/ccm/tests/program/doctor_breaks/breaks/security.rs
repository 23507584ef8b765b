//! Security groups of the nodes: by rule, protocol, port, family and source.

use serde_json::{Value, json};

use super::{Break, Sight, in_cloud};
use crate::doctor_breaks::cluster::{group, guard_node, guard_nodes};
use crate::doctor_breaks::stage::{Kind, Stage};

const FIRST: u16 = 30000;
const LAST: u16 = 32767;

pub(super) const BREAKS: &[Break] = &[
    Break::new("no security group", in_cloud, |stage| guard_nodes(&stage.world, &[])).told(&["D702"]),
    Break::new("a security group without rules", in_cloud, |stage| only(stage, &[])).told(&["D702"]),
    Break::new("rules for TCP only", in_cloud, |stage| only(stage, &[ports("tcp")])).told(&["D702"])
    .told_in(|kind| matches!(kind, Kind::Udp)),
    Break::new("rules for UDP only", in_cloud, |stage| only(stage, &[ports("udp")])).told(&["D702"]),
    Break::new("rules for other ports", in_cloud, |stage| {
        let rule =
            |protocol: &str| json!({"protocol": protocol, "port_range_min": 22, "port_range_max": 1024});
        only(stage, &[rule("tcp"), rule("udp")]);
    }).told(&["D702"]),
    Break::new("a rule for the first node port only", in_cloud, |stage| {
        let port = stage.node_port(0);
        let rule =
            |protocol: &str| json!({"protocol": protocol, "port_range_min": port, "port_range_max": port});
        only(stage, &[rule("tcp"), rule("udp")]);
    }).told(&["D702"]),
    Break::new("rules for another network", in_cloud, |stage| from(stage, "10.0.0.0/8")).told(&["D702"]),
    Break::new("rules for the address of the load balancer only", in_cloud, |stage| {
        let load_balancer = stage.world.cloud.load_balancers().remove(0);
        let vip = load_balancer["vip_address"].as_str().unwrap();
        if vip.contains(':') {
            return only(stage, &[]);
        }
        from(stage, &format!("{vip}/32"));
    }).told(&["D703"])
    .told_in(|kind| matches!(kind, Kind::Local | Kind::Monitored))
    // The project does not see the addresses from which an amphora sends.
    .seen(Sight::Doubt),
    Break::new("rules for the network of the load balancer", in_cloud, |stage| from(stage, "198.18.0.0/24")),
    Break::new("rules for the members of the group itself", in_cloud, |stage| {
        let rule = |protocol: &str| with(ports(protocol), "remote_group_id", json!("itself"));
        only(stage, &[rule("tcp"), rule("udp")]);
    }).told(&["D702"]),
    Break::new("rules for IPv6 only", in_cloud, |stage| {
        let rule = |protocol: &str| with(ports(protocol), "ethertype", json!("IPv6"));
        only(stage, &[rule("tcp"), rule("udp")]);
    }).told(&["D702"]),
    Break::new("a rule for every protocol", in_cloud, |stage| only(stage, &[json!({})])),
    Break::new("nothing may leave the nodes", in_cloud, |stage| egress(stage, &[])).told(&["D405"])
    .told_in(Kind::has_header),
    Break::new("nodes may go to another network only", in_cloud, |stage| {
        egress(stage, &[json!({"remote_ip_prefix": "10.0.0.0/8", "ethertype": "IPv4"})]);
    })
    .told(&["D405"])
    .told_in(Kind::has_header),
    Break::new("nodes may go to the second port only", in_cloud, |stage| {
        let port = stage.kind.ports().pop().unwrap();
        let rule = json!({"protocol": port.protocol.to_lowercase(), "port_range_min": port.number, "port_range_max": port.number});
        egress(stage, &[rule]);
    })
    .told(&["D405"])
    .told_in(Kind::has_header),
    Break::new("one node without a security group", in_cloud, |stage| {
        guard_node(&stage.world, "node-2", &json!({"security_groups": []}));
    }).told(&["D702", "D405"]),
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

/// What comes in is let in, and this is let out.
fn egress(stage: &Stage, rules: &[Value]) {
    let group = group(&stage.world, &[json!({}), json!({"ethertype": "IPv6"})]);
    let cloud = stage.world.cloud.user();
    let (_, all) = cloud.get("network", "/v2.0/security-group-rules");
    for rule in all["security_group_rules"].as_array().unwrap() {
        if rule["security_group_id"] == group.as_str() && rule["direction"] == "egress" {
            let path = format!("/security-group-rules/{}", rule["id"].as_str().unwrap());
            stage.neutron(&http::Method::DELETE, &path, &Value::Null);
        }
    }
    for rule in rules {
        let mut rule = rule.clone();
        rule["security_group_id"] = json!(group);
        rule["direction"] = json!("egress");
        stage.neutron(&http::Method::POST, "/security-group-rules", &json!({"security_group_rule": rule}));
    }
    guard_nodes(&stage.world, &[group]);
}

fn only(stage: &Stage, rules: &[Value]) {
    let group = group(&stage.world, rules);
    guard_nodes(&stage.world, &[group]);
}

fn from(stage: &Stage, prefix: &str) {
    let rule = |protocol: &str| with(ports(protocol), "remote_ip_prefix", json!(prefix));
    only(stage, &[rule("tcp"), rule("udp")]);
}

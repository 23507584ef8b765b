//! The load balancer: every object of it disabled, deleted, edited, of another protocol or port, of another owner.

use http::Method;
use serde_json::{Value, json};

use super::{Break, Sight, in_cloud};
use crate::doctor_breaks::stage::{Kind, Stage};

pub(super) const BREAKS: &[Break] = &[
    Break::new("load balancer disabled", in_cloud, |stage| {
        let path = format!("/loadbalancers/{}", stage.load_balancer());
        stage.octavia(&Method::PUT, &path, &json!({"loadbalancer": {"admin_state_up": false}}));
    })
    .told(&["D510"]),
    Break::new("load balancer deleted", in_cloud, |stage| {
        let path = format!("/loadbalancers/{}?cascade=true", stage.load_balancer());
        stage.octavia(&Method::DELETE, &path, &Value::Null);
    })
    .told(&["D506"]),
    Break::new("load balancer in ERROR and at work", in_cloud, |stage| broken(stage, "ONLINE"))
        .told(&["D501"])
        .seen(Sight::Spare),
    Break::new("listeners disabled", in_cloud, |stage| listeners(stage, &json!({"admin_state_up": false})))
        .told(&["D510"]),
    Break::new("first listener disabled", in_cloud, |stage| {
        listener(stage, 0, &json!({"admin_state_up": false}));
    })
    .told(&["D510"]),
    Break::new("listeners deleted", in_cloud, |stage| {
        for id in ids(&stage.listeners()) {
            stage.octavia(&Method::DELETE, &format!("/listeners/{id}"), &Value::Null);
        }
    })
    .told(&["D503"]),
    Break::new("listener on another port", in_cloud, |stage| replace(stage, &json!({"protocol_port": 9999})))
        .told(&["D503"]),
    Break::new("listener of another protocol", is_tcp, |stage| {
        replace(stage, &json!({"protocol": "UDP"}));
    })
    .told(&["D503"]),
    Break::new("foreign listener in the place", in_cloud, |stage| {
        replace(stage, &json!({"name": "by-hand", "tags": []}));
    })
    .told(&["D503"]),
    Break::new("listeners without a pool", in_cloud, |stage| {
        listeners(stage, &json!({"default_pool_id": null}));
    })
    .told(&["D503"]),
    Break::new("first listener leads to a pool without members", in_cloud, |stage| {
        let protocol = pool(stage, 0)["protocol"].clone();
        let made = empty_pool(stage, &protocol);
        listener(stage, 0, &json!({"default_pool_id": made}));
    })
    .told(&["D701"]),
    Break::new(
        "first listener leads to a pool with the other header",
        |kind| is_tcp(kind) && kind != Kind::Traefik,
        other_header,
    )
    .told(&["D601"]),
    Break::new(
        "first listener leads Traefik, which takes both, to a pool with the other header",
        is_traefik,
        other_header,
    )
    .seen(Sight::Spare)
    .told(&["D601"]),
    Break::new("listeners let another network in", in_cloud, |stage| {
        let network = if stage.kind == Kind::Internal { "198.18.0.208/28" } else { "192.0.2.128/25" };
        allowed(stage, &[network]);
    })
    .told(&["D511"]),
    Break::new("listeners let only outside in", is_public, |stage| {
        allowed(stage, &["203.0.113.0/24", "192.0.2.0/24"]);
    })
    .told(&["D511"]),
    Break::new("listeners let only the cloud in", is_public, |stage| {
        allowed(stage, &["198.18.0.0/24", "198.19.0.0/24"]);
    })
    .told(&["D511"]),
    Break::new("pools disabled", in_cloud, |stage| pools(stage, &json!({"admin_state_up": false})))
        .told(&["D510"]),
    Break::new("pools deleted", in_cloud, |stage| {
        for id in stage.pools() {
            stage.octavia(&Method::DELETE, &format!("/pools/{id}"), &Value::Null);
        }
    })
    .told(&["D503"]),
    Break::new("members disabled", in_cloud, |stage| {
        members(stage, |_| true, &json!({"admin_state_up": false}));
    })
    .told(&["D703"]),
    Break::new("one member disabled", in_cloud, |stage| {
        members(stage, is_on_first_node, &json!({"admin_state_up": false}));
    })
    .told(&["D704"])
    .seen(Sight::Spare),
    Break::new("members drained", in_cloud, |stage| members(stage, |_| true, &json!({"weight": 0})))
        .told(&["D703"]),
    Break::new("one member drained", in_cloud, |stage| {
        members(stage, is_on_first_node, &json!({"weight": 0}));
    })
    .told(&["D704"])
    .seen(Sight::Spare),
    Break::new("members of the first pool drained", in_cloud, |stage| {
        let pool = stage.pools().remove(0);
        for member in stage.world.cloud.members(&pool) {
            let path = format!("/pools/{pool}/members/{}", id(&member));
            stage.octavia(&Method::PUT, &path, &json!({"member": {"weight": 0}}));
        }
    })
    .told(&["D703"]),
    Break::new("members deleted", in_cloud, |stage| remove_members(stage, |_| true)).told(&["D701"]),
    Break::new("one member deleted", in_cloud, |stage| remove_members(stage, is_on_first_node))
        .told(&["D701"])
        .seen(Sight::Spare),
    Break::new("members on another port", in_cloud, |stage| {
        batch(stage, |member| json!({"address": member["address"], "protocol_port": 31999}));
    })
    .told(&["D701"]),
    Break::new("members of another address", in_cloud, |stage| {
        batch(stage, |member| json!({"address": "198.18.0.99", "protocol_port": member["protocol_port"]}));
    })
    .told(&["D701"]),
    Break::new("one member on another port", is_unmonitored, |stage| {
        batch(stage, |member| {
            let port = if is_on_first_node(member) { &json!(31999) } else { &member["protocol_port"] };
            json!({"address": member["address"], "protocol_port": port})
        });
    })
    .told(&["D701"]),
    Break::new("members renamed", in_cloud, |stage| {
        members(stage, |_| true, &json!({"name": "renamed"}));
    }),
    Break::new("health monitors deleted", is_monitored, |stage| {
        for id in ids(&stage.world.cloud.health_monitors()) {
            stage.octavia(&Method::DELETE, &format!("/healthmonitors/{id}"), &Value::Null);
        }
    })
    .told(&["D507"])
    .seen(Sight::Spare),
    Break::new("tags of the load balancer removed", in_cloud, |stage| {
        let path = format!("/loadbalancers/{}", stage.load_balancer());
        stage.octavia(&Method::PUT, &path, &json!({"loadbalancer": {"tags": []}}));
    }),
    Break::new("listeners renamed and with another time-out", in_cloud, |stage| {
        listeners(stage, &json!({"name": "renamed"}));
        if stage.kind != Kind::Udp {
            listeners(stage, &json!({"timeout_client_data": 77_000}));
        }
    })
    .told(&["D507"])
    .told_in(|kind| !matches!(kind, Kind::Udp)),
    Break::new("change of the first listener lost", in_cloud, |stage| {
        assert!(stage.world.cloud.lose_change_of(id(&stage.listeners()[0])));
    })
    .seen(Sight::Hidden),
];

fn other_header(stage: &Stage) {
    let old = pool(stage, 0);
    let protocol = if old["protocol"] == "TCP" { "PROXYV2" } else { "TCP" };
    let made = empty_pool(stage, &json!(protocol));
    let members = stage.world.cloud.members(old["id"].as_str().unwrap());
    let members: Vec<Value> = members
        .iter()
        .map(|one| json!({"address": one["address"], "protocol_port": one["protocol_port"]}))
        .collect();
    stage.octavia(&Method::PUT, &format!("/pools/{made}/members"), &json!({"members": members}));
    listener(stage, 0, &json!({"default_pool_id": made}));
}

fn is_traefik(kind: Kind) -> bool {
    kind == Kind::Traefik
}

fn is_tcp(kind: Kind) -> bool {
    in_cloud(kind) && kind != Kind::Udp
}

fn is_public(kind: Kind) -> bool {
    kind.is_floating() && kind != Kind::DualStack
}

fn is_monitored(kind: Kind) -> bool {
    kind.is_monitored()
}

fn is_unmonitored(kind: Kind) -> bool {
    in_cloud(kind) && !kind.is_monitored()
}

fn broken(stage: &Stage, operating: &str) {
    let load_balancers = stage.world.cloud.load_balancers();
    let name = load_balancers[0]["name"].as_str().unwrap();
    assert!(stage.world.cloud.break_load_balancer(name, operating));
}

fn id(object: &Value) -> &str {
    object["id"].as_str().unwrap()
}

fn ids(objects: &[Value]) -> Vec<String> {
    objects.iter().map(|object| id(object).to_owned()).collect()
}

fn listener(stage: &Stage, place: usize, change: &Value) {
    let path = format!("/listeners/{}", id(&stage.listeners()[place]));
    stage.octavia(&Method::PUT, &path, &json!({"listener": change}));
}

fn listeners(stage: &Stage, change: &Value) {
    for place in 0..stage.listeners().len() {
        listener(stage, place, change);
    }
}

fn allowed(stage: &Stage, ranges: &[&str]) {
    listeners(stage, &json!({"allowed_cidrs": ranges}));
}

fn pools(stage: &Stage, change: &Value) {
    for id in stage.pools() {
        stage.octavia(&Method::PUT, &format!("/pools/{id}"), &json!({"pool": change}));
    }
}

/// The pool of the listener in this place.
fn pool(stage: &Stage, place: usize) -> Value {
    let wanted = stage.listeners()[place]["default_pool_id"].clone();
    stage.world.cloud.pools().into_iter().find(|pool| pool["id"] == wanted).unwrap()
}

fn empty_pool(stage: &Stage, protocol: &Value) -> String {
    let body = json!({"pool": {"name": "by-hand", "protocol": protocol, "lb_algorithm": "ROUND_ROBIN",
        "loadbalancer_id": stage.load_balancer()}});
    id(&stage.octavia(&Method::POST, "/pools", &body)["pool"]).to_owned()
}

/// Deletes the first listener, and makes one like it but for a change, without a pool.
fn replace(stage: &Stage, change: &Value) {
    let old = stage.listeners().remove(0);
    stage.octavia(&Method::DELETE, &format!("/listeners/{}", id(&old)), &Value::Null);
    let mut new = json!({"name": old["name"], "tags": old["tags"], "protocol": old["protocol"],
        "protocol_port": old["protocol_port"], "loadbalancer_id": stage.load_balancer()});
    new.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    stage.octavia(&Method::POST, "/listeners", &json!({"listener": new}));
}

fn is_on_first_node(member: &Value) -> bool {
    member["address"] == "198.18.0.50"
}

fn members(stage: &Stage, chosen: fn(&Value) -> bool, change: &Value) {
    for pool in stage.pools() {
        for member in stage.world.cloud.members(&pool).iter().filter(|member| chosen(member)) {
            let path = format!("/pools/{pool}/members/{}", id(member));
            stage.octavia(&Method::PUT, &path, &json!({"member": change}));
        }
    }
}

fn remove_members(stage: &Stage, chosen: fn(&Value) -> bool) {
    for pool in stage.pools() {
        for member in stage.world.cloud.members(&pool).iter().filter(|member| chosen(member)) {
            let path = format!("/pools/{pool}/members/{}", id(member));
            stage.octavia(&Method::DELETE, &path, &Value::Null);
        }
    }
}

/// Puts other members into the place of those that there are.
fn batch(stage: &Stage, new: fn(&Value) -> Value) {
    for pool in stage.pools() {
        let mut members: Vec<Value> = Vec::new();
        for member in stage.world.cloud.members(&pool).iter().map(new) {
            if !members.contains(&member) {
                members.push(member);
            }
        }
        stage.octavia(&Method::PUT, &format!("/pools/{pool}/members"), &json!({"members": members}));
    }
}

//! What happened between the recorded exchanges: faults that were set, and calls that were not recorded.

use openstack_ccm_openstack_sim::WorkerFault;
use serde_json::{Value, json};

use crate::replay::Replay;

/// Exchanges that are not sent, and why.
pub(crate) const NOT_SIMULATED: &[(&str, &str)] = &[
    ("glance discovery / without token", "no controller talks to Glance"),
    ("placement discovery / without token", "no controller talks to Placement"),
];

/// Exchanges of which only status and keys are compared, and why.
pub(crate) const SHAPE_ONLY: &[(&str, &str)] = &[
    ("token: malformed request", "the text is a dump of Keystone's JSON schema"),
    (
        "load balancer: bad boolean",
        "the text shows the body with its keys in the order in which they were sent",
    ),
    ("ports: first page", "which port comes first depends on its id"),
];

/// Takes services that are not simulated out of a recorded catalog.
pub(crate) fn leave_out_unsimulated(recorded: &mut Value) {
    for path in ["/catalog", "/token/catalog"] {
        if let Some(catalog) = recorded.pointer_mut(path).and_then(Value::as_array_mut) {
            catalog.retain(|service| !matches!(service["type"].as_str(), Some("image" | "placement")));
        }
    }
}

/// Brings the world where it was before the exchange with this name.
pub(crate) fn prepare(replay: &mut Replay, exchange: &str) {
    match replay.file() {
        "full" => prepare_full(replay, exchange),
        "leaks" => prepare_leaks(replay, exchange),
        "variants" => prepare_variants(replay, exchange),
        "quotas" => prepare_quotas(replay, exchange),
        "network" => prepare_network(replay, exchange),
        "tls" => prepare_tls(replay, exchange),
        "compute" => prepare_compute(replay, exchange),
        _ => {}
    }
}

fn post(replay: &Replay, service: &str, path: &str, root: &str, body: &Value) -> Value {
    let (status, answer) = replay.sim.user().post(service, path, &json!({root: body}));
    assert!(status < 300, "unrecorded POST {path} failed: {status} {answer}");
    answer[root].clone()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn load_balancer(replay: &Replay, body: &Value) -> Value {
    let mut body = body.clone();
    body["vip_subnet_id"] = json!(replay.sim.seed().subnet_id);
    let lb = post(replay, "load-balancer", "/v2.0/lbaas/loadbalancers", "loadbalancer", &body);
    replay.sim.settle();
    lb
}

fn delete_load_balancers(replay: &Replay, name: &str) {
    replay.sim.settle();
    for lb in replay.sim.load_balancers().iter().filter(|lb| lb["name"] == name) {
        let path = format!("/v2.0/lbaas/loadbalancers/{}?cascade=true", text(&lb["id"]));
        let (status, answer) = replay.sim.user().delete("load-balancer", &path);
        assert_eq!(status, 204, "unrecorded DELETE {path} failed: {answer}");
    }
    replay.sim.settle();
}

fn prepare_full(replay: &Replay, exchange: &str) {
    let sim = &replay.sim;
    match exchange {
        "members: batch that fails in the worker" => {
            delete_load_balancers(replay, "named");
            sim.faults().add_worker(WorkerFault::fail(None));
        }
        "listener: create that fails in the worker"
        | "load balancer: update that fails in the worker"
        | "load balancer: create that fails in the worker" => {
            sim.settle();
            sim.faults().add_worker(WorkerFault::fail(None));
        }
        "pool: after a failed update"
        | "listener: after its create failed"
        | "load balancer: update"
        | "listener: create on a load balancer whose create failed" => sim.faults().clear(),
        _ => {}
    }
}

fn prepare_leaks(replay: &mut Replay, exchange: &str) {
    let project = replay.sim.seed().project_id.clone();
    if exchange.starts_with("leak: ") {
        replay.sim.admin().delete("load-balancer", &format!("/v2.0/lbaas/quotas/{project}"));
    }
    if let Some(kind) = exchange.strip_prefix("leak: quota of ") {
        replay.sim.set_octavia_quota(kind, 0);
    }
    match exchange {
        "leak: what is left" => delete_load_balancers(replay, "leak"),
        "batch: all attributes" => {
            let pools = json!([{"name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}]);
            load_balancer(replay, &json!({"name": "batch", "pools": pools}));
            let pool = replay.sim.pools().into_iter().find(|pool| pool["name"] == "p").unwrap();
            replay.names.bind("a7e04618-1b01-4e76-8946-9c6db0a9ba06", text(&pool["id"]));
        }
        _ => {}
    }
}

fn prepare_variants(replay: &mut Replay, exchange: &str) {
    match exchange {
        "IPv6 subnet" => {
            delete_load_balancers(replay, "variants");
            let network = post(replay, "network", "/v2.0/networks", "network", &json!({"name": "dual"}));
            replay.names.bind("07951501-f76b-40c9-a67a-cb771dc5575b", text(&network["id"]));
            let body = json!({"name": "dual-v4", "network_id": network["id"], "ip_version": 4, "cidr": "198.18.4.0/24"});
            let subnet = post(replay, "network", "/v2.0/subnets", "subnet", &body);
            replay.names.bind("45f54ba5-f59c-418c-93a2-520c378d9dc2", text(&subnet["id"]));
        }
        "port: create to be a VIP, two subnets" => delete_load_balancers(replay, "dual"),
        "port: create to be a VIP" => {
            let user = replay.sim.user();
            for port in replay.sim.ports().iter().filter(|port| port["name"] == "own-vip") {
                user.delete("network", &format!("/v2.0/ports/{}", text(&port["id"])));
            }
        }
        "flavor profile: create" => {
            // Left over from an earlier recording.
            let admin = replay.sim.admin();
            let profile =
                json!({"flavorprofile": {"name": "single", "provider_name": "amphora", "flavor_data": "{}"}});
            let (_, profile) = admin.post("load-balancer", "/v2.0/lbaas/flavorprofiles", &profile);
            let flavor = json!({"flavor": {"name": "lab-1795245594",
                                           "flavor_profile_id": profile["flavorprofile"]["id"]}});
            admin.post("load-balancer", "/v2.0/lbaas/flavors", &flavor);
        }
        "amphorae as admin" => {
            delete_load_balancers(replay, "own-port");
            replay.sim.settle();
        }
        _ => {}
    }
}

fn prepare_quotas(replay: &Replay, exchange: &str) {
    if exchange == "quota: get" {
        load_balancer(replay, &json!({"name": "already there"}));
    }
}

fn prepare_network(replay: &mut Replay, exchange: &str) {
    match exchange {
        "floating IP: create for the VIP port" => {
            let lb = load_balancer(replay, &json!({"name": "fip"}));
            replay.names.bind("ba40d526-4f51-4825-8ab9-d32758b7a9d9", text(&lb["id"]));
            replay.names.bind("7c7a6bcb-8f6e-4d42-bff3-bcd266efaf9c", text(&lb["vip_port_id"]));
            replay.names.bind("198.18.0.110", text(&lb["vip_address"]));
        }
        "floating IP: chosen address as admin" => replay.names.bind("198.19.0.99", "198.19.0.99"),
        "network: delete" => {
            let admin = replay.sim.admin();
            for port in replay.sim.ports().iter().filter(|port| port["device_owner"] == "compute:nova") {
                admin.delete("network", &format!("/v2.0/ports/{}", text(&port["id"])));
            }
        }
        _ => {}
    }
}

fn prepare_tls(replay: &mut Replay, exchange: &str) {
    if exchange == "listener: TERMINATED_HTTPS before the ACL" {
        let lb = load_balancer(replay, &json!({"name": "tls"}));
        replay.names.bind("d2936344-bbd6-47e0-9880-f4e7de0a3925", text(&lb["id"]));
    }
}

fn prepare_compute(replay: &mut Replay, exchange: &str) {
    if exchange == "server: get with a floating IP" {
        let sim = &replay.sim;
        let port = sim.ports().into_iter().find(|port| port["device_owner"] == "compute:nova").unwrap();
        let body = json!({"floating_network_id": sim.seed().public_network_id, "port_id": port["id"]});
        post(replay, "network", "/v2.0/floatingips", "floatingip", &body);
    }
}

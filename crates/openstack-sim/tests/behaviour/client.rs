//! A small client of the in-process face.

use bytes::Bytes;
use http::{Request, Response};
use openstack_ccm_openstack_sim::{ConnectionDropped, Sim};
use serde_json::{Value, json};

/// Sends a request with the token of `demo`.
pub(crate) async fn send(
    sim: &Sim,
    service: &str,
    method: &str,
    path: &str,
    body: Value,
) -> Result<Response<Bytes>, ConnectionDropped> {
    let token = sim.token();
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request =
        Request::builder().method(method).uri(path).header("x-auth-token", token).body(body).unwrap();
    sim.call(service, request).await
}

/// Sends a request to Octavia; the path is below `/v2.0/lbaas`.
pub(crate) async fn octavia(sim: &Sim, method: &str, path: &str, body: Value) -> (u16, Value) {
    let response = send(sim, "load-balancer", method, &format!("/v2.0/lbaas{path}"), body).await.unwrap();
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
}

/// Sends a request to Neutron; the path is below `/v2.0`.
pub(crate) async fn neutron(sim: &Sim, method: &str, path: &str, body: Value) -> (u16, Value) {
    let response = send(sim, "network", method, &format!("/v2.0{path}"), body).await.unwrap();
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
}

/// Makes a load balancer with listeners: protocol, port, pool protocol, and the addresses and ports of members.
pub(crate) async fn create_tree(sim: &Sim, name: &str, listeners: Value) -> String {
    let body = json!({"loadbalancer": {"name": name, "vip_subnet_id": sim.seed().subnet_id, "listeners": listeners}});
    let (status, answer) = octavia(sim, "POST", "/loadbalancers", body).await;
    assert_eq!(status, 201, "{answer}");
    answer["loadbalancer"]["id"].as_str().unwrap().to_owned()
}

/// A listener with a pool for [`create_tree`].
pub(crate) fn listener(protocol: &str, port: u16, pool: &str, members: &[(&str, u16)]) -> Value {
    let members: Vec<Value> =
        members.iter().map(|(address, port)| json!({"address": address, "protocol_port": port})).collect();
    json!({"name": format!("listener-{port}"), "protocol": protocol, "protocol_port": port, "default_pool": {
        "name": format!("pool-{port}"), "protocol": pool, "lb_algorithm": "ROUND_ROBIN", "members": members,
    }})
}

/// `provisioning_status` of a load balancer; empty when it does not exist.
pub(crate) fn status(sim: &Sim, name: &str) -> String {
    let lb = sim.load_balancer(name).unwrap_or_default();
    lb["provisioning_status"].as_str().unwrap_or_default().to_owned()
}

//! Rules about requests, and the log of calls.

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, Sim};
use serde_json::{Value, json};

use crate::client::{neutron, octavia, send};

async fn list_networks(sim: &Sim) -> u16 {
    neutron(sim, "GET", "/networks", Value::Null).await.0
}

#[tokio::test(start_paused = true)]
async fn a_rule_strikes_the_chosen_call_only() {
    let sim = Sim::new();
    let rule =
        Fault::new().service("network").method(Method::GET).path("/networks$").nth(2).answer(503, json!({}));
    let id = sim.faults().add(rule);
    assert_eq!(list_networks(&sim).await, 200);
    assert_eq!(neutron(&sim, "GET", "/networks?name=x", Value::Null).await.0, 200);
    assert_eq!(octavia(&sim, "GET", "/loadbalancers", Value::Null).await.0, 200);
    assert_eq!(list_networks(&sim).await, 503);
    assert_eq!(list_networks(&sim).await, 200);
    assert_eq!(sim.faults().matched(id), 3);
}

#[tokio::test(start_paused = true)]
async fn latency_is_simulated_time() {
    let sim = Sim::new();
    sim.faults().add(Fault::new().latency(Duration::from_secs(60)));
    let began = tokio::time::Instant::now();
    assert_eq!(list_networks(&sim).await, 200);
    assert_eq!(began.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn the_log_has_every_call_and_no_secret() {
    let sim = Sim::new();
    octavia(&sim, "GET", "/loadbalancers?name=x", Value::Null).await;
    octavia(&sim, "POST", "/loadbalancers", json!({"loadbalancer": {}})).await;
    let auth = json!({"auth": {"identity": {"methods": ["password"],
                                            "password": {"user": {"name": "demo", "password": "hunter2"}}}}});
    send(&sim, "identity", "POST", "/v3/auth/tokens", auth).await.unwrap();
    let calls = sim.log().calls();
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0].query, "name=x");
    assert_eq!((calls[1].status, calls[1].json()), (Some(400), json!({"loadbalancer": {}})));
    assert_eq!(sim.log().writes().len(), 1);
    assert_eq!(sim.log().count(|call| call.method == Method::GET), 1);
    assert!(!format!("{calls:?}").contains("hunter2"));
    sim.log().clear();
    assert!(sim.log().calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_actor_is_neither_logged_nor_touched_by_faults() {
    let sim = Sim::new();
    sim.faults().add(Fault::new().answer(500, json!({})));
    assert_eq!(sim.admin().get("network", "/v2.0/networks").0, 200);
    assert!(sim.log().calls().is_empty());
}

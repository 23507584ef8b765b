//! Providers that take neither whole trees nor batches (`provider-requires-serial-api-calls`).

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::{Value, json};

use super::setup::member_names;
use crate::support::{Call, PROXY, Stop, World, service};

/// A world in which everything is made one by one.
fn one_by_one() -> World {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = "provider-requires-serial-api-calls = true\n".to_owned();
    world
}

fn web(node_port: u16) -> Value {
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": node_port}]);
    service("web", json!({"spec": {"ports": ports}}))
}

async fn serving() -> World {
    let mut world = one_by_one();
    world.start().await;
    world.serve(&web(30080)).await;
    world
}

/// The load balancer is made empty, then its children one by one, each when Octavia has finished the one before.
///
/// Contract: SR1, better: the pool is filled before a listener sends anything to it, and the members carry their
/// subnet as in the normal mode.
#[tokio::test(start_paused = true)]
async fn sr1_everything_is_made_one_by_one() {
    let mut world = one_by_one();
    world.start().await;
    world.create(&web(30080));
    world.until_served("web").await;
    let writes = world.take_cloud_writes();
    let octavia: Vec<&str> =
        writes.iter().map(String::as_str).filter(|write| !write.contains("floatingips")).collect();
    let expected = [
        "POST loadbalancers",
        "POST pools",
        "POST pools/ID/members",
        "POST pools/ID/members",
        "POST listeners",
    ];
    assert_eq!(octavia, expected);
    assert_eq!(member_names(&world), ["member_node-1_198.18.0.50_30080", "member_node-2_198.18.0.51_30080"]);
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
}

/// A node that leaves is one deletion, one that joins is one creation.
///
/// Contract: SR2, same.
#[tokio::test(start_paused = true)]
async fn sr2_a_node_that_joins_or_leaves_is_one_call() {
    let world = serving().await;
    world.third_node_joins().await;
    assert_eq!(world.take_cloud_writes(), ["POST pools/ID/members"]);
    world.kube.delete("nodes", "", "node-1").unwrap();
    world.quiet().await;
    assert_eq!(world.take_cloud_writes(), ["DELETE pools/ID/members/ID"]);
    assert_eq!(member_names(&world), ["member_node-2_198.18.0.51_30080", "member_node-3_198.18.0.52_30080"]);
}

/// With another node port the new members come before the old ones go.
///
/// Contract: SR3, same.
#[tokio::test(start_paused = true)]
async fn sr3_new_members_come_before_old_ones_go() {
    let world = serving().await;
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30081}]);
    world.patch_to_rest("web", &json!({"spec": {"ports": ports}})).await;
    let (post, delete) = ("POST pools/ID/members", "DELETE pools/ID/members/ID");
    assert_eq!(world.take_cloud_writes(), [post, post, delete, delete]);
    assert!(world.members().iter().all(|member| member["protocol_port"] == 30081));
}

/// Without node ports there are no members.
///
/// Contract: SR4, better: OCCM fails for ever.
#[tokio::test(start_paused = true)]
async fn sr4_without_node_ports_there_are_no_members() {
    let mut world = one_by_one();
    world.start().await;
    world.serve(&service("web", json!({"spec": {"allocateLoadBalancerNodePorts": false}}))).await;
    assert!(world.members().is_empty());
    assert_eq!(world.ingress("web").len(), 1);
}

/// The health check node port is checked where it answers.
///
/// Contract: SR5, better: OCCM leaves out the members' check port, so that every check hits the node port.
/// Defect: 21, better: the members are those of the normal mode, only sent one by one.
#[tokio::test(start_paused = true)]
async fn sr5_members_are_checked_on_the_health_check_node_port() {
    let monitor = "loadbalancer.openstack.org/enable-health-monitor";
    let local = json!({
        "metadata": {"annotations": {monitor: "true"}},
        "spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 32000},
    });
    let mut world = one_by_one();
    world.start().await;
    world.serve(&service("web", local)).await;
    assert_eq!(world.cloud.health_monitors()[0]["type"], "HTTP");
    assert!(world.members().iter().all(|member| member["monitor_port"] == 32000));
}

/// PROXY protocol is switched by a second pool, which is filled one by one before the listener gets it.
#[tokio::test(start_paused = true)]
async fn proxy_protocol_is_switched_without_a_gap_one_by_one() {
    let world = serving().await;
    world.annotate("web", PROXY, Some("v2"));
    world.until_served_at("web", "198.19.0.11(Proxy)").await;
    let post = "POST pools/ID/members";
    assert_eq!(world.take_cloud_writes(), ["POST pools", post, post, "PUT listeners/ID", "DELETE pools/ID"]);
}

/// Makes a load balancer, killed once at most. Answers how it ended, and the calls of the programs.
async fn created(stop: Option<Stop>) -> (String, Vec<Call>) {
    let mut world = one_by_one();
    world.create(&web(30080));
    world.start_until(stop).await;
    if !world.survives().await {
        world.kill().await;
        world.start_to_rest().await;
    }
    (world.state(), world.take_calls())
}

/// Killed at any call and started again, the end is the same.
#[tokio::test(start_paused = true)]
async fn killed_at_any_call_the_end_is_the_same_one_by_one() {
    let (expected, calls) = created(None).await;
    assert!(calls.len() > 20, "only {} calls", calls.len());
    for stop in Stop::beside(&calls) {
        assert_eq!(created(Some(stop)).await.0, expected, "killed {stop:?}");
    }
}

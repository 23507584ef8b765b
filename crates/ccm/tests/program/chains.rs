//! Chains of changes: each step comes when Octavia has finished the one before it.

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{PROXY, World, service};

const X_FORWARDED_FOR: &str = "loadbalancer.openstack.org/x-forwarded-for";

/// A Service with two ports, and a program that has made each change before.
async fn acquainted() -> World {
    let ports = json!([
        {"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "https", "port": 443, "protocol": "TCP"},
    ]);
    let world = World::serving(&service("web", json!({"spec": {"ports": ports}}))).await;
    world.annotate_to_rest("web", PROXY, Some("v2")).await;
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
    world.take_calls();
    world
}

/// Whether each listener has a pool with members, at least one of which serves.
fn serves(world: &World) -> bool {
    let has_served = |member: &Value| member["provisioning_status"] != "ERROR";
    world.cloud.listeners().iter().all(|listener| {
        let pool = listener["default_pool_id"].as_str();
        pool.is_some_and(|pool| world.cloud.members(pool).iter().any(has_served))
    })
}

fn pools_speak(world: &World, protocol: &str) -> bool {
    let pools = world.cloud.pools();
    pools.len() == 2 && pools.iter().all(|pool| pool["protocol"] == protocol)
}

/// Waits until the pools speak a protocol, and watches that the listeners have pools that serve meanwhile.
async fn switched(world: &World, protocol: &str) {
    while !pools_speak(world, protocol) || world.cloud_state().contains("ERROR") {
        assert!(serves(world), "{}", world.cloud_state());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    world.quiet_unplanned().await;
    assert!(serves(world) && pools_speak(world, protocol), "{}", world.cloud_state());
}

#[tokio::test(start_paused = true)]
async fn no_step_comes_too_early_or_twice() {
    let world = acquainted().await;
    world.annotate("web", PROXY, Some("false"));
    switched(&world, "TCP").await;
    assert_eq!(world.take_cloud_writes().len(), 8);
    assert_eq!(world.refusals(), 0);
}

/// Nothing is sent because Octavia has always been done by then.
#[tokio::test(start_paused = true)]
async fn no_step_comes_too_early_when_octavia_has_become_slower() {
    let world = acquainted().await;
    world.cloud.set_delays(Duration::from_secs(9));
    world.annotate("web", PROXY, Some("false"));
    switched(&world, "TCP").await;
    assert_eq!(world.take_cloud_writes().len(), 8);
    assert_eq!(world.refusals(), 0);
}

/// A load balancer that is ACTIVE again does not mean that the step before was made.
#[rstest]
#[case::a_pool(OperationKind::PoolCreate)]
#[case::members(OperationKind::MemberBatch)]
#[case::a_listener(OperationKind::ListenerUpdate)]
#[case::a_deletion(OperationKind::PoolDelete)]
#[tokio::test(start_paused = true)]
async fn what_failed_in_a_chain_is_found_before_anything_relies_on_it(#[case] kind: OperationKind) {
    let world = acquainted().await;
    world.cloud.faults().add_worker(WorkerFault::fail(kind).times(1));
    world.annotate("web", PROXY, Some("false"));
    switched(&world, "TCP").await;
}

/// Octavia looks at quotas before the lock, and what is being deleted still counts: room for one is enough.
#[tokio::test(start_paused = true)]
async fn what_takes_the_place_of_a_listener_meets_no_quota() {
    let world = acquainted().await;
    world.annotate("web", PROXY, Some("false"));
    world.quiet_unplanned().await;
    world.cloud.set_octavia_quota("listener", 3);
    let switch = |value| world.annotate("web", X_FORWARDED_FOR, Some(value));
    for (value, seconds) in [("true", 2), ("false", 2), ("true", 9)] {
        world.cloud.set_delays(Duration::from_secs(seconds));
        switch(value);
        world.quiet_unplanned().await;
        let protocol = if value == "true" { "HTTP" } else { "TCP" };
        let listeners = world.cloud.listeners();
        assert_eq!(listeners.len(), 2);
        assert!(listeners.iter().all(|one| one["protocol"] == protocol), "{listeners:?}");
    }
    let warnings = world.warnings("web");
    assert!(warnings.iter().all(|warning| !warning.contains("quota")), "{warnings:?}");
}

#[rstest]
#[case::no_answer(Fault::new().drop_after())]
#[case::bad_gateway(Fault::new().answer_after(502, json!({})))]
#[case::unavailable(Fault::new().answer_after(503, json!({})))]
#[case::gateway_timeout(Fault::new().answer_after(504, json!({})))]
#[tokio::test(start_paused = true)]
async fn a_step_whose_answer_is_lost_is_not_taken_twice(#[case] lost: Fault) {
    let world = acquainted().await;
    world.cloud.faults().add(lost.method(Method::POST).path("/lbaas/pools$").once());
    world.annotate("web", PROXY, Some("false"));
    switched(&world, "TCP").await;
    assert_eq!(world.cloud.pools().len(), 2);
    let made = world.take_calls().into_iter().filter(|call| call.name == "POST pools").count();
    assert_eq!(made, 2, "one for each port");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_while_a_step_is_due_gets_what_it_asks_for() {
    let world = acquainted().await;
    for wait in (200..6000).step_by(700) {
        for (value, other, protocol) in [("false", "v2", "PROXYV2"), ("v2", "false", "TCP")] {
            world.annotate("web", PROXY, Some(value));
            tokio::time::sleep(Duration::from_millis(wait)).await;
            world.annotate("web", PROXY, Some(other));
            switched(&world, protocol).await;
            world.annotate("web", PROXY, Some(value));
            world.quiet_unplanned().await;
        }
    }
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

const MONITOR: &str = "loadbalancer.openstack.org/enable-health-monitor";
const LOCAL: &str = r#"{"spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 32000}}"#;
const CLUSTER: &str = r#"{"spec": {"externalTrafficPolicy": "Cluster", "healthCheckNodePort": null}}"#;
/// How the Event begins about a health monitor that failed inside Octavia.
const MONITOR_FAILED: &str =
    "LoadBalancerChildFailed: Octavia failed to apply the last change of health monitor";

/// A Service with a health monitor, and a program that has made each change of it before.
async fn monitored() -> World {
    let world =
        World::serving(&service("web", json!({"metadata": {"annotations": {MONITOR: "true"}}}))).await;
    for policy in [LOCAL, CLUSTER] {
        world.patch_to_rest("web", &serde_json::from_str(policy).unwrap()).await;
    }
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
    world.take_calls();
    world
}

/// Whether the check of the health check node port meets no members but those that were made for it, in the pools that listeners have.
fn check_meets_its_members(world: &World) -> bool {
    let monitors = world.cloud.health_monitors();
    let listeners = world.cloud.listeners();
    let pools =
        monitors.iter().filter(|monitor| monitor["type"] == "HTTP").map(|monitor| &monitor["pools"][0]["id"]);
    let pools = pools.filter(|pool| listeners.iter().any(|listener| listener["default_pool_id"] == **pool));
    let is_made_for_it =
        |member: &Value| member["monitor_port"] == 32000 && member["provisioning_status"] != "ERROR";
    pools
        .map(|pool| world.cloud.members(pool.as_str().unwrap()))
        .all(|members| members.iter().all(is_made_for_it))
}

/// Lets time pass in which the check never meets other members.
async fn watched(world: &World, time: Duration) {
    for _ in 0..time.as_secs() * 10 {
        assert!(check_meets_its_members(world), "{}", world.cloud_state());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// No list shows that a health monitor is still there.
#[rstest]
#[case::in_the_status_tree(true)]
#[case::without_a_status_tree(false)]
#[tokio::test(start_paused = true)]
async fn a_monitor_whose_deletion_failed_is_found(#[case] has_status_tree: bool) {
    let world = monitored().await;
    if !has_status_tree {
        world.cloud.faults().add(Fault::new().path("/status$").answer(403, json!({"faultstring": "Policy"})));
    }
    let fails = world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::HealthMonitorDelete));
    world.annotate("web", MONITOR, Some("false"));
    tokio::time::sleep(Duration::from_secs(1800)).await;
    let warnings = world.warnings("web");
    assert!(warnings.iter().any(|warning| warning.contains(MONITOR_FAILED)), "{warnings:?}");
    let deletions = world.take_cloud_writes();
    assert!(deletions.len() < 12, "a repair that does not help is not tried again and again: {deletions:?}");

    world.cloud.faults().remove(fails);
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(world.cloud.health_monitors(), Vec::<Value>::new());
}

/// A check of the health check node port takes members down that do not have it.
#[rstest]
#[case::the_monitor_stays(LOCAL, CLUSTER, OperationKind::HealthMonitorDelete, 1)]
#[case::the_monitor_stays_for_long(LOCAL, CLUSTER, OperationKind::HealthMonitorDelete, 4)]
#[case::the_members_stay(CLUSTER, LOCAL, OperationKind::MemberBatch, 1)]
#[tokio::test(start_paused = true)]
async fn a_check_never_meets_members_that_were_not_made_for_it(
    #[case] before: &str,
    #[case] after: &str,
    #[case] kind: OperationKind,
    #[case] times: u32,
) {
    let world = monitored().await;
    world.patch_to_rest("web", &serde_json::from_str(before).unwrap()).await;
    world.cloud.faults().add_worker(WorkerFault::fail(kind).times(times));
    world.patch("web", &serde_json::from_str(after).unwrap());
    watched(&world, Duration::from_secs(300)).await;
    let monitors = world.cloud.health_monitors();
    let expected = if after == LOCAL { "HTTP" } else { "TCP" };
    assert!(monitors.len() == 1 && monitors[0]["type"] == expected, "{}", world.cloud_state());
    assert!(!world.cloud_state().contains("ERROR"), "{}", world.cloud_state());
}

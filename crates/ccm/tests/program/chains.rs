//! Chains of changes, in which the next step shows by itself whether Octavia has finished the one before it.

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{PROXY, Side, World, service};

const X_FORWARDED_FOR: &str = "loadbalancer.openstack.org/x-forwarded-for";

/// A Service with two ports, and a program that has seen how long each change takes here.
async fn acquainted() -> World {
    let ports = json!([
        {"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "https", "port": 443, "protocol": "TCP"},
    ]);
    let world = World::serving(&service("web", json!({"spec": {"ports": ports}}))).await;
    world.annotate("web", PROXY, Some("v2"));
    world.quiet().await;
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
async fn a_step_that_takes_nothing_away_needs_no_look_before_it() {
    let world = acquainted().await;
    world.annotate("web", PROXY, Some("false"));
    switched(&world, "TCP").await;
    let calls: Vec<_> = world.take_calls().into_iter().filter(|call| call.side == Side::OpenStack).collect();
    let (writes, others): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.write);
    let looks = others.iter().filter(|call| call.poll).count();
    assert_eq!(writes.len(), 8, "none of them came too early");
    assert!(looks <= 5, "before each of two swaps, before the first deletion, and at the end: {looks}");
    assert_eq!(world.refusals(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_octavia_that_has_become_slower_refuses_a_step_at_most_once() {
    let world = acquainted().await;
    world.cloud.set_delays(Duration::from_secs(9));
    world.annotate("web", PROXY, Some("false"));
    switched(&world, "TCP").await;
    let calls: Vec<_> = world.take_calls().into_iter().filter(|call| call.side == Side::OpenStack).collect();
    let writes: Vec<_> = calls.iter().filter(|call| call.write).map(|call| &call.name).collect();
    assert!(writes.len() > 8, "some came too early: {writes:?}");
    let reads = calls.iter().filter(|call| call.name == "GET listeners").count();
    assert_eq!(reads, 0, "what is believed goes on");
    assert!(writes.windows(3).all(|three| three[0] != three[1] || three[1] != three[2]), "{writes:?}");
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
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

/// Octavia looks at quotas before the lock, and what is being deleted still counts.
#[tokio::test(start_paused = true)]
async fn what_takes_the_place_of_a_listener_meets_no_quota() {
    let world = acquainted().await;
    world.annotate("web", PROXY, Some("false"));
    world.quiet_unplanned().await;
    world.cloud.set_octavia_quota("listener", 2);
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

#[tokio::test(start_paused = true)]
async fn a_step_whose_answer_is_lost_is_not_taken_twice() {
    let world = acquainted().await;
    let lost = Fault::new().method(Method::POST).path("/lbaas/pools$");
    world.cloud.faults().add(lost.drop_after().once());
    world.annotate("web", PROXY, Some("false"));
    switched(&world, "TCP").await;
    assert_eq!(world.cloud.pools().len(), 2);
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

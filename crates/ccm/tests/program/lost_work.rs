//! Octavia loses work: a child stays PENDING below a load balancer that is ACTIVE, or every change of one that is ACTIVE is refused.

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, Sim as Cloud};
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{configured, id, load_balancer};
use crate::support::{ANNOTATION, Side, World, lb_name, service};

const MONITOR: &str = "loadbalancer.openstack.org/enable-health-monitor";

/// For so long a test looks on.
const LOOKS_ON: Duration = Duration::from_secs(600);
/// The pauses grow from two seconds to a minute.
const MOST_LOOKS: usize = 16;
/// What one look costs at most: the load balancer with all that hangs on it, and the floating IPs.
const CALLS_PER_LOOK: usize = 8;

fn listener(cloud: &Cloud) -> Value {
    cloud.listeners()[0].clone()
}

fn pool(cloud: &Cloud) -> Value {
    cloud.pools()[0].clone()
}

fn member(cloud: &Cloud) -> Value {
    cloud.members(&id(&pool(cloud)))[0].clone()
}

fn health_monitor(cloud: &Cloud) -> Value {
    cloud.health_monitors()[0].clone()
}

/// Calls to OpenStack since the last time.
fn cloud_calls(world: &World) -> Vec<String> {
    let calls = world.take_calls().into_iter();
    calls.filter(|call| call.side == Side::OpenStack).map(|call| call.name).collect()
}

/// The poller does not see children: it would find their load balancer finished each second.
#[rstest]
#[case::listener("listener", listener)]
#[case::pool("pool", pool)]
#[case::member("member", member)]
#[case::health_monitor("health monitor", health_monitor)]
#[tokio::test(start_paused = true)]
async fn a_child_that_stays_pending_is_looked_at_more_and_more_seldom(
    #[case] kind: &str,
    #[case] child: fn(&Cloud) -> Value,
) {
    let monitored = service("web", json!({"metadata": {"annotations": {MONITOR: "true"}}}));
    let mut world = World::serving(&monitored).await;
    // Plans would wait for ever, as the program does.
    world.settings.plans = false;
    assert!(world.cloud.lose_change_of(&id(&child(&world.cloud))));
    world.patch(
        "web",
        &json!({"spec": {"ports": [
            {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
            {"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443},
        ]}}),
    );
    tokio::time::sleep(LOOKS_ON).await;
    let calls = cloud_calls(&world);
    assert!(calls.len() <= MOST_LOOKS * CALLS_PER_LOOK, "{} calls", calls.len());
    assert_eq!(world.cloud.listeners().len(), 1);
    world.until_warned("web", &format!("LoadBalancerStuck: {kind} ")).await;
    let path = format!("/v2.0/lbaas/loadbalancers/{}/failover", id(&load_balancer(&world)));
    world.cloud.admin().put("load-balancer", &path, &json!({}));
    world.until("the Service goes on", |world| world.cloud.listeners().len() == 2).await;
    world.quiet_unplanned().await;
    let state = world.cloud_state();
    assert!(!state.contains("PENDING"), "{state}");
}

/// Has Octavia refuse such requests although the load balancer is ACTIVE.
fn refuses(world: &World, method: Method, path: &str) -> openstack_ccm_openstack_sim::FaultId {
    let body = json!({"faultcode": "Client", "faultstring": "Load Balancer x is immutable and cannot be updated.",
        "debuginfo": null});
    let fault = Fault::new().service("load-balancer").method(method).path(path);
    world.cloud.faults().add(fault.answer(409, body))
}

/// Looks on while a deletion is refused, and then lets it go through.
async fn is_sent_more_and_more_seldom(world: &World, name: &str) {
    let refusal = refuses(world, Method::DELETE, "/lbaas/listeners/");
    world.take_calls();
    world.delete(name);
    tokio::time::sleep(LOOKS_ON).await;
    let sent = cloud_calls(world).iter().filter(|call| *call == "DELETE listeners/ID").count();
    assert!((3..=MOST_LOOKS).contains(&sent), "sent {sent} times");
    world.until_warned(name, "LoadBalancerStuck").await;
    world.cloud.faults().remove(refusal);
    world.until_gone(name).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_without_cascade_that_octavia_refuses_is_sent_more_and_more_seldom() {
    let world = configured(|_| "cascade-delete = false\n".to_owned()).await;
    world.serve(&service("web", json!({}))).await;
    is_sent_more_and_more_seldom(&world, "web").await;
    assert!(world.cloud.load_balancer(&lb_name("web")).is_none());
}

/// A Service on the load balancer of `host`, on another port.
async fn guest(world: &World) {
    world.serve(&service("host", json!({}))).await;
    let host = id(&world.cloud.load_balancer(&lb_name("host")).unwrap());
    let ports = json!([{"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443}]);
    let annotations = json!({format!("{ANNOTATION}load-balancer-id"): host});
    let guest = json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}});
    world.serve(&service("web", guest)).await;
}

#[tokio::test(start_paused = true)]
async fn a_shared_load_balancer_that_refuses_is_left_without_a_hurry() {
    let world = World::started().await;
    guest(&world).await;
    is_sent_more_and_more_seldom(&world, "web").await;
    world.quiet_unplanned().await;
    assert_eq!(world.cloud.listeners().len(), 1);
}

/// The Service is served by its own load balancer meanwhile.
#[tokio::test(start_paused = true)]
async fn a_previous_load_balancer_that_refuses_is_left_without_a_hurry() {
    let world = World::started().await;
    guest(&world).await;
    let refusal = refuses(&world, Method::DELETE, "/lbaas/listeners/");
    world.annotate("web", "load-balancer-id", None);
    world.until("it has its own", |world| world.cloud.load_balancers().len() == 2).await;
    world.until("it is served", |world| world.cloud.listeners().len() == 3).await;
    world.take_calls();
    tokio::time::sleep(LOOKS_ON).await;
    let sent = cloud_calls(&world).iter().filter(|call| *call == "DELETE listeners/ID").count();
    assert!((3..=MOST_LOOKS).contains(&sent), "sent {sent} times");
    world.until_warned("web", "LoadBalancerStuck").await;
    world.cloud.faults().remove(refusal);
    world.until("it has left", |world| world.cloud.listeners().len() == 2).await;
    world.quiet_unplanned().await;
}

//! Whatever is shared has a share for each Service and namespace: trouble stays with those that cause it.
//!
//! Here is who changes much; `trouble` has load balancers and answers with which something is wrong.

mod trouble;

use std::time::Duration;

use http::Method;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::Fault;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{PROXY, World, lb_name, service};

const LIMIT: &str = "loadbalancer.openstack.org/connection-limit";
/// What a small Service may take beside a large one.
const BESIDE_A_LARGE_ONE: Duration = Duration::from_secs(15);

fn octavia(method: Method, path: &str) -> Fault {
    Fault::new().service("load-balancer").method(method).path(path)
}

/// Creates a Service of another tenant.
fn create_other(world: &World, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    // It may be there.
    let _ = world.kube.create(&namespace);
    world.create(&service(name, json!({"metadata": {"namespace": "other"}})));
}

fn other_load_balancer(world: &World, name: &str) -> Option<Value> {
    world.cloud.load_balancer(&format!("kube_service_c1_other_{name}"))
}

fn is_active(load_balancer: &Value) -> bool {
    load_balancer["provisioning_status"] == "ACTIVE"
}

async fn until_active(world: &World, name: &str) {
    let served = |world: &World| other_load_balancer(world, name).is_some_and(|one| is_active(&one));
    world.until("the other tenant is served", served).await;
}

fn reconciliations(world: &World) -> u64 {
    let metrics = world.metrics();
    let name = "workqueue_work_duration_seconds_count{name=\"service\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(name)).expect("the metric").parse().unwrap()
}

/// Six Services change ten times a second, and four workers take a while for each.
#[tokio::test(start_paused = true)]
async fn services_that_change_all_the_time_cost_little_and_stop_no_change_of_nodes() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.plans = false;
    world.settings.service.concurrency = 4;
    world.settings.latency = Duration::from_millis(100);
    world.start().await;
    world.serve(&service("quiet", json!({}))).await;
    for number in 0..6 {
        world.serve(&service(&format!("flaps-{number}"), json!({}))).await;
    }
    let (before, start) = (reconciliations(&world), Instant::now());
    let pool = |world: &World| {
        let pools = world.cloud.pools();
        pools.into_iter().find(|pool| pool["name"].as_str().unwrap().ends_with("quiet")).unwrap()
    };
    let mut followed = None;
    for round in 0..600 {
        for number in 0..6 {
            world.annotate(&format!("flaps-{number}"), LIMIT, Some(&format!("none-{round}")));
        }
        if round == 50 {
            world.add_node("node-3", "v1.36.0");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        if followed.is_none() && pool(&world)["members"].as_array().unwrap().len() == 3 {
            followed = Some(start.elapsed());
        }
    }
    assert!(followed.is_some_and(|at| at < Duration::from_secs(15)), "{followed:?}");
    // Each once a second, and a few because of the node.
    let made = reconciliations(&world) - before;
    assert!(made < 6 * 61 + 40, "{made} reconciliations");
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_changes_all_its_services_at_once_lets_others_have_their_turn() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.plans = false;
    world.settings.service.concurrency = 1;
    world.start().await;
    create_other(&world, "web");
    until_active(&world, "web").await;
    for number in 0..20 {
        world.serve(&service(&format!("web-{number}"), json!({}))).await;
    }
    world.cloud.faults().add(octavia(Method::GET, "/loadbalancers/").latency(Duration::from_secs(2)));
    (0..20).for_each(|number| world.annotate(&format!("web-{number}"), LIMIT, Some("100")));
    let change = json!({"metadata": {"annotations": {LIMIT: "100"}}});
    world.kube.patch("services", "other", "web", &change).unwrap();
    let start = Instant::now();
    let of_other = other_load_balancer(&world, "web").unwrap()["listeners"][0]["id"].clone();
    let is_done = |world: &World| {
        let listeners = world.cloud.listeners();
        listeners.iter().any(|one| one["id"] == of_other && one["connection_limit"] == 100)
    };
    world.until("the change is made", is_done).await;
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

/// The guest's member goes between two steps of the owner, whose plan has eighty.
#[tokio::test(start_paused = true)]
async fn a_node_leaves_a_guest_while_the_owner_changes_twenty_ports() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.plans = false;
    world.start().await;
    world.add_node("node-3", "v1.36.0");
    let ports: Vec<Value> = (0..20)
        .map(|number| json!({"name": format!("p{number}"), "port": 8000 + number, "protocol": "TCP"}))
        .collect();
    world.serve(&service("owner", json!({"spec": {"ports": ports}}))).await;
    let id = world.cloud.load_balancer(&lb_name("owner")).unwrap()["id"].clone();
    let before: Vec<Value> = world.cloud.pools().iter().map(|pool| pool["id"].clone()).collect();
    let annotations = json!({"loadbalancer.openstack.org/load-balancer-id": id});
    world.serve(&service("guest", json!({"metadata": {"annotations": annotations}}))).await;
    let of_guest = world.cloud.pools().into_iter().map(|pool| pool["id"].clone());
    let of_guest = of_guest.into_iter().find(|id| !before.contains(id)).unwrap();
    let members = |world: &World| world.cloud.members(of_guest.as_str().unwrap()).len();
    assert_eq!(members(&world), 3);
    world.annotate("owner", PROXY, Some("v2"));
    let made = |world: &World| world.cloud.pools().len() > 24;
    world.until("the owner's plan is under way", made).await;
    world.kube.delete("nodes", "", "node-3").unwrap();
    let start = Instant::now();
    world.until("the node is gone", |world| members(world) == 2).await;
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(world.cloud.pools().len() < 41, "the owner's plan is still under way");
}

/// The largest Service that a tenant may reasonably have follows a node with a change for each of its ports.
#[tokio::test(start_paused = true)]
async fn a_service_of_97_ports_on_64_nodes_holds_nobody_else_up() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.plans = false;
    world.settings.service.concurrency = 4;
    world.cloud.set_delays(Duration::from_secs(1));
    for number in 3..=64 {
        world.add_node(&format!("node-{number}"), "v1.36.0");
    }
    world.start().await;
    let ports: Vec<Value> = (0..97)
        .map(|number| json!({"name": format!("p{number}"), "port": 8000 + number, "protocol": "TCP", "nodePort": 30_000 + number}))
        .collect();
    world.create(&service("large", json!({"spec": {"ports": ports}})));
    create_other(&world, "web");
    let start = Instant::now();
    until_active(&world, "web").await;
    assert!(start.elapsed() < BESIDE_A_LARGE_ONE, "served after {:?}", start.elapsed());
    world.until_served("large").await;
    world.cloud.faults().add(Fault::new().service("load-balancer").latency(Duration::from_millis(250)));
    world.add_node("node-65", "v1.36.0");
    let start = Instant::now();
    let of_other = other_load_balancer(&world, "web").unwrap()["pools"][0]["id"].clone();
    let follows = |world: &World| {
        let pools = world.cloud.pools();
        pools.iter().any(|pool| pool["id"] == of_other && pool["members"].as_array().unwrap().len() == 65)
    };
    world.until("the node is a member", follows).await;
    assert!(start.elapsed() < BESIDE_A_LARGE_ONE, "follows the node after {:?}", start.elapsed());
    create_other(&world, "new");
    let start = Instant::now();
    until_active(&world, "new").await;
    assert!(start.elapsed() < BESIDE_A_LARGE_ONE, "the new one is served after {:?}", start.elapsed());
    let followed = |world: &World| {
        let pools = world.cloud.pools();
        pools.iter().filter(|pool| pool["members"].as_array().unwrap().len() == 65).count()
    };
    assert!(followed(&world) < 50, "the large one is under way: {}", followed(&world));
    world.until("the large one follows, too", |world| followed(world) == 99).await;
}

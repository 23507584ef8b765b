//! Load balancers that never become ready, requests that fail, and answers that do not come.

use std::time::Duration;

use http::Method;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::json;
use tokio::time::Instant;

use super::{BESIDE_A_LARGE_ONE, LIMIT, create_other, is_active, octavia, other_load_balancer, until_active};
use crate::cloud_faults::{REPLACE, breaks_down};
use crate::contract::setup::{INTERNAL, configured, id, put};
use crate::support::{World, lb_name, service};

const LB_ID: &str = "loadbalancer.openstack.org/load-balancer-id";
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_creation_that_always_fails_stops_no_replacement_for_other_tenants() {
    let world = configured(|_| REPLACE.to_owned()).await;
    world.serve(&service("web", json!({}))).await;
    let before = id(&world.cloud.load_balancer(&lb_name("web")).unwrap());
    let fails = WorkerFault::fail(OperationKind::LoadBalancerCreate).of("kube_service_c1_other_fails");
    world.cloud.faults().add_worker(fails);
    create_other(&world, "fails");
    tokio::time::sleep(HOUR).await;
    breaks_down(&world, "web");
    let is_replaced = |world: &World| {
        let now = world.cloud.load_balancer(&lb_name("web"));
        now.is_some_and(|now| id(&now) != before && is_active(&now))
    };
    world.until("it is replaced", is_replaced).await;
}

/// A policy, or a provider, that shows the status tree of all load balancers but one.
#[tokio::test(start_paused = true)]
async fn a_status_tree_that_is_refused_is_done_without_for_that_load_balancer_alone() {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.settings.plans = false;
    world.serve(&service("refused", json!({}))).await;
    let refused = id(&world.cloud.load_balancer(&lb_name("refused")).unwrap());
    let web = id(&world.cloud.load_balancer(&lb_name("web")).unwrap());
    let answer = json!({"faultstring": "Policy does not allow this request to be performed."});
    world.cloud.faults().add(octavia(Method::GET, &format!("/{refused}/status")).answer(403, answer));
    for number in 3..5 {
        let place = world.cloud.log().calls().len();
        world.add_node(&format!("node-{number}"), "v1.36.0");
        world.quiet().await;
        let pools = world.cloud.pools();
        assert!(pools.iter().all(|pool| pool["members"].as_array().unwrap().len() == number));
        let made = world.cloud.log().calls().split_off(place);
        let reads = |path: &str| made.iter().filter(|call| call.path.contains(path)).count();
        assert!(reads(&format!("/loadbalancers/{web}/status")) >= 2, "checks for the other");
        let of_web =
            |path: &str| made.iter().any(|call| call.query.contains(&web) && call.path.contains(path));
        assert!(!of_web("/listeners") && !of_web("/pools"), "and no whole look");
    }
}

#[tokio::test(start_paused = true)]
async fn creations_that_never_end_delay_other_tenants_for_three_minutes_at_most() {
    let mut world = World::started().await;
    world.settings.plans = false;
    for number in 0..8 {
        let hold =
            WorkerFault::hold(OperationKind::LoadBalancerCreate).of(&lb_name(&format!("stuck-{number}")));
        world.cloud.faults().add_worker(hold);
        world.create(&service(&format!("stuck-{number}"), json!({})));
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    for name in ["web", "web2"] {
        let start = Instant::now();
        create_other(&world, name);
        until_active(&world, name).await;
        assert!(start.elapsed() < Duration::from_secs(190), "{name} after {:?}", start.elapsed());
    }
}

/// The minutes that each waits are the same, so that one asks again and again at the very moment when a place comes free.
#[rstest]
#[tokio::test(start_paused = true)]
async fn who_asks_in_step_with_creations_that_never_end_is_not_passed_over(
    #[values(6, 24)] stuck: usize,
    #[values(0, 1, 2)] late: u64,
) {
    let mut world = World::started().await;
    world.settings.plans = false;
    for number in 0..stuck {
        let name = format!("stuck-{number}");
        let hold = WorkerFault::hold(OperationKind::LoadBalancerCreate).of(&lb_name(&name));
        world.cloud.faults().add_worker(hold);
        world.create(&service(&name, json!({})));
    }
    tokio::time::sleep(Duration::from_millis(60_000 + late)).await;
    let start = Instant::now();
    create_other(&world, "web");
    until_active(&world, "web").await;
    assert!(start.elapsed() < Duration::from_secs(190), "after {:?}", start.elapsed());
}

/// Batches of eight load balancers of one tenant end in 504, after as long as a gateway waits, and again.
#[tokio::test(start_paused = true)]
async fn batches_that_always_end_in_a_gateway_timeout_slow_down_nobody_else() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.plans = false;
    world.start().await;
    create_other(&world, "web");
    until_active(&world, "web").await;
    for number in 0..8 {
        world.serve(&service(&format!("fails-{number}"), json!({}))).await;
    }
    let of_other = other_load_balancer(&world, "web").unwrap()["pools"][0]["id"].clone();
    for pool in world.cloud.pools().iter().filter(|pool| pool["id"] != of_other) {
        let batches = octavia(Method::PUT, &format!("/pools/{}/members", id(pool)));
        world.cloud.faults().add(batches.latency(Duration::from_secs(50)).answer(504, json!({})));
    }
    for number in 3..8 {
        world.add_node(&format!("node-{number}"), "v1.36.0");
        let start = Instant::now();
        let follows = |world: &World| {
            let pools = world.cloud.pools();
            pools
                .iter()
                .any(|pool| pool["id"] == of_other && pool["members"].as_array().unwrap().len() == number)
        };
        world.until("the node is a member", follows).await;
        assert!(start.elapsed() < BESIDE_A_LARGE_ONE, "follows node {number} after {:?}", start.elapsed());
        let name = format!("new-{number}");
        create_other(&world, &name);
        let start = Instant::now();
        until_active(&world, &name).await;
        assert!(start.elapsed() < BESIDE_A_LARGE_ONE, "{name} is served after {:?}", start.elapsed());
        tokio::time::sleep(Duration::from_secs(120)).await;
    }
}

/// With the credentials of an administrator Services may name load balancers of other projects. Too many are changed to be asked for one
/// by one, and the list of the other project does not answer.
#[tokio::test(start_paused = true)]
async fn a_project_whose_list_does_not_answer_delays_no_load_balancer_of_another_one() {
    const EACH: usize = 6;
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.plans = false;
    world.settings.user = "admin";
    world.settings.cloud_conf = "max-shared-lb = 4\n".to_owned();
    let network = json!({"network": {"name": "theirs"}});
    let theirs = world.cloud.stranger().post("network", "/v2.0/networks", &network).1;
    let project = theirs["network"]["project_id"].as_str().unwrap();
    world.start().await;
    for number in 0..EACH {
        let body = json!({"loadbalancer": {"name": format!("theirs-{number}"), "project_id": project,
            "vip_subnet_id": world.cloud.seed().subnet_id}});
        let path = "/v2.0/lbaas/loadbalancers";
        let answer = world.cloud.admin().make("load-balancer", path, &body);
        world.cloud.settle();
        let named =
            json!({"metadata": {"annotations": {LB_ID: answer["loadbalancer"]["id"], INTERNAL: "true"}}});
        world.serve(&service(&format!("guest-{number}"), named)).await;
        world.serve(&service(&format!("web-{number}"), json!({}))).await;
    }
    world.cloud.set_delays(Duration::from_secs(5));
    let list = octavia(Method::GET, &format!("/loadbalancers\\?.*project_id={project}")).latency(HOUR);
    let list = world.cloud.faults().add(list);
    let start = Instant::now();
    for number in 0..EACH {
        world.annotate(&format!("guest-{number}"), LIMIT, Some("100"));
        world.patch(&format!("web-{number}"), &json!({"spec": {"ports": [
            {"name": "http", "port": 80, "protocol": "TCP"}, {"name": "other", "port": 81, "protocol": "TCP"}]}}));
    }
    let is_done = |world: &World| {
        let state = world.cloud_state();
        let added = state.lines().filter(|line| line.contains("listener 81/TCP"));
        added.filter(|line| line.contains(" ACTIVE -> pool_1_")).count() == EACH
    };
    world.until("the new ports of this project are served", is_done).await;
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(world.cloud.faults().matched(list) > 0, "the other list was asked for");
}

/// More load balancers of one tenant do not answer than there are workers.
#[tokio::test(start_paused = true)]
async fn a_tenant_whose_load_balancers_do_not_answer_delays_others_by_one_request_at_most() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.plans = false;
    world.settings.service.concurrency = 4;
    world.start().await;
    create_other(&world, "web");
    until_active(&world, "web").await;
    for number in 0..8 {
        world.serve(&service(&format!("hangs-{number}"), json!({}))).await;
    }
    for number in 0..8 {
        let load_balancer = id(&world.cloud.load_balancer(&lb_name(&format!("hangs-{number}"))).unwrap());
        let hangs = octavia(Method::GET, &format!("/loadbalancers/{load_balancer}")).latency(HOUR);
        world.cloud.faults().add(hangs);
    }
    world.add_node("node-3", "v1.36.0");
    let start = Instant::now();
    let of_other = other_load_balancer(&world, "web").unwrap()["pools"][0]["id"].clone();
    let follows = |world: &World| {
        let pools = world.cloud.pools();
        pools.iter().any(|pool| pool["id"] == of_other && pool["members"].as_array().unwrap().len() == 3)
    };
    world.until("the node is a member", follows).await;
    assert!(start.elapsed() < Duration::from_secs(190), "{:?}", start.elapsed());
}

/// Forty guests of one load balancer, whose owner's request hangs for a minute.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_load_balancer_holds_up_no_other_service() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = "max-shared-lb = 100\n".to_owned();
    world.settings.plans = false;
    world.start().await;
    world.serve(&service("web", json!({}))).await;
    let shared = id(&world.cloud.load_balancer(&lb_name("web")).unwrap());
    let hang = octavia(Method::POST, "/lbaas/listeners").latency(Duration::from_secs(60)).once();
    world.cloud.faults().add(hang);
    let guest = |number: usize| format!("guest-{number}");
    for number in 0..40 {
        let ports = json!([{"name": "http", "port": 1000 + number, "protocol": "TCP"}]);
        let annotations = json!({LB_ID: shared});
        let change = json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}});
        world.create(&service(&guest(number), change));
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let start = Instant::now();
    world.create(&service("quick", json!({})));
    world.until_published("quick").await;
    assert!(start.elapsed() < Duration::from_secs(15), "after {:?}", start.elapsed());
    let start = Instant::now();
    for number in 0..40 {
        world.until_published(&guest(number)).await;
    }
    // One after the other: each makes two or three changes, of which each takes Octavia two seconds and the poller another one.
    assert!(start.elapsed() < Duration::from_secs(600), "after {:?}", start.elapsed());
}

/// Who waits looks for drift all the same, when its turn has come.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_load_balancer_forgets_no_check_for_drift() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = "drift-check-interval=10m\n".to_owned();
    world.settings.plans = false;
    world.start().await;
    world.serve(&service("web", json!({}))).await;
    let shared = id(&world.cloud.load_balancer(&lb_name("web")).unwrap());
    let ports = json!([{"name": "http", "port": 81, "protocol": "TCP"}]);
    let change = json!({"metadata": {"annotations": {LB_ID: shared}}, "spec": {"ports": ports}});
    world.serve(&service("guest", change)).await;
    let listener = world.cloud.listeners().into_iter().find(|one| one["protocol_port"] == 80).unwrap();
    let path = format!("/v2.0/lbaas/listeners/{}", id(&listener));
    put(&world, &path, &json!({"listener": {"connection_limit": 7}}));
    // The guest has the load balancer for as long as any check for drift may take to come.
    let hang = octavia(Method::POST, "/lbaas/listeners").latency(Duration::from_secs(800)).once();
    world.cloud.faults().add(hang);
    let ports = json!([
        {"name": "http", "port": 81, "protocol": "TCP", "nodePort": 30081},
        {"name": "more", "port": 82, "protocol": "TCP", "nodePort": 30082},
    ]);
    world.patch("guest", &json!({"spec": {"ports": ports}}));
    world.pass(1000).await;
    let listener = world.cloud.listeners().into_iter().find(|one| one["protocol_port"] == 80).unwrap();
    assert_eq!(listener["connection_limit"], -1);
}

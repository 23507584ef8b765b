//! What Octavia answers in other words, or with another status, from one release to the next.

use http::Method;
use openstack_ccm_openstack_sim::{Fault, Node, OctaviaRelease, OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{INTERNAL, annotated, id};
use crate::support::{World, lb_name, node, service};
use OctaviaRelease::{V10, V12, V14, V16, V19};

const OCTAVIA: &str = "load-balancer";

#[allow(clippy::needless_pass_by_value, reason = "json! literals read better by value")]
fn internal(change: Value) -> Value {
    let mut service = annotated(&[(INTERNAL, "true")]);
    openstack_ccm_kube_sim::merge_patch(&mut service, &change);
    service
}

/// Deletes the load balancer of `web`; somebody else takes its address at once. Answers the address.
fn lose_address(world: &World) -> String {
    let load_balancer = world.cloud.load_balancer(&lb_name("web")).unwrap();
    let address = load_balancer["vip_address"].as_str().unwrap().to_owned();
    let path = format!("/v2.0/lbaas/loadbalancers/{}?cascade=true", id(&load_balancer));
    assert_eq!(world.cloud.user().delete(OCTAVIA, &path).0, 204);
    world.cloud.settle();
    take(world, &address);
    address
}

/// A port of somebody in the project gets an address.
fn take(world: &World, address: &str) {
    let seed = world.cloud.seed();
    let fixed_ip = json!({"subnet_id": seed.subnet_id, "ip_address": address});
    let port = json!({"port": {"network_id": seed.network_id, "fixed_ips": [fixed_ip]}});
    world.cloud.user().make("network", "/v2.0/ports", &port);
}

/// How many load balancers were asked for.
fn creations(world: &World) -> usize {
    world.take_calls().iter().filter(|call| call.name == "POST loadbalancers").count()
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_service_whose_address_somebody_took_gets_another_one(
    #[values(V10, V12, V14, V16, V19)] octavia: OctaviaRelease,
) {
    let mut world = World::serving_on(octavia, &internal(json!({}))).await;
    world.serve(&service("other", json!({"metadata": {"annotations": {INTERNAL: "true"}}}))).await;
    world.stop().await;
    let taken = lose_address(&world);
    world.take_calls();
    world.start().await;
    world.until("it has another", |world| world.cloud.load_balancer(&lb_name("web")).is_some()).await;
    assert!(!world.ingress("web").join(" ").contains(&taken), "nobody is sent to the new owner meanwhile");
    world.until_served("web").await;
    let load_balancer = world.cloud.load_balancer(&lb_name("web")).unwrap();
    assert_ne!(load_balancer["vip_address"], json!(taken));
    let address = load_balancer["vip_address"].as_str().unwrap();
    assert!(world.ingress("web").join(" ").contains(address), "{:?}", world.ingress("web"));
    assert_eq!(creations(&world), 2);
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_status_does_not_go_on_naming_an_address_that_is_somebody_elses(
    #[values(V10, V14, V19)] octavia: OctaviaRelease,
) {
    let world = World::serving_on(octavia, &internal(json!({}))).await;
    world.cloud.faults().add_worker(WorkerFault::hold(OperationKind::LoadBalancerCreate));
    let taken = lose_address(&world);
    assert!(world.ingress("web").join(" ").contains(&taken));
    world.until("it is withdrawn", |world| world.ingress("web").is_empty()).await;
    assert_eq!(world.annotation("web", "loadbalancer.openstack.org/load-balancer-address"), None);
}

/// A cloud that fails over an address without a word of it.
#[tokio::test(start_paused = true)]
async fn a_previous_address_is_given_up_after_the_second_fault_with_it() {
    let world = World::serving(&internal(json!({}))).await;
    let load_balancer = world.cloud.load_balancer(&lb_name("web")).unwrap();
    let fault = || Fault::new().service(OCTAVIA).method(Method::POST).path("loadbalancers$");
    world.cloud.faults().add(fault().answer(500, json!({"faultstring": "boom"})).times(2));
    let path = format!("/v2.0/lbaas/loadbalancers/{}?cascade=true", id(&load_balancer));
    assert_eq!(world.cloud.user().delete(OCTAVIA, &path).0, 204);
    world.cloud.settle();
    // Free again, but the program has no reason to think so.
    let address = load_balancer["vip_address"].as_str().unwrap();
    world.until("it has another", |world| world.cloud.load_balancer(&lb_name("web")).is_some()).await;
    world.quiet().await;
    let calls = world.take_calls().into_iter().filter(|call| call.name == "POST loadbalancers");
    let bodies = calls.filter_map(|call| call.request).map(|request| request.body);
    let asked: Vec<bool> = bodies.map(|body| body["loadbalancer"]["vip_address"] == json!(address)).collect();
    assert_eq!(asked, [true, true, false]);
}

#[rstest]
#[case::yoga(V10, "already allocated in subnet")]
#[case::names_the_port(V14, "198.18.0.200 is in use by port")]
#[case::newest(V19, "The VIP IP address is already in use")]
#[tokio::test(start_paused = true)]
async fn an_address_in_use_is_reported_in_one_event(#[case] octavia: OctaviaRelease, #[case] text: &str) {
    let world = World::started_on(octavia).await;
    let address = "198.18.0.200";
    take(&world, address);
    world.create(&internal(json!({"spec": {"loadBalancerIP": address}})));
    world.until_warned("web", "in").await;
    world.pass(600).await;
    let refused: Vec<String> =
        world.warnings("web").into_iter().filter(|one| one.contains("SyncLoadBalancerFailed")).collect();
    assert_eq!(refused.len(), 1, "{refused:#?}");
    assert!(refused[0].contains(text), "{refused:#?}");
    assert!(creations(&world) <= 5, "a refusal is no outage");
}

#[rstest]
#[case::yoga(V10, &["quota of \"port\" is used up"])]
#[case::no_word_of_it(V14, &["Octavia gives no reason", "quota of ports or the subnet's addresses might be used up"])]
#[case::newest(V19, &["quota of \"port\" is used up"])]
#[tokio::test(start_paused = true)]
async fn a_used_up_quota_of_ports_is_named(#[case] octavia: OctaviaRelease, #[case] texts: &[&str]) {
    let world = World::started_on(octavia).await;
    world.cloud.set_neutron_quota("port", 0);
    world.create(&internal(json!({})));
    world.until_warned("web", "uota").await;
    world.pass(20).await;
    assert_eq!(creations(&world), 1, "nothing changes within seconds");
    let warnings = world.warnings("web").join("\n");
    for text in texts {
        assert!(warnings.contains(text), "{warnings}");
    }
    assert!(!warnings.contains("tags="), "they would stand before the cause: {warnings}");
    world.cloud.set_neutron_quota("port", 100);
    world.until_published("web").await;
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn an_address_outside_the_subnet_is_the_users_error(#[values(V10, V14, V19)] octavia: OctaviaRelease) {
    let world = World::started_on(octavia).await;
    world.create(&internal(json!({"spec": {"loadBalancerIP": "203.0.113.77"}})));
    world.until_warned("web", "SyncLoadBalancerFailed").await;
    world.pass(20).await;
    assert_eq!(creations(&world), 0, "it is seen before Octavia is asked");
}

/// Octavia 10 accepts a batch that names a member twice, and then stays PENDING_UPDATE for ever: nobody can delete it.
#[tokio::test(start_paused = true)]
async fn two_nodes_of_one_address_are_one_member() {
    let mut world = World::serving_on(V10, &internal(json!({}))).await;
    let twin = Node { name: "twin".to_owned(), ..world.cloud.nodes()[0].clone() };
    world.kube.create(&node(&twin, "v1.36.0")).unwrap();
    world.pass(120).await;
    world.restart_to_rest().await;
    let load_balancer = world.cloud.load_balancer(&lb_name("web")).unwrap();
    assert_eq!(load_balancer["provisioning_status"], "ACTIVE");
    let pool = id(&world.cloud.pools()[0]);
    assert_eq!(world.cloud.members(&pool).len(), 2);
}

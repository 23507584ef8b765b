//! An Event is gone after an hour: a Warning whose cause lasts is written again at the check for drift, and never more often.

use std::pin::Pin;
use std::time::Duration;

use openstack_ccm_kube_sim::{ApiVersion, Fault};
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{
    INTERNAL, attach, cluster_uid, floating_ip, id, load_balancer, make_for_namesake, put,
};
use crate::support::{ANNOTATION, PROXY, World, service};

/// Three or four checks for drift: one after half an hour, and a random part of up to a fifth.
const TWO_HOURS: Duration = Duration::from_secs(7200);
const EXPECTED: std::ops::RangeInclusive<i64> = 3..=4;

/// How often each Event of a reason was written that tells of an object.
fn counts(world: &World, object: &str, reason: &str) -> Vec<i64> {
    let mut events = world.kube.list("events", "default").unwrap();
    events.retain(|event| event["involvedObject"]["name"] == object && event["reason"] == reason);
    events.iter().map(|event| event["count"].as_i64().unwrap()).collect()
}

async fn serving_on(version: ApiVersion, service: &Value) -> World {
    let mut world = World::new(version);
    world.start().await;
    world.serve(service).await;
    world
}

/// The API server drops ipMode, and no hostname is configured.
async fn not_honoured() -> World {
    let proxied = service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}));
    serving_on(ApiVersion::V1_28, &proxied).await
}

/// Found while the tree is computed.
async fn local_without_monitor() -> World {
    let local = service("web", json!({"spec": {"externalTrafficPolicy": "Local"}}));
    serving_on(ApiVersion::V1_36, &local).await
}

/// Found while the plan is made.
async fn another_address() -> World {
    let world = serving_on(ApiVersion::V1_36, &internal("true")).await;
    let own = floating_ip(&world.cloud, "198.19.0.88", "by hand");
    attach(&world.cloud, &own, load_balancer(&world)["vip_port_id"].as_str().unwrap());
    world.patch(
        "web",
        &json!({"metadata": {"annotations": {INTERNAL: null}}, "spec": {"loadBalancerIP": "198.19.0.99"}}),
    );
    world.until_served_at("web", "198.19.0.88(VIP)").await;
    world.take_calls();
    world
}

/// An administrator took all members out of service.
async fn drained() -> World {
    let mut world = serving_on(ApiVersion::V1_36, &service("web", json!({}))).await;
    world.stop().await;
    let pool = id(&world.cloud.pools()[0]);
    for member in world.cloud.members(&pool) {
        let path = format!("/v2.0/lbaas/pools/{pool}/members/{}", id(&member));
        put(&world, &path, &json!({"member": {"weight": 0}}));
    }
    world.start_to_rest().await;
    world.take_calls();
    world
}

fn internal(value: &str) -> Value {
    service("web", json!({"metadata": {"annotations": {INTERNAL: value}}}))
}

async fn unknown_annotation() -> World {
    let key = format!("{ANNOTATION}proxy-protocl");
    serving_on(ApiVersion::V1_36, &service("web", json!({"metadata": {"annotations": {key: "v2"}}}))).await
}

async fn orphan() -> World {
    let world = World::serving(&service("web", json!({}))).await;
    let uid = "11111111-2222-4333-8444-555555555555";
    make_for_namesake(&world, &cluster_uid(&world), uid, "");
    world.cloud.settle();
    world.until_warned("web", "LoadBalancerWithoutService").await;
    world
}

/// A world with the Node `web`, which is ready.
async fn with_node() -> World {
    let mut world = World::without_nodes();
    world.start().await;
    world.join("web").await;
    world
}

/// After the next comparison of addresses, and some rounds over the nodes that are not ready.
async fn warned(world: World) -> World {
    world.pass(310).await;
    world.take_calls();
    world
}

async fn replaced_server() -> World {
    let world = with_node().await;
    world.cloud.remove_node("web");
    world.cloud.add_node("web");
    warned(world).await
}

async fn moved_server() -> World {
    let world = with_node().await;
    world.cloud.move_server("web", "b0b0", "zone-9");
    warned(world).await
}

async fn wrong_node_ip() -> World {
    let world = with_node().await;
    let annotations = json!({"alpha.kubernetes.io/provided-node-ip": "10.0.0.77"});
    let patch = json!({"metadata": {"annotations": annotations}});
    world.kube.patch("nodes", "", "web", &patch).unwrap();
    warned(world).await
}

async fn unnamed_server() -> World {
    let mut world = World::without_nodes();
    world.start().await;
    world.join("node-1").await;
    world.kube.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "web"}})).unwrap();
    world.set_ready("web", "Unknown");
    warned(world).await
}

/// Of two servers none is left.
async fn held_deletion() -> World {
    let world = with_node().await;
    world.join("worker").await;
    all_servers_go(&world);
    warned(world).await
}

fn all_servers_go(world: &World) {
    for node in ["web", "worker"] {
        world.cloud.remove_node(node);
        world.set_ready(node, "Unknown");
    }
}

#[rstest]
#[case::of_the_publication(Box::pin(not_honoured()), "LoadBalancerIPModeNotHonoured")]
#[case::of_the_tree(Box::pin(local_without_monitor()), "LoadBalancerLocalWithoutMonitor")]
#[case::of_the_plan(Box::pin(another_address()), "LoadBalancerIPIgnored")]
#[case::of_drained_members(Box::pin(drained()), "LoadBalancerMembersDrained")]
#[case::of_the_settings(Box::pin(unknown_annotation()), "UnknownAnnotation")]
#[case::of_an_orphan(Box::pin(orphan()), "LoadBalancerWithoutService")]
#[case::of_a_replaced_server(Box::pin(replaced_server()), "NodeServerReplaced")]
#[case::of_a_moved_server(Box::pin(moved_server()), "NodeServerMoved")]
#[case::of_a_wrong_node_ip(Box::pin(wrong_node_ip()), "NodeAddressesNotUpdated")]
#[case::of_an_unnamed_server(Box::pin(unnamed_server()), "NodeServerNotFound")]
#[case::of_a_held_deletion(Box::pin(held_deletion()), "NodeDeletionHeld")]
#[tokio::test(start_paused = true)]
async fn a_warning_is_written_as_long_as_its_cause_lasts_into_the_event_that_it_has(
    #[case] serving: Pin<Box<dyn Future<Output = World>>>,
    #[case] reason: &str,
) {
    let world = serving.await;
    let before = counts(&world, "web", reason);
    assert_eq!(before.len(), 1, "{:?}", world.events("web"));
    tokio::time::sleep(TWO_HOURS).await;
    let after = counts(&world, "web", reason);
    assert!(after.len() == 1 && EXPECTED.contains(&(after[0] - before[0])), "{before:?}, then {after:?}");
    let mut writes: Vec<String> =
        world.take_calls().into_iter().filter(|call| call.write).map(|call| call.name).collect();
    writes.retain(|name| !name.contains("events"));
    assert_eq!(writes, Vec::<String>::new(), "nothing else is written for it");
}

#[tokio::test(start_paused = true)]
async fn a_warning_whose_cause_is_over_is_not_written_any_more() {
    let world = not_honoured().await;
    tokio::time::sleep(TWO_HOURS).await;
    world.replace_api_server(ApiVersion::V1_36);
    world.set_kubelets("v1.36.0");
    world.until_ingress("web", "198.19.0.11(Proxy)").await;
    let before = counts(&world, "web", "LoadBalancerIPModeNotHonoured");
    tokio::time::sleep(TWO_HOURS).await;
    assert_eq!(counts(&world, "web", "LoadBalancerIPModeNotHonoured"), before);
}

#[tokio::test(start_paused = true)]
async fn without_the_check_for_drift_a_warning_about_a_node_is_written_once() {
    let mut world = World::without_nodes();
    world.settings.cloud_conf = "drift-check-interval = 0s".to_owned();
    world.start().await;
    world.join("web").await;
    world.join("worker").await;
    all_servers_go(&world);
    // For less than an hour: after that, the Event is gone.
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(counts(&world, "web", "NodeDeletionHeld"), [1]);
}

/// A cause that does not last is told of once: by the Event that a refused write would have lost.
#[rstest]
#[case::refused(Fault::on("POST", "/events").unavailable())]
#[case::throttled(Fault::on("POST", "/events").too_many_requests(1))]
#[case::without_an_answer(Fault::on("POST", "/events").hang())]
#[case::written_all_the_same(Fault::on("POST", "/events").lose_answer())]
#[tokio::test(start_paused = true)]
async fn an_event_that_the_api_server_has_no_time_for_is_written_later_and_once(#[case] fault: Fault) {
    let world = World::started().await;
    world.kube.inject(fault.times(4));
    let key = format!("{ANNOTATION}proxy-protocl");
    world.serve(&service("web", json!({"metadata": {"annotations": {key: "v2"}}}))).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    for reason in ["EnsuringLoadBalancer", "UnknownAnnotation", "EnsuredLoadBalancer"] {
        assert_eq!(counts(&world, "web", reason).len(), 1, "{reason}: {:?}", world.events("web"));
    }
}

//! What is changed in the cloud behind a Service's back is put right after a while, and reported.

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::json;

use crate::contract::setup::{configured, id, load_balancer, member_names, only_floating_ip, put};
use crate::support::{World, service};

fn members(world: &World) -> usize {
    world.cloud.pools().iter().map(|pool| world.cloud.members(pool["id"].as_str().unwrap()).len()).sum()
}

/// Takes all members out of the only pool, as somebody with the same account could.
fn remove_members(world: &World) {
    let pool = world.cloud.pools()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v2.0/lbaas/pools/{pool}/members");
    let (status, answer) = world.cloud.user().put("load-balancer", &path, &json!({"members": []}));
    assert_eq!(status, 202, "{answer}");
    world.cloud.settle();
    assert_eq!(members(world), 0);
}

/// Defect: 66, better: the cloud is compared at an interval.
#[tokio::test(start_paused = true)]
async fn drift_is_repaired_after_the_interval_and_reported_once() {
    let world = configured(|_| "drift-check-interval=10m\n".to_owned()).await;
    world.serve(&service("web", json!({}))).await;
    remove_members(&world);
    world.pass(500).await;
    assert_eq!(members(&world), 0, "not before the interval");
    world.pass(300).await;
    assert_eq!(members(&world), 2, "with the random part, at most a fifth later");
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("LoadBalancerDriftRepaired") && warnings[0].contains("members"),
        "{warnings:?}"
    );
    let mut metrics = String::new();
    prometheus_client::encoding::text::encode(&mut metrics, &world.registry.lock().unwrap()).unwrap();
    assert!(metrics.contains("openstack_ccm_drift_repairs_total 1"), "{metrics}");
    world.pass(3600).await;
    assert_eq!(world.warnings("web").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_service_is_no_drift() {
    let world = World::serving(&service("web", json!({}))).await;
    world.annotate("web", "loadbalancer.openstack.org/connection-limit", Some("100"));
    world.quiet().await;
    world.pass(7200).await;
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

#[tokio::test(start_paused = true)]
async fn with_an_interval_of_zero_nobody_looks() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = "drift-check-interval=0\n".to_owned();
    world.start().await;
    world.serve(&service("web", json!({}))).await;
    remove_members(&world);
    world.pass(6 * 3600).await;
    assert_eq!(members(&world), 0);
}

/// Strangers are members in place of the nodes.
fn replace_members(world: &World) {
    let stranger = |address: &str| json!({"address": address, "protocol_port": 30080, "name": "stranger"});
    let members = json!({"members": [stranger("10.0.0.77"), stranger("10.0.0.78")]});
    put(world, &format!("/v2.0/lbaas/pools/{}/members", id(&world.cloud.pools()[0])), &members);
}

fn replace_nodes(world: &World) {
    world.kube.delete("nodes", "", "node-1").unwrap();
    world.add_node("node-3", "v1.36.0");
}

fn take_floating_ip_off(world: &World) {
    let path = format!("/v2.0/floatingips/{}", id(&only_floating_ip(world)));
    put(world, &path, &json!({"floatingip": {"port_id": null}}));
}

#[rstest]
#[case::members_were_replaced(replace_members)]
#[case::nodes_were_replaced(replace_nodes)]
#[case::the_floating_ip_was_taken_off(take_floating_ip_off)]
#[tokio::test(start_paused = true)]
async fn what_changed_while_nobody_was_at_work_is_put_right_by_the_next_start(#[case] change: fn(&World)) {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.stop().await;
    change(&world);
    world.start().await;
    world.quiet().await;
    let nodes = world.kube.list("nodes", "").unwrap();
    let nodes: Vec<_> = nodes.iter().map(|node| node["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(member_names(&world), nodes);
    assert_eq!(only_floating_ip(&world)["port_id"], load_balancer(&world)["vip_port_id"]);
}

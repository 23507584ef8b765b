//! What is changed in the cloud behind a Service's back is put right after a while, and reported.

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::json;

use crate::contract::setup::configured;
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

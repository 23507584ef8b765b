//! What `check` says.

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_overlay::check::check;
use serde_json::json;

use crate::world::{MODE, World, settle};

#[tokio::test(start_paused = true)]
async fn a_cluster_is_green_when_no_chosen_service_is_short_circuited() {
    let mut world = World::new(ApiVersion::V1_36);
    world.create("app");
    world.owner_publishes("app", json!([{"ip": "203.0.113.10"}])).await;
    world.create_with("plain", &json!({}));
    world.owner_publishes("plain", json!([{"ip": "203.0.113.20"}])).await;
    world.create_with("vip", &json!({"metadata": {"annotations": {MODE: "vip"}}}));
    world.owner_publishes("vip", json!([{"ip": "203.0.113.30"}])).await;
    world.create_with(
        "lab",
        &json!({"metadata": {"annotations": {MODE: "proxy"}}, "spec": {"loadBalancerClass": "metallb"}}),
    );
    let before = check(&world.user, &world.options).await.unwrap();
    assert!(!before.is_green());
    insta::assert_snapshot!("before", before.to_string());
    world.start().await;
    settle().await;
    let after = check(&world.user, &world.options).await.unwrap();
    assert!(after.is_green());
    insta::assert_snapshot!("after", after.to_string());
}

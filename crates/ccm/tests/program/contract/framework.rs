//! Scenarios of the framework that only the whole program can show.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::support::{World, lb_name, service};

/// A load balancer that is gone when the nodes change is recreated, with the nodes as they are then.
///
/// Framework: P16, better: the framework says nothing and makes nothing, until somebody changes the Service.
#[tokio::test(start_paused = true)]
async fn framework_p16_a_load_balancer_that_is_gone_when_nodes_change_is_recreated() {
    let world = World::serving(&service("web", json!({}))).await;
    let id = world.cloud.load_balancer(&lb_name("web")).unwrap()["id"].as_str().unwrap().to_owned();
    world.cloud.user().delete("load-balancer", &format!("/v2.0/lbaas/loadbalancers/{id}?cascade=true"));
    world.cloud.settle();
    assert!(world.cloud.load_balancers().is_empty());
    let start = Instant::now();
    world.add_node("node-3", "v1.36.0");
    world.until("it is recreated", |world| !world.cloud.load_balancers().is_empty()).await;
    assert!(start.elapsed() < Duration::from_secs(60), "only a later check for drift found it");
    world.quiet().await;
    let pool = world.cloud.pools()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.cloud.members(&pool).len(), 3);
}

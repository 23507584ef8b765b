//! Many Services at once: only as many creations are under way as Octavia finishes, and nothing else waits for them.

use std::time::Duration;

use openstack_ccm_openstack_sim::{Capacity, OperationKind};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{World, service};

const MANY: usize = 30;

/// A program that serves one Service on a cloud whose creations take a while.
async fn world(capacity: Option<Capacity>) -> World {
    let world = World::serving(&service("before", json!({}))).await;
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, Capacity::SMALL_CREATION);
    world.cloud.set_capacity(capacity);
    world
}

fn create_many(world: &World) {
    (0..MANY).for_each(|number| world.create(&service(&format!("web-{number}"), json!({}))));
}

fn pending(world: &World) -> usize {
    let all = world.cloud.load_balancers();
    all.iter().filter(|one| one["provisioning_status"] == "PENDING_CREATE").count()
}

fn served(world: &World) -> usize {
    (0..MANY).filter(|number| !world.ingress(&format!("web-{number}")).is_empty()).count()
}

/// The most load balancers that are PENDING at once until so many of the Services are served.
async fn most_pending(world: &World, services: usize) -> usize {
    let mut most = 0;
    while served(world) < services {
        most = most.max(pending(world));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    most
}

fn waiting(world: &World) -> usize {
    let metrics = world.metrics();
    let line =
        metrics.lines().find(|line| line.starts_with("openstack_ccm_load_balancer_creations_waiting "));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect("the metric is shown")
}

#[tokio::test(start_paused = true)]
async fn a_small_octavia_gets_only_as_many_creations_as_it_finishes() {
    let world = world(Some(Capacity::small())).await;
    create_many(&world);
    let most = most_pending(&world, MANY).await;
    assert!((2..=10).contains(&most), "{most} at once");
    assert_eq!(waiting(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn a_large_octavia_is_not_left_idle() {
    let world = world(None).await;
    let creation = Duration::from_secs(30);
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, creation);
    let start = Instant::now();
    create_many(&world);
    most_pending(&world, MANY).await;
    assert!(start.elapsed() < 5 * creation, "{:?}", start.elapsed());
}

/// Amphorae boot side by side, however few they are.
#[tokio::test(start_paused = true)]
async fn five_creations_of_half_a_minute_take_less_than_two_rounds() {
    let world = world(None).await;
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, Duration::from_secs(30));
    let start = Instant::now();
    (0..5).for_each(|number| world.create(&service(&format!("web-{number}"), json!({}))));
    most_pending(&world, 5).await;
    assert!(start.elapsed() <= Duration::from_secs(50), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_creation_waits_for_none() {
    let world = world(Some(Capacity::small())).await;
    create_many(&world);
    world.until("Services wait", |world| waiting(world) > 10).await;
    world.create(&service("wrong", json!({"metadata": {"annotations": {crate::support::PROXY: "v3"}}})));
    world.add_node("node-9", "v1.36.0");
    world.until_warned("wrong", "v3").await;
    world.release("before").await;
    assert!(waiting(&world) > 0, "all load balancers are there already: {}", served(&world));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_waits_is_reported_and_has_not_failed() {
    let world = world(Some(Capacity::small())).await;
    create_many(&world);
    let last = format!("web-{}", MANY - 1);
    world
        .until("an Event says so", |world| world.events(&last).join(" ").contains("LoadBalancerQueued"))
        .await;
    assert!(world.warnings(&last).is_empty(), "{:?}", world.warnings(&last));
    world.until_published(&last).await;
    let reports = world.events(&last).iter().filter(|event| event.contains("LoadBalancerQueued")).count();
    assert_eq!(reports, 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_while_it_waits_leaves_nothing() {
    let world = world(Some(Capacity::small())).await;
    create_many(&world);
    world.until("Services wait", |world| waiting(world) > 10).await;
    (0..MANY).for_each(|number| world.delete(&format!("web-{number}")));
    let last = format!("web-{}", MANY - 1);
    world.until_gone(&last).await;
    world.until_gone("web-0").await;
    world.quiet().await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!(waiting(&world), 0);
}

//! Many Services at once: only as many creations are under way as Octavia finishes, and nothing else waits for them.

use std::time::Duration;

use openstack_ccm_openstack_sim::{Capacity, OperationKind};
use serde_json::json;

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
async fn a_large_octavia_gets_all_of_them_before_the_first_one_serves() {
    let world = world(None).await;
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, Duration::from_secs(30));
    create_many(&world);
    assert_eq!(most_pending(&world, 1).await, MANY);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_creation_waits_for_none() {
    let world = world(Some(Capacity::small())).await;
    create_many(&world);
    world.until("Services wait", |world| waiting(world) > 10).await;
    world.create(&service("wrong", json!({"metadata": {"annotations": {crate::support::PROXY: "v3"}}})));
    world.add_node("node-9", "v1.36.0");
    world.until_warned("wrong", "v3").await;
    world.delete("before");
    world.until_gone("before").await;
    assert!(waiting(&world) > 0, "all load balancers are there already: {}", served(&world));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_waits_is_told_and_has_not_failed() {
    let world = world(Some(Capacity::small())).await;
    create_many(&world);
    let last = format!("web-{}", MANY - 1);
    world.until("it is told", |world| world.events(&last).join(" ").contains("LoadBalancerQueued")).await;
    assert!(world.warnings(&last).is_empty(), "{:?}", world.warnings(&last));
    world.until_published(&last).await;
    let told = world.events(&last).iter().filter(|event| event.contains("LoadBalancerQueued")).count();
    assert_eq!(told, 1);
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

/// A list of pools names all their members: after a start, a few changes among many load balancers read each on its own.
#[tokio::test(start_paused = true)]
async fn a_few_changes_among_many_load_balancers_list_nothing_of_all_of_them() {
    const SERVED: usize = 160;
    let mut world = World::started().await;
    let name = |number: usize| format!("web-{number}");
    (0..SERVED).for_each(|number| world.create(&service(&name(number), json!({}))));
    for number in 0..SERVED {
        world.until_published(&name(number)).await;
    }
    world.quiet_unplanned().await;
    world.restart().await;
    world.quiet_unplanned().await;
    world.cloud.log().clear();
    for number in 0..3 {
        world.annotate(&name(number), "loadbalancer.openstack.org/connection-limit", Some("100"));
    }
    world.quiet_unplanned().await;
    let calls = world.cloud.log().calls();
    let of_all = |path: &str| {
        let lists = calls.iter().filter(|call| call.path == format!("/v2.0/lbaas/{path}"));
        let narrows =
            |part: &str| ["id=", "name=", "loadbalancer_id="].iter().any(|key| part.starts_with(key));
        lists.filter(|call| !call.query.split('&').any(narrows)).count()
    };
    assert_eq!((of_all("loadbalancers"), of_all("listeners"), of_all("pools")), (0, 0, 0));
    assert_eq!(calls.iter().filter(|call| call.is_write()).count(), 3, "each was changed");
}

//! What is written in the cloud when this program takes over from OCCM.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_tools::plan::adoption::Adoption;
use openstack_ccm_tools::plan::as_if::AsIf;
use openstack_ccm_tools::plan::forecast::Forecast;
use serde_json::{Value, json};

use crate::contract::setup::{INTERNAL, as_occm_leaves_it, id};
use crate::support::line::Asked;
use crate::support::{Call, LB_ID, Side, Stop, World, lb_name, service};

const SERVICES: [&str; 5] = ["shop", "shop-api", "blog", "db", "cache"];
/// Longer than everything takes to be marked.
const ALL_MARKED: Duration = Duration::from_secs(600);

fn with_ports(name: &str, ports: &[u16], annotations: &Value) -> Value {
    let port = |port: &u16| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP"});
    let ports: Vec<Value> = ports.iter().map(port).collect();
    service(name, json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}}))
}

/// Four load balancers with seven ports and two floating IPs, one of them shared by two Services, as OCCM leaves them.
/// No program is at work.
async fn left_by_occm() -> World {
    let mut world = World::started().await;
    world.serve(&with_ports("shop", &[80, 443], &json!({}))).await;
    let shared = id(&world.cloud.load_balancer(&lb_name("shop")).unwrap());
    world.serve(&with_ports("shop-api", &[8080], &json!({LB_ID: shared}))).await;
    world.serve(&with_ports("blog", &[80], &json!({}))).await;
    world.serve(&with_ports("db", &[5432, 5433], &json!({INTERNAL: "true"}))).await;
    world.serve(&with_ports("cache", &[6379], &json!({INTERNAL: "true"}))).await;
    world.stop().await;
    for service in SERVICES {
        as_occm_leaves_it(&world, service);
    }
    let of = |list: usize, count: usize| assert_eq!(list, count);
    of(world.cloud.load_balancers().len(), 4);
    of(world.cloud.listeners().len(), 7);
    of(world.cloud.floating_ips().len(), 2);
    world.take_calls();
    world
}

fn writes(world: &World) -> Vec<Call> {
    let calls = world.take_calls().into_iter();
    calls.filter(|call| call.side == Side::OpenStack && call.write).collect()
}

fn is_marked(one: &Value) -> bool {
    let tags = one["tags"].as_array().unwrap();
    tags.iter().any(|tag| tag.as_str().unwrap().starts_with("openstack-ccm-cluster="))
}

fn unmarked(world: &World) -> usize {
    let all = [world.cloud.load_balancers(), world.cloud.floating_ips()].concat();
    all.iter().filter(|one| !is_marked(one)).count()
}

/// Who takes over reads beforehand what stays, and how much is marked when.
#[tokio::test(start_paused = true)]
async fn what_stays_and_what_is_marked_later_is_announced_before_the_takeover() {
    let world = left_by_occm().await;
    let config = world.config();
    for (service, wrong) in [("blog", Some("soon")), ("blog", None)] {
        world.annotate(service, "loadbalancer.openstack.org/timeout-client-data", wrong);
        let items = world.plan(true, AsIf::default()).await;
        let forecasts: Vec<Forecast> = items.iter().map(Forecast::of).collect();
        let adoption = Adoption::of(&items, &forecasts, &config.load_balancer);
        let Adoption { statuses_stay, statuses_change, statuses_new, values, identity_tags, .. } = adoption;
        assert_eq!((statuses_stay, statuses_change, statuses_new), (5, 0, 0));
        assert_eq!(values, usize::from(wrong.is_some()), "{forecasts:#?}");
        assert_eq!(identity_tags, 5);
    }
}

/// Each user of a load balancer leaves its uid on it.
#[tokio::test(start_paused = true)]
async fn the_takeover_writes_nothing_at_first_and_one_tag_after_another_later() {
    let mut world = left_by_occm().await;
    let published: Vec<_> = SERVICES.map(|name| world.ingress(name)).into();
    world.start().await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(writes(&world).len(), 0);
    assert_eq!(unmarked(&world), 6);
    tokio::time::sleep(ALL_MARKED).await;
    let writes = writes(&world);
    let of = |name: &str| writes.iter().filter(|call| call.name == name).collect::<Vec<_>>();
    let load_balancers = of("PUT loadbalancers/ID");
    assert_eq!(
        (load_balancers.len(), of("PUT floatingips/ID/tags").len(), writes.len()),
        (5, 2, 7),
        "{writes:?}"
    );
    for pair in load_balancers.windows(2) {
        assert!(pair[1].at - pair[0].at >= Duration::from_secs(5), "{writes:?}");
    }
    assert_eq!(unmarked(&world), 0);
    assert_eq!(SERVICES.map(|name| world.ingress(name)).as_slice(), published);
    // Nothing else is left to be done, also after a restart and the check for drift.
    world.restart().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn listeners_and_pools_are_tagged_with_the_change_that_they_need() {
    let mut world = left_by_occm().await;
    world.start().await;
    tokio::time::sleep(ALL_MARKED).await;
    assert!(!world.cloud.listeners().iter().chain(&world.cloud.pools()).any(is_marked));
    world.take_calls();
    world.annotate_to_rest("blog", "loadbalancer.openstack.org/connection-limit", Some("100")).await;
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"]);
    assert_eq!(world.cloud.listeners().iter().filter(|one| is_marked(one)).count(), 1);
}

/// A change of nodes or of a Service does not wait, and what only names owners waits for it.
#[tokio::test(start_paused = true)]
async fn other_work_comes_first() {
    let mut world = left_by_occm().await;
    world.start().await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    world.take_calls();
    world.add_node("node-3", "v1.36.0");
    world
        .until("it is a member", |world| {
            let pools = world.cloud.pools();
            pools.iter().all(|pool| world.cloud.members(pool["id"].as_str().unwrap()).len() == 3)
        })
        .await;
    let busy = writes(&world);
    let is_member_batch = |call: &&Call| call.name == "PUT pools/ID/members";
    assert_eq!(busy.iter().filter(is_member_batch).count(), 7, "{busy:?}");
    tokio::time::sleep(ALL_MARKED).await;
    assert_eq!(unmarked(&world), 0);
}

/// What turns out to be wrong when a load balancer is to be marked is put right before that, not beside it.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_marked_after_it_was_put_right() {
    let mut world = left_by_occm().await;
    world.start().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    for pool in world.cloud.pools() {
        let member = id(&world.cloud.members(&id(&pool))[0]);
        let path = format!("/v2.0/lbaas/pools/{}/members/{member}", id(&pool));
        assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
        world.cloud.settle();
    }
    world.take_calls();
    tokio::time::sleep(ALL_MARKED).await;
    assert_eq!(unmarked(&world), 0);
    let writes: Vec<Asked> = world.take_calls().into_iter().filter_map(|call| call.request).collect();
    for pool in world.cloud.pools() {
        let batch_path = format!("/v2.0/lbaas/pools/{}/members", id(&pool));
        let batch = writes.iter().position(|write| write.path.split('?').next() == Some(batch_path.as_str()));
        // A shared load balancer is marked by each of its Services in turn, each after its own pools: with the Service's own uid.
        let service = pool["name"].as_str().unwrap().rsplit_once("default_").unwrap().1;
        let uid = world.service(service)["metadata"]["uid"].clone();
        let tag = json!(format!("openstack-ccm-service={}", uid.as_str().unwrap()));
        let load_balancer = pool["loadbalancers"][0]["id"].as_str().unwrap();
        let mark_path = format!("/v2.0/lbaas/loadbalancers/{load_balancer}");
        let marks = |write: &Asked| {
            let tags = write.body.pointer("/loadbalancer/tags").and_then(Value::as_array);
            write.path == mark_path && tags.is_some_and(|tags| tags.contains(&tag))
        };
        let mark = writes.iter().position(marks);
        assert!(batch.is_some() && batch < mark, "{pool}: {writes:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_marked_yet_goes_with_its_services() {
    let mut world = left_by_occm().await;
    world.start_to_rest().await;
    assert_eq!(unmarked(&world), 6);
    world.release("shop").await;
    assert_eq!(world.ingress("shop-api").len(), 1);
    assert_eq!((world.cloud.load_balancers().len(), world.cloud.listeners().len()), (4, 5));
    for service in &SERVICES[1..] {
        world.release(service).await;
    }
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
    assert!(world.cloud.leaked_ports().is_empty());
}

/// A Service that is moved before its load balancer was marked leaves nothing on it.
#[tokio::test(start_paused = true)]
async fn a_guest_that_moves_before_it_was_marked_leaves_nothing_behind() {
    let mut world = left_by_occm().await;
    world.start().await;
    world.quiet_unplanned().await;
    let other = id(&world.cloud.load_balancer(&lb_name("blog")).unwrap());
    world.annotate("shop-api", LB_ID, Some(&other));
    world.quiet_unplanned().await;
    let shop = world.cloud.load_balancer(&lb_name("shop")).unwrap();
    let of_shop = |one: &&Value| one["loadbalancers"][0]["id"] == shop["id"];
    assert_eq!(world.cloud.listeners().iter().filter(of_shop).count(), 2);
    assert!(!shop["tags"].as_array().unwrap().contains(&json!(lb_name("shop-api"))));
}

/// Marks all, killed once at most. Answers the calls of the programs.
async fn marked(stop: Option<Stop>) -> Vec<Call> {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.stop().await;
    as_occm_leaves_it(&world, "web");
    let address = world.ingress("web");
    world.take_calls();
    world.start_until(stop).await;
    if world.is_killed_within(ALL_MARKED).await {
        world.kill().await;
        world.start().await;
        tokio::time::sleep(ALL_MARKED).await;
    }
    assert_eq!((unmarked(&world), world.ingress("web")), (0, address), "{stop:?}");
    world.take_calls()
}

#[tokio::test(start_paused = true)]
async fn marking_goes_on_wherever_the_program_was_killed() {
    let mut calls = marked(None).await;
    // What comes after the last write are watches.
    calls.truncate(calls.iter().rposition(|call| call.write).map_or(0, |last| last + 1));
    assert!(calls.len() > 15, "only {} calls", calls.len());
    for stop in Stop::beside(&calls) {
        marked(Some(stop)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_operator_may_choose_that_nothing_is_marked() {
    let mut world = left_by_occm().await;
    world.settings.cloud_conf = "identity-tags-per-minute = 0\n".to_owned();
    world.start().await;
    tokio::time::sleep(Duration::from_secs(7200)).await;
    assert_eq!((unmarked(&world), writes(&world).len()), (6, 0));
}

/// OCCM refuses an internal Service on a load balancer of another one.
#[tokio::test(start_paused = true)]
async fn a_service_that_occm_refused_is_served_and_an_event_says_so() {
    let mut world = World::new(ApiVersion::V1_36);
    world.start().await;
    world.serve(&with_ports("shop", &[80], &json!({}))).await;
    world.stop().await;
    as_occm_leaves_it(&world, "shop");
    let shared = id(&world.cloud.load_balancer(&lb_name("shop")).unwrap());
    let mut refused = with_ports("web", &[8080], &json!({LB_ID: shared, INTERNAL: "true"}));
    refused["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
    world.create(&refused);
    world.start().await;
    world.until_served("web").await;
    let reports: Vec<_> =
        world.events("web").into_iter().filter(|one| one.contains("LoadBalancerSharedInternally")).collect();
    assert!(reports.len() == 1 && reports[0].starts_with("Normal"), "{reports:?}");
}

//! What a change of nodes sent is looked at afterwards: members that failed inside Octavia are sent again.

use std::time::Duration;

use openstack_ccm_openstack_sim::{Fault, OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::contract::setup::{id, member_names, put};
use crate::support::{PROXY, World, lb_name, service};

const BATCH: &str = "PUT pools/ID/members";
/// How the Event begins about what failed inside Octavia.
const SENT_AGAIN: &str = "LoadBalancerChildFailed: Octavia failed to apply the last change of member";
/// A change of nodes is made by then.
const MADE: Duration = Duration::from_secs(20);
/// It was looked at by then.
const CALM: Duration = Duration::from_secs(100);
/// Drift was looked for by then: half an hour, random part included.
const DRIFT: Duration = Duration::from_secs(37 * 60);

async fn serving() -> World {
    World::serving(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}}))).await
}

fn fail_batches(world: &World, times: u32) {
    world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::MemberBatch).times(times));
}

fn has_failed(world: &World) -> bool {
    world.cloud_state().contains("ERROR")
}

/// Changes an object of Octavia as an administrator does; `path` is relative to its root.
fn edit(world: &World, path: &str, body: &Value) {
    put(world, &format!("/v2.0/lbaas/{path}"), body);
}

fn only_pool(world: &World) -> String {
    let pools = world.cloud.pools();
    let [only] = pools.as_slice() else { panic!("{pools:#?}") };
    id(only)
}

/// The Service without the digest of what was seen last, which nobody reads but the next start.
fn without_digest(mut service: Value) -> Value {
    let metadata = &mut service["metadata"];
    for of_any_write in ["resourceVersion", "managedFields"] {
        metadata[of_any_write] = Value::Null;
    }
    metadata["annotations"].as_object_mut().unwrap().remove("loadbalancer.openstack.org/settled");
    service
}

#[tokio::test(start_paused = true)]
async fn members_that_are_as_they_were_sent_are_no_news_for_anybody() {
    let world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    let (state, events) = (without_digest(world.service("web")), world.events("web"));
    assert_eq!(world.take_cloud_writes(), [BATCH]);
    tokio::time::sleep(CALM).await;
    assert_eq!(world.take_cloud_writes(), [""; 0]);
    assert_eq!((without_digest(world.service("web")), world.events("web")), (state, events));
}

/// A batch moves `updated_at`, as the change of somebody else does that came before it. That is found all the same.
#[rstest]
#[case::by_a_restart(true)]
#[case::by_the_look_for_drift(false)]
#[tokio::test(start_paused = true)]
async fn a_change_of_nodes_does_not_cover_up_what_somebody_else_changed_before(#[case] restarts: bool) {
    let mut world = serving().await;
    let path = format!("listeners/{}", id(&world.cloud.listeners()[0]));
    edit(&world, &path, &json!({"listener": {"allowed_cidrs": ["192.0.2.0/24"]}}));
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE + CALM).await;
    let is_changed = |world: &World| world.cloud.listeners()[0]["allowed_cidrs"] == json!(["192.0.2.0/24"]);
    if restarts {
        world.restart_to_rest().await;
    } else {
        tokio::time::sleep(DRIFT).await;
    }
    assert!(!is_changed(&world));
}

#[tokio::test(start_paused = true)]
async fn a_failed_batch_is_sent_again() {
    let world = serving().await;
    fail_batches(&world, 1);
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(CALM).await;
    assert!(!has_failed(&world));
    assert_eq!(world.take_cloud_writes(), [BATCH; 2]);
    let warnings = world.warnings("web");
    assert!(warnings.iter().all(|warning| warning.contains(SENT_AGAIN)), "{warnings:?}");
    assert_eq!(warnings.len(), 3, "one for each member: {warnings:?}");
}

/// How often a Service was said to have what it asks for.
fn told(world: &World, reason: &str) -> u64 {
    let events = world.kube.list("events", "default").unwrap();
    let of_reason = events.iter().filter(|event| event["reason"] == reason);
    of_reason.map(|event| event["count"].as_u64().unwrap_or(1)).sum()
}

/// The load balancer is ACTIVE again all the same: only the statuses of its children show it.
#[rstest]
#[case::listener(OperationKind::ListenerUpdate, "loadbalancer.openstack.org/connection-limit", "7", 3)]
// What was made in vain is changed afterwards, and not made again.
#[case::monitor(
    OperationKind::HealthMonitorCreate,
    "loadbalancer.openstack.org/enable-health-monitor",
    "true",
    1
)]
#[tokio::test(start_paused = true)]
async fn what_failed_inside_octavia_is_not_called_ensured(
    #[case] kind: OperationKind,
    #[case] key: &str,
    #[case] value: &str,
    #[case] times: u64,
) {
    let world = serving().await;
    let ensured = |world: &World| told(world, "EnsuredLoadBalancer");
    let before = ensured(&world);
    world.cloud.set_delays(Duration::from_secs(2));
    world.cloud.faults().add_worker(WorkerFault::fail(kind).times(3));
    world.annotate("web", key, Some(value));
    let has_failed_each_time = |world: &World| {
        assert_eq!(ensured(world), before, "{:#?}", world.events("web"));
        told(world, "LoadBalancerChildFailed") == times
    };
    world.until("it has failed each time", has_failed_each_time).await;
    world.quiet_unplanned().await;
    assert!(!has_failed(&world) && ensured(&world) > before);
}

/// A cloud whose policy, or whose Octavia, knows of no status tree.
#[rstest]
#[case::by_policy(403, json!({"faultstring": "Policy does not allow this request to be performed."}))]
// As Octavia 19 answers for a path that it does not know.
#[case::of_another_octavia(404, json!({"code": 404, "title": "Not Found", "description": ""}))]
#[case::of_a_driver(501, json!({"faultstring": "no"}))]
#[tokio::test(start_paused = true)]
async fn a_failed_batch_is_found_where_no_status_tree_is_to_be_had(#[case] status: u16, #[case] body: Value) {
    let world = World::started().await;
    let refusal = Fault::new().path("/loadbalancers/[^/]+/status$").answer(status, body);
    world.cloud.faults().add(refusal);
    world.create(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}})));
    world.until_published("web").await;
    world.quiet_unplanned().await;
    fail_batches(&world, 1);
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE + CALM).await;
    assert!(!has_failed(&world));
}

#[tokio::test(start_paused = true)]
async fn one_that_was_deleted_meanwhile_is_made_again() {
    let world = World::started().await;
    for name in ["gone", "stays"] {
        world.serve(&service(name, json!({}))).await;
    }
    let stays = world.cloud.load_balancer(&lb_name("stays"));
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    let id = world.cloud.load_balancer(&lb_name("gone")).unwrap()["id"].as_str().unwrap().to_owned();
    let path = format!("/v2.0/lbaas/loadbalancers/{id}?cascade=true");
    assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
    tokio::time::sleep(DRIFT).await;
    assert!(world.cloud.load_balancer(&lb_name("gone")).is_some());
    assert_eq!(
        world.cloud.load_balancer(&lb_name("stays")).map(|one| one["id"].clone()),
        stays.map(|one| one["id"].clone())
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_again_and_again_is_reported() {
    let world = serving().await;
    fail_batches(&world, 3);
    world.add_node("node-3", "v1.36.0");
    world
        .until_warned("web", "SyncLoadBalancerFailed: Error syncing load balancer: Octavia failed again")
        .await;
    assert!(has_failed(&world));
    world.until("it is put right", |world| !has_failed(world)).await;
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_does_not_wait_for_the_pause_between_repairs() {
    let world = serving().await;
    fail_batches(&world, 2);
    world.add_node("node-3", "v1.36.0");
    world.until_warned("web", "Octavia failed again").await;
    assert!(has_failed(&world));
    let start = Instant::now();
    world.kube.delete("nodes", "", "node-1").unwrap();
    let is_right = |world: &World| !has_failed(world) && member_names(world) == ["node-2", "node-3"];
    world.until("all is right", is_right).await;
    // The second repair has to rest for ten seconds.
    assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn each_of_the_nodes_that_join_one_after_another_is_one_batch() {
    let world = serving().await;
    for number in 3..9 {
        world.add_node(&format!("node-{number}"), "v1.36.0");
        tokio::time::sleep(MADE).await;
    }
    tokio::time::sleep(CALM).await;
    assert_eq!(world.take_cloud_writes(), [BATCH; 6]);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_replaced_are_one_batch_for_each_port() {
    let ports = json!([
        {"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "https", "port": 443, "protocol": "TCP"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    ]);
    let world = World::serving(&service("web", json!({"spec": {"ports": ports}}))).await;
    world.add_node("node-3", "v1.36.0");
    for node in ["node-1", "node-2"] {
        world.kube.delete("nodes", "", node).unwrap();
    }
    tokio::time::sleep(MADE + CALM).await;
    assert_eq!(world.take_cloud_writes(), [BATCH; 3]);
    assert_eq!(member_names(&world), ["node-3"; 3]);
}

#[tokio::test(start_paused = true)]
async fn members_that_are_not_those_that_were_sent_are_put_right() {
    let world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    let stranger = json!({"address": "10.0.0.77", "protocol_port": 30080, "name": "stranger"});
    edit(&world, &format!("pools/{}/members", only_pool(&world)), &json!({"members": [stranger]}));
    tokio::time::sleep(DRIFT).await;
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_somebody_deleted_after_a_batch_is_recreated() {
    let world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    let path = format!("/v2.0/lbaas/pools/{}", only_pool(&world));
    assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
    world.cloud.settle();
    tokio::time::sleep(DRIFT).await;
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_is_a_failure_after_which_all_is_put_right() {
    let world = serving().await;
    fail_batches(&world, 1);
    let read = Fault::new().path("/loadbalancers/[^/]+/status$");
    world.cloud.faults().add(read.answer(503, json!({"faultstring": "down"})).after(1).times(3));
    world.add_node("node-3", "v1.36.0");
    world.until_warned("web", "SyncLoadBalancerFailed").await;
    assert!(has_failed(&world));
    world.until("it is put right", |world| !has_failed(world)).await;
}

/// Nobody has seen the result of the changes in between.
#[tokio::test(start_paused = true)]
async fn the_weight_of_a_member_survives_several_changes_of_nodes() {
    let world = serving().await;
    let pool = only_pool(&world);
    let member = world.cloud.members(&pool).into_iter().find(|member| member["name"] == "node-1").unwrap();
    edit(&world, &format!("pools/{pool}/members/{}", id(&member)), &json!({"member": {"weight": 5}}));
    tokio::time::sleep(DRIFT).await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE / 2).await;
    world.kube.delete("nodes", "", "node-3").unwrap();
    tokio::time::sleep(MADE / 2).await;
    world.add_node("node-4", "v1.36.0");
    tokio::time::sleep(CALM).await;
    let members = world.cloud.members(&pool);
    let weight =
        |name: &str| members.iter().find(|member| member["name"] == name).map(|one| one["weight"].clone());
    assert_eq!(["node-1", "node-2", "node-4"].map(weight), [Some(json!(5)), Some(json!(1)), Some(json!(1))]);
    assert_eq!(members.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_found_within_minutes_although_nodes_never_cease_to_change() {
    let world = serving().await;
    fail_batches(&world, 1000);
    let start = Instant::now();
    for number in 0.. {
        world.add_node(&format!("another-{number}"), "v1.36.0");
        tokio::time::sleep(Duration::from_secs(10)).await;
        if world.warnings("web").iter().any(|warning| warning.contains(SENT_AGAIN)) {
            break;
        }
    }
    let found = start.elapsed();
    assert!(found < Duration::from_secs(330), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_finds_what_failed_before() {
    let mut world = serving().await;
    fail_batches(&world, 1);
    let read = Fault::new().path("/loadbalancers/[^/]+/status$");
    world.cloud.faults().add(read.answer(503, json!({"faultstring": "down"})).after(1).times(100));
    world.add_node("node-3", "v1.36.0");
    world.until("it has failed", has_failed).await;
    world.cloud.faults().clear();
    world.restart().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(!has_failed(&world));
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
}

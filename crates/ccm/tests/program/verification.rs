//! Members that a change of nodes sent are read when it has become calm: half a minute after the last batch.

use std::collections::BTreeMap;
use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Fault, OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Call, PROXY, Side, World, lb_name, service};

/// How members are read where the status tree shows them, and where it is not to be had.
const READ: &str = "GET loadbalancers/ID/status";
const READ_MEMBERS: &str = "GET pools/ID/members";
/// How the Event begins about what failed inside Octavia.
const SENT_AGAIN: &str = "LoadBalancerChildFailed: Octavia failed to apply the last change of member";
/// A change of nodes is made by then, and no members have been read.
const MADE: Duration = Duration::from_secs(20);
/// They have been read by then, random part included.
const CALM: Duration = Duration::from_secs(40);
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

/// Calls to OpenStack by name, without the rounds of the poller.
fn counts(calls: &[Call]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for call in calls.iter().filter(|call| call.side == Side::OpenStack && call.name != "GET loadbalancers") {
        *counts.entry(call.name.as_str()).or_default() += 1;
    }
    counts
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
    assert!(!counts(&world.take_calls()).contains_key(READ));
    tokio::time::sleep(CALM).await;
    let calls = world.take_calls();
    assert_eq!(counts(&calls), BTreeMap::from([(READ, 1)]));
    let writes: Vec<_> = calls.iter().filter(|call| call.write).map(|call| call.name.as_str()).collect();
    assert_eq!(writes, ["PATCH services/NAME/status"], "the digest");
    assert_eq!((without_digest(world.service("web")), world.events("web")), (state, events));
}

/// What was verified after a change of nodes need not be read by the next start, nor by the look for drift.
#[tokio::test(start_paused = true)]
async fn members_that_were_verified_are_read_neither_by_a_restart_nor_by_the_look_for_drift() {
    let mut world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE + CALM).await;
    world.take_calls();
    let is_list = |name: &&str| ["GET floatingips", "GET security-groups"].contains(name);
    let reads = |calls: &[Call]| counts(calls).into_keys().filter(|name| !is_list(name)).collect::<String>();
    tokio::time::sleep(DRIFT).await;
    assert_eq!(reads(&world.take_calls()), "", "the look for drift");
    world.restart().await;
    world.quiet().await;
    assert_eq!(reads(&world.take_calls()), "GET /", "the restart");
}

/// A batch moves `updated_at`, as the change of somebody else does that came before it. That is found all the same.
#[rstest]
#[case::by_a_restart(true)]
#[case::by_the_look_for_drift(false)]
#[tokio::test(start_paused = true)]
async fn a_change_of_nodes_does_not_cover_up_what_somebody_else_changed_before(#[case] restarts: bool) {
    let mut world = serving().await;
    let listener = world.cloud.listeners()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v2.0/lbaas/listeners/{listener}");
    let change = json!({"listener": {"allowed_cidrs": ["192.0.2.0/24"]}});
    assert_eq!(world.cloud.user().put("load-balancer", &path, &change).0, 200);
    world.cloud.settle();
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE + CALM).await;
    let is_changed = |world: &World| world.cloud.listeners()[0]["allowed_cidrs"] == json!(["192.0.2.0/24"]);
    assert!(is_changed(&world), "nobody has looked at it");
    if restarts {
        world.restart().await;
        world.quiet().await;
    } else {
        tokio::time::sleep(DRIFT).await;
    }
    assert!(!is_changed(&world));
}

#[tokio::test(start_paused = true)]
async fn a_failed_batch_is_sent_again_when_it_is_calm() {
    let world = serving().await;
    fail_batches(&world, 1);
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    assert!(has_failed(&world));
    tokio::time::sleep(CALM).await;
    assert!(!has_failed(&world));
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"; 2]);
    let warnings = world.warnings("web");
    assert!(warnings.iter().all(|warning| warning.contains(SENT_AGAIN)), "{warnings:?}");
    assert_eq!(warnings.len(), 3, "one for each member: {warnings:?}");
}

/// A cloud whose policy, or whose Octavia, knows of no status tree.
#[rstest]
#[case::by_policy(403, json!({"faultstring": "Policy does not allow this request to be performed."}))]
// As Octavia 19 answers for a path that it does not know.
#[case::of_another_octavia(404, json!({"code": 404, "title": "Not Found", "description": ""}))]
#[case::of_a_driver(501, json!({"faultstring": "no"}))]
#[tokio::test(start_paused = true)]
async fn where_no_status_tree_is_to_be_had_children_are_read_one_by_one(
    #[case] status: u16,
    #[case] body: Value,
) {
    let world = World::started().await;
    let refusal = Fault::new().path("/loadbalancers/[^/]+/status$").answer(status, body);
    let refused = world.cloud.faults().add(refusal);
    world.create(&service("web", json!({"metadata": {"annotations": {PROXY: "v2"}}})));
    world.until_published("web").await;
    world.quiet_unplanned().await;
    assert_eq!(world.cloud.faults().matched(refused), 1);
    let calls = world.take_calls();
    assert_eq!(counts(&calls).get(READ_MEMBERS), Some(&1), "{calls:?}");
    fail_batches(&world, 1);
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE + CALM).await;
    assert!(!has_failed(&world));
    assert_eq!(world.cloud.faults().matched(refused), 1, "it is asked for again an hour later");
}

/// A load balancer that is gone says nothing about the status trees of others: those of the other Service are asked for at once.
#[tokio::test(start_paused = true)]
async fn one_that_was_deleted_meanwhile_takes_no_status_tree_from_the_others() {
    let world = World::started().await;
    for name in ["gone", "stays"] {
        world.serve(&service(name, json!({}))).await;
    }
    world.take_calls();
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    let id = world.cloud.load_balancer(&lb_name("gone")).unwrap()["id"].as_str().unwrap().to_owned();
    let path = format!("/v2.0/lbaas/loadbalancers/{id}?cascade=true");
    assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
    tokio::time::sleep(CALM).await;
    let calls = world.take_calls();
    let counts = counts(&calls);
    assert!(counts.get(READ) >= Some(&3), "of both, and of the new one: {counts:?}");
    assert_eq!(counts.get(READ_MEMBERS), None, "{counts:?}");
    assert!(world.cloud.load_balancer(&lb_name("gone")).is_some(), "it was made again");
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
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_replaced_one_after_another_cost_one_read() {
    let world = serving().await;
    for number in 3..9 {
        world.add_node(&format!("node-{number}"), "v1.36.0");
        tokio::time::sleep(MADE).await;
    }
    tokio::time::sleep(CALM).await;
    let calls = world.take_calls();
    let counts = counts(&calls);
    assert_eq!((counts.get(READ), counts.get("PUT pools/ID/members")), (Some(&1), Some(&6)), "{counts:?}");
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
    assert!(found > Duration::from_secs(290) && found < Duration::from_secs(330), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_before_the_read_looks_at_everything() {
    let mut world = serving().await;
    fail_batches(&world, 1);
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    assert!(has_failed(&world));
    world.restart().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!has_failed(&world));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_takes_the_read_along() {
    let world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    world.delete("web");
    world.until_gone("web").await;
    world.take_calls();
    tokio::time::sleep(CALM).await;
    assert_eq!(counts(&world.take_calls()), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn security_groups_are_listed_once_for_all_whose_members_are_read() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cloud_conf = "manage-security-groups = true\n".to_owned();
    world.start().await;
    for number in 0..5 {
        world.serve(&service(&format!("web-{number}"), json!({}))).await;
    }
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    world.take_calls();
    tokio::time::sleep(CALM).await;
    let expected = BTreeMap::from([("GET ports", 1), ("GET security-groups", 1), (READ, 5)]);
    assert_eq!(counts(&world.take_calls()), expected);
}

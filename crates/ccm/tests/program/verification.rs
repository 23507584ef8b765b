//! Members that a change of nodes sent are read when it has become calm: half a minute after the last batch.

use std::collections::BTreeMap;
use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Fault, OperationKind, WorkerFault};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::contract::setup::{configured, id, member_names, put};
use crate::support::{ANNOTATION, Call, PROXY, Side, World, lb_name, service};

/// How members are read where the status tree shows them, and where it is not to be had.
const READ: &str = "GET loadbalancers/ID/status";
const READ_MEMBERS: &str = "GET pools/ID/members";
const BATCH: &str = "PUT pools/ID/members";
/// The list before a batch that shows whether somebody else has changed the load balancer; once for all Services.
const LOOK: &str = "GET loadbalancers";
/// How the Event begins about what failed inside Octavia.
const SENT_AGAIN: &str = "LoadBalancerChildFailed: Octavia failed to apply the last change of member";
/// A change of nodes is made by then, and no members have been read.
const MADE: Duration = Duration::from_secs(20);
/// They have been read by then: it takes up to seven seconds until somebody looks for the end of the batch, and then half a minute, random part
/// included.
const CALM: Duration = Duration::from_secs(46);
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
    for call in calls.iter().filter(|call| call.side == Side::OpenStack && !call.poll) {
        *counts.entry(call.name.as_str()).or_default() += 1;
    }
    counts
}

/// Names of the calls to OpenStack since the last time, without the rounds of the poller.
fn cloud_calls(world: &World) -> Vec<String> {
    let calls = world.take_calls().into_iter();
    calls.filter(|call| call.side == Side::OpenStack && !call.poll).map(|call| call.name).collect()
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
    assert!(!counts(&world.take_calls()).contains_key(READ));
    tokio::time::sleep(CALM).await;
    let calls = world.take_calls();
    assert_eq!(counts(&calls), BTreeMap::from([(READ, 1)]));
    let writes: Vec<_> = calls.iter().filter(|call| call.write).map(|call| call.name.as_str()).collect();
    assert_eq!(writes, ["PATCH services/NAME/status"], "the digest");
    assert_eq!((without_digest(world.service("web")), world.events("web")), (state, events));
}

/// What was verified after a change of nodes need not be read by the next start, nor by the check for drift.
#[tokio::test(start_paused = true)]
async fn members_that_were_verified_are_read_neither_by_a_restart_nor_by_the_look_for_drift() {
    let mut world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE + CALM).await;
    world.take_calls();
    let is_list = |name: &&str| ["GET floatingips", LOOK, "GET security-groups"].contains(name);
    let reads = |calls: &[Call]| counts(calls).into_keys().filter(|name| !is_list(name)).collect::<String>();
    tokio::time::sleep(DRIFT).await;
    assert_eq!(reads(&world.take_calls()), "", "the check for drift");
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
    let path = format!("listeners/{}", id(&world.cloud.listeners()[0]));
    edit(&world, &path, &json!({"listener": {"allowed_cidrs": ["192.0.2.0/24"]}}));
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
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_does_not_wait_for_the_pause_between_repairs() {
    let world = serving().await;
    fail_batches(&world, 2);
    world.add_node("node-3", "v1.36.0");
    world.until_warned("web", "Octavia failed again").await;
    // The second repair has to rest for ten seconds.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(has_failed(&world));
    world.kube.delete("nodes", "", "node-1").unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!has_failed(&world));
    assert_eq!(member_names(&world), ["node-2", "node-3"]);
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
    assert_eq!(counts, BTreeMap::from([(LOOK, 6), (BATCH, 6), (READ, 1)]));
}

/// One status tree tells of all changes of all pools.
#[tokio::test(start_paused = true)]
async fn nodes_that_are_replaced_and_go_cost_one_read_for_all_ports() {
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
    tokio::time::sleep(MADE).await;
    assert_eq!(cloud_calls(&world), [LOOK, BATCH, BATCH, BATCH]);
    assert_eq!(member_names(&world), ["node-3"; 3]);
    world.kube.delete("nodes", "", "node-3").unwrap();
    tokio::time::sleep(MADE).await;
    assert_eq!(cloud_calls(&world), [LOOK, BATCH, BATCH, BATCH]);
    assert_eq!(member_names(&world), [""; 0]);
    tokio::time::sleep(CALM).await;
    assert_eq!(cloud_calls(&world), [READ]);
}

/// Somebody who edits the status of the Service has it reconciled.
#[tokio::test(start_paused = true)]
async fn a_reconciliation_for_another_reason_does_not_bring_the_read_forward() {
    let world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    world.publish("web", "192.0.2.1");
    tokio::time::sleep(MADE / 4).await;
    assert_eq!(world.ingress("web"), ["198.19.0.11(Proxy)"]);
    assert_eq!(cloud_calls(&world), [LOOK, BATCH]);
    tokio::time::sleep(CALM - MADE - MADE / 4).await;
    assert_eq!(cloud_calls(&world), [READ], "nor does it put it off");
}

#[tokio::test(start_paused = true)]
async fn a_look_for_drift_in_between_spares_the_read() {
    let world = configured(|_| "drift-check-interval = 15s\n".to_owned()).await;
    world.create(&service("web", json!({})));
    world.until_published("web").await;
    tokio::time::sleep(CALM).await;
    fail_batches(&world, 1);
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE / 4).await;
    assert!(has_failed(&world));
    tokio::time::sleep(MADE + MADE / 2).await;
    assert!(!has_failed(&world));
    world.take_calls();
    tokio::time::sleep(2 * CALM).await;
    assert_eq!(counts(&world.take_calls()).get(READ), None);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_is_read_at_once_and_not_again() {
    let world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    world.take_calls();
    world.annotate("web", &format!("{ANNOTATION}connection-limit"), Some("100"));
    tokio::time::sleep(MADE / 4).await;
    assert_eq!(counts(&world.take_calls()).get(READ), Some(&1));
    assert_eq!(world.cloud.listeners()[0]["connection_limit"], 100);
    tokio::time::sleep(2 * CALM).await;
    assert_eq!(cloud_calls(&world), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn members_that_are_not_those_that_were_sent_are_put_right() {
    let world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    let stranger = json!({"address": "10.0.0.77", "protocol_port": 30080, "name": "stranger"});
    edit(&world, &format!("pools/{}/members", only_pool(&world)), &json!({"members": [stranger]}));
    world.take_calls();
    tokio::time::sleep(2 * CALM).await;
    let calls = [READ, READ_MEMBERS, LOOK, BATCH, READ];
    assert_eq!(cloud_calls(&world), calls, "the correction is verified too");
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_gone_when_its_members_are_read_is_recreated() {
    let world = serving().await;
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    let path = format!("/v2.0/lbaas/pools/{}", only_pool(&world));
    assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
    world.cloud.settle();
    tokio::time::sleep(CALM).await;
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_fails_is_a_failure_after_which_everything_is_looked_at() {
    let world = serving().await;
    fail_batches(&world, 1);
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    let read = Fault::new().path("/loadbalancers/[^/]+/status$");
    world.cloud.faults().add(read.answer(503, json!({"faultstring": "down"})).times(3));
    world.until_warned("web", "SyncLoadBalancerFailed").await;
    assert!(has_failed(&world));
    world.take_calls();
    world.until("it is put right", |world| !has_failed(world)).await;
    let calls = world.take_calls();
    assert_eq!(counts(&calls).get("GET listeners"), Some(&1), "{calls:?}");
    tokio::time::sleep(2 * CALM).await;
    assert_eq!(cloud_calls(&world).iter().filter(|name| *name != READ).count(), 0);
}

/// Nobody has seen the result of the changes in between.
#[tokio::test(start_paused = true)]
async fn the_weight_of_a_member_survives_several_changes_of_nodes() {
    let world = serving().await;
    let pool = only_pool(&world);
    let member = world.cloud.members(&pool).into_iter().find(|member| member["name"] == "node-1").unwrap();
    edit(&world, &format!("pools/{pool}/members/{}", id(&member)), &json!({"member": {"weight": 5}}));
    tokio::time::sleep(DRIFT).await;
    world.take_calls();
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE / 2).await;
    world.kube.delete("nodes", "", "node-3").unwrap();
    tokio::time::sleep(MADE / 2).await;
    world.add_node("node-4", "v1.36.0");
    tokio::time::sleep(CALM).await;
    let calls = [LOOK, BATCH, LOOK, BATCH, LOOK, BATCH, READ];
    assert_eq!(cloud_calls(&world), calls, "nobody reads the members");
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
    assert!(found > Duration::from_secs(290) && found < Duration::from_secs(330), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_before_the_read_looks_at_everything() {
    let mut world = serving().await;
    fail_batches(&world, 1);
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(MADE).await;
    assert!(has_failed(&world));
    world.take_calls();
    world.restart().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!has_failed(&world));
    let calls = world.take_calls();
    assert_eq!(counts(&calls).get("GET listeners"), Some(&1), "{calls:?}");
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
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

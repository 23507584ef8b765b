//! Members that were sent and taken for done are read when it has become calm.

use std::time::Duration;

use openstack_ccm_core::failure::FailureClass;
use openstack_ccm_core::service::Service;
use openstack_ccm_openstack_sim::OperationKind;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::cloud::{Cloud, NODE_3};
use crate::cluster::{Cluster, NAME, annotate, node, served, web};
use crate::line::{Exchange, Fault};

/// The status tree, which shows the members of all pools.
const READ: &str = "GET loadbalancers/ID/status";
const MEMBERS: &str = "GET pools/ID/members";
const BATCH: &str = "PUT pools/ID/members";
/// The list before a batch that shows whether somebody else has changed the load balancer; once for all Services.
const LOOK: &str = "GET loadbalancers";

/// Calls since the last time, without the rounds of the poller.
fn calls(cloud: &Cloud) -> Vec<String> {
    let log = cloud.line.take_log();
    log.iter().filter(|call| !call.target.contains("loadbalancers?id=")).map(Exchange::name).collect()
}

fn is_well(cloud: &Cloud) -> bool {
    cloud.members(NAME).iter().all(|member| member["provisioning_status"] == "ACTIVE")
}

/// A node joins, or leaves where it was there.
async fn change_nodes(cluster: &mut Cluster, service: &mut Service) {
    match cluster.nodes.len() {
        2 => cluster.nodes.push(node("n3", NODE_3, None)),
        _ => cluster.nodes.truncate(2),
    }
    cluster.follow(service).await.expect("served");
}

#[tokio::test(start_paused = true)]
async fn several_changes_of_nodes_cost_one_read() {
    let (cloud, mut cluster, mut service) = served().await;
    for _ in 0..10 {
        change_nodes(&mut cluster, &mut service).await;
        sleep(Duration::from_secs(20)).await;
    }
    // The first batch follows what was seen a moment ago.
    let later = [LOOK, BATCH].repeat(9);
    assert_eq!(calls(&cloud), [vec![BATCH], later].concat());
    cluster.follow_to_the_end(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), [READ]);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_change_without_an_end_hide_no_failure_for_longer_than_five_minutes() {
    let (cloud, mut cluster, mut service) = served().await;
    let start = Instant::now();
    while !calls(&cloud).iter().any(|call| call == READ) {
        assert!(start.elapsed() < Duration::from_secs(320), "{:?}", start.elapsed());
        change_nodes(&mut cluster, &mut service).await;
        sleep(Duration::from_secs(10)).await;
    }
    assert!(start.elapsed() > Duration::from_secs(300), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_pass_for_another_reason_does_not_bring_the_read_forward() {
    let (cloud, mut cluster, mut service) = served().await;
    change_nodes(&mut cluster, &mut service).await;
    sleep(Duration::from_secs(10)).await;
    let ready = cluster.follow(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), [BATCH]);
    assert!(ready.requeue_after.is_some_and(|left| left <= Duration::from_secs(20)), "{ready:?}");
}

#[tokio::test(start_paused = true)]
async fn a_look_for_drift_in_between_spares_the_read() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.fail(OperationKind::MemberBatch, 1);
    change_nodes(&mut cluster, &mut service).await;
    let ready = cluster.settle(&mut service).await.expect("served");
    assert!(is_well(&cloud));
    assert_eq!(ready.requeue_after, None);
    cloud.line.take_log();
    sleep(Duration::from_secs(60)).await;
    cluster.follow(&mut service).await.expect("served");
    assert!(calls(&cloud).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_changed_service_is_looked_at_whatever_was_to_be_read() {
    let (cloud, mut cluster, mut service) = served().await;
    change_nodes(&mut cluster, &mut service).await;
    annotate(&mut service, "connection-limit", "100");
    cloud.line.take_log();
    let ready = cluster.follow(&mut service).await.expect("served");
    let calls = calls(&cloud);
    assert_eq!(calls.iter().filter(|call| *call == READ).count(), 1, "{calls:?}");
    assert_eq!(ready.requeue_after, None);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_leaves_nothing_to_be_read() {
    let (cloud, mut cluster, mut service) = served().await;
    change_nodes(&mut cluster, &mut service).await;
    cluster.release(&mut service).await.expect("gone");
    let mut again = web();
    let ready = cluster.follow(&mut again).await.expect("served");
    assert_eq!(ready.requeue_after, None);
    assert!(is_well(&cloud));
}

#[tokio::test(start_paused = true)]
async fn a_restart_before_the_read_looks_at_everything() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.fail(OperationKind::MemberBatch, 1);
    change_nodes(&mut cluster, &mut service).await;
    cluster.restart();
    cloud.line.take_log();
    cluster.follow(&mut service).await.expect("served");
    let calls = calls(&cloud);
    assert!(calls.iter().any(|call| call == "GET listeners"), "{calls:?}");
    assert!(is_well(&cloud));
    assert_eq!(cloud.member_names(NAME), ["n1", "n2", "n3"]);
}

#[tokio::test(start_paused = true)]
async fn members_that_are_not_those_that_were_sent_are_put_right() {
    let (cloud, mut cluster, mut service) = served().await;
    change_nodes(&mut cluster, &mut service).await;
    let pool = cloud.pools()[0]["id"].as_str().expect("an id").to_owned();
    let stranger = json!({"address": "10.0.0.77", "protocol_port": 30080, "name": "stranger"});
    cloud.edit(&format!("pools/{pool}/members"), &json!({"members": [stranger]}));
    cloud.line.take_log();
    cluster.follow_to_the_end(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), [READ, MEMBERS, LOOK, BATCH, READ], "the correction is verified too");
    assert_eq!(cloud.member_names(NAME), ["n1", "n2", "n3"]);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_gone_when_its_members_are_read_is_recreated() {
    let (cloud, mut cluster, mut service) = served().await;
    change_nodes(&mut cluster, &mut service).await;
    let pool = cloud.pools()[0]["id"].as_str().expect("an id").to_owned();
    cloud.remove(&format!("pools/{pool}"));
    cluster.follow_to_the_end(&mut service).await.expect("served");
    assert_eq!(cloud.member_names(NAME), ["n1", "n2", "n3"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_fails_is_a_failure_after_which_everything_is_looked_at() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.fail(OperationKind::MemberBatch, 1);
    change_nodes(&mut cluster, &mut service).await;
    cloud.line.fail(Fault::answer(READ, 503, "down").times(3));
    let failure = cluster.follow_to_the_end(&mut service).await.expect_err("down");
    assert_eq!(failure.class, FailureClass::Unavailable);
    let ready = cluster.follow(&mut service).await.expect("served");
    assert_eq!(ready.requeue_after, None);
    assert!(is_well(&cloud));
}

#[tokio::test(start_paused = true)]
async fn a_weight_survives_changes_that_nobody_has_seen_the_result_of() {
    let (cloud, mut cluster, mut service) = served().await;
    let (pool, member) = (cloud.pools()[0]["id"].clone(), cloud.members(NAME)[0]["id"].clone());
    let path = format!("pools/{}/members/{}", pool.as_str().expect("an id"), member.as_str().expect("an id"));
    cloud.edit(&path, &json!({"member": {"weight": 5}}));
    cluster.settle(&mut service).await.expect("served");
    cloud.line.take_log();
    for _ in 0..3 {
        change_nodes(&mut cluster, &mut service).await;
    }
    cluster.follow_to_the_end(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), [LOOK, BATCH, BATCH, BATCH, READ], "one look tells that it was changed");
    assert_eq!(cloud.members(NAME)[0]["weight"], 5);
    assert_eq!(cloud.member_names(NAME), ["n1", "n2", "n3"]);
}

//! What is trusted without looking, and what is not.

use openstack_ccm_core::failure::FailureClass;
use openstack_ccm_openstack_sim::OperationKind;
use serde_json::json;

use crate::cloud::{Cloud, NODE_3};
use crate::cluster::{NAME, annotate, node, served};
use crate::line::Exchange;

fn names(cloud: &Cloud) -> Vec<String> {
    cloud.line.take_log().iter().map(Exchange::name).collect()
}

fn the_id(object: &serde_json::Value) -> String {
    object["id"].as_str().expect("an id").to_owned()
}

#[tokio::test(start_paused = true)]
async fn what_was_edited_by_hand_is_left_by_a_node_change_and_put_right_by_the_next_look() {
    let (cloud, mut cluster, mut service) = served().await;
    let path = format!("listeners/{}", the_id(&cloud.listeners()[0]));
    cloud.edit(&path, &json!({"listener": {"connection_limit": 7}}));
    cluster.nodes.push(node("n3", NODE_3, None));
    cluster.follow(&mut service).await.expect("served");
    assert_eq!(cloud.listeners()[0]["connection_limit"], 7);
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.listeners()[0]["connection_limit"], -1);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_somebody_deleted_is_noticed_by_a_node_change() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.remove(&format!("pools/{}", the_id(&cloud.pools()[0])));
    cluster.nodes.push(node("n3", NODE_3, None));
    cluster.follow(&mut service).await.expect("served");
    assert_eq!(cloud.member_names(NAME), ["n1", "n2", "n3"]);
    assert_eq!(cloud.listeners()[0]["default_pool_id"], cloud.pools()[0]["id"]);
}

#[tokio::test(start_paused = true)]
async fn the_weight_that_an_administrator_gave_a_member_survives_node_changes() {
    let (cloud, mut cluster, mut service) = served().await;
    let (pool, member) = (the_id(&cloud.pools()[0]), cloud.members(NAME)[0].clone());
    let path = format!("pools/{pool}/members/{}", the_id(&member));
    cloud.edit(&path, &json!({"member": {"weight": 5}}));
    cluster.settle(&mut service).await.expect("served");
    cluster.nodes.push(node("n3", NODE_3, None));
    cluster.follow(&mut service).await.expect("served");
    let weights: Vec<_> = cloud.members(NAME).iter().map(|member| member["weight"].clone()).collect();
    assert_eq!(weights.iter().filter(|weight| **weight == json!(5)).count(), 1, "{weights:?}");
    assert_eq!(weights.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_service_is_planned_from_what_is_known_where_nothing_else_changed() {
    let (cloud, mut cluster, mut service) = served().await;
    annotate(&mut service, "connection-limit", "100");
    cluster.follow(&mut service).await.expect("served");
    let calls = names(&cloud);
    let count = |wanted: &str| calls.iter().filter(|name| *name == wanted).count();
    assert_eq!((count("GET loadbalancers/ID"), count("GET listeners")), (1, 0), "{calls:?}");
    assert_eq!(cloud.listeners()[0]["connection_limit"], 100);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_failed_inside_octavia_is_noticed_without_a_look() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.fail(OperationKind::MemberBatch, 1);
    cluster.nodes.push(node("n3", NODE_3, None));
    let ready = cluster.follow(&mut service).await.expect("served, as far as one can tell");
    assert!(ready.requeue_after.is_some());
    assert!(cloud.members(NAME).iter().all(|member| member["provisioning_status"] == "ERROR"));
    cluster.follow_to_the_end(&mut service).await.expect("served");
    assert!(cloud.members(NAME).iter().all(|member| member["provisioning_status"] == "ACTIVE"));
    assert_eq!(cloud.member_names(NAME), ["n1", "n2", "n3"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_does_not_wait_for_the_pause_between_repairs() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.fail(OperationKind::MemberBatch, 2);
    cluster.nodes.push(node("n3", NODE_3, None));
    let failure = cluster.follow_to_the_end(&mut service).await.expect_err("the second repair has to rest");
    assert_eq!(failure.class, FailureClass::Unavailable);
    cluster.nodes.remove(0);
    cluster.follow(&mut service).await.expect("served at once");
    assert_eq!(cloud.member_names(NAME), ["n2", "n3"]);
    assert!(cloud.members(NAME).iter().all(|member| member["provisioning_status"] == "ACTIVE"));
}

#[tokio::test(start_paused = true)]
async fn members_that_were_replaced_while_nobody_watched_are_noticed_after_a_restart() {
    let (cloud, mut cluster, mut service) = served().await;
    let path = format!("pools/{}/members", the_id(&cloud.pools()[0]));
    let stranger = json!({"address": "10.0.0.77", "protocol_port": 30080, "name": "stranger"});
    cloud.edit(
        &path,
        &json!({"members": [stranger.clone(), {"address": "10.0.0.78", "protocol_port": 30080}]}),
    );
    cluster.restart();
    cluster.follow(&mut service).await.expect("served");
    assert_eq!(cloud.member_names(NAME), ["n1", "n2"]);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_changed_while_nobody_watched_are_followed_after_a_restart() {
    let (cloud, mut cluster, mut service) = served().await;
    cluster.nodes.remove(0);
    cluster.nodes.push(node("n3", NODE_3, None));
    cluster.restart();
    cluster.follow(&mut service).await.expect("served");
    assert_eq!(cloud.member_names(NAME), ["n2", "n3"]);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_was_taken_off_while_nobody_watched_is_noticed_after_a_restart() {
    let (cloud, mut cluster, mut service) = served().await;
    let id = the_id(&cloud.only_floating_ip());
    cloud.detach_floating_ip(&id);
    cluster.restart();
    cluster.follow(&mut service).await.expect("served");
    assert_eq!(cloud.only_floating_ip()["port_id"], json!(cloud.vip_port()));
}

//! Thousands of nodes that vanish at once: nothing is deleted by mistake.

use openstack_ccm_core::instance::Presence;
use openstack_ccm_core::instance::missing::MAX_DELETIONS_PER_ROUND;
use rstest::rstest;
use serde_json::json;

use crate::base::pass;
use crate::world::World;

/// So many nodes, of which the first `missing` are not ready and their machines missing.
async fn with(nodes: usize, missing: usize) -> World {
    let mut world = World::new();
    for number in 0..nodes {
        let name = format!("n{number}");
        world.create(&name, json!({}));
        if number < missing {
            world.set_ready(&name, "Unknown");
            world.cloud.set_presence(&name, Presence::Gone);
        }
    }
    world.start_lifecycle_controller().await;
    world
}

fn left(world: &World) -> usize {
    world.kube.list("nodes", "").unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn when_most_machines_are_missing_no_node_is_deleted_and_an_event_says_why() {
    let world = with(2000, 1500).await;
    pass(60).await;
    assert_eq!(left(&world), 2000);
    assert!(world.take_writes().is_empty());
    assert_eq!(world.metric("openstack_ccm_node_deletions_held"), "1500");
    let events = world.events("n0");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with("Warning NodeDeletionHeld: "), "{events:?}");
    assert!(events[0].contains("1500 of 2000") && events[0].contains("kubectl"), "{events:?}");
    let questions = world.cloud.questions();
    assert_eq!(questions[0], "presence 1500");
    assert!(questions.iter().skip(1).all(|question| question == "presence 2000"), "one list in each round");
}

#[tokio::test(start_paused = true)]
async fn when_the_machines_come_back_the_rest_is_deleted() {
    let world = with(20, 15).await;
    pass(60).await;
    assert_eq!(left(&world), 20);
    for number in 0..12 {
        world.cloud.set_presence(&format!("n{number}"), Presence::Exists);
    }
    pass(60).await;
    assert_eq!(left(&world), 17);
    assert_eq!(world.metric("openstack_ccm_node_deletions_held"), "0");
    assert_eq!(world.metric("openstack_ccm_node_deletions_total"), "3");
}

/// Credentials of another project: every machine is missing, also those of ready nodes.
#[tokio::test(start_paused = true)]
async fn a_cloud_without_any_machine_of_the_cluster_is_not_believed() {
    let world = with(2, 1).await;
    world.cloud.set_presence("n1", Presence::Gone);
    pass(600).await;
    assert_eq!(left(&world), 2);
    assert_eq!(world.metric("openstack_ccm_node_deletions_held"), "1");
}

/// A list that lacks a machine is not enough: the machine itself is asked for.
#[tokio::test(start_paused = true)]
async fn a_machine_that_only_the_list_lacks_is_not_gone() {
    let world = with(10, 2).await;
    world.cloud.set_presence("n0", Presence::Exists);
    world.cloud.hide_from_lists("n0");
    pass(600).await;
    assert!(!world.node("n0").is_null());
    assert!(world.node("n1").is_null());
}

#[tokio::test(start_paused = true)]
async fn many_nodes_are_deleted_a_few_at_a_time() {
    let world = with(100, 40).await;
    pass(6).await;
    assert_eq!(left(&world), 100 - MAX_DELETIONS_PER_ROUND);
    pass(60).await;
    assert_eq!(left(&world), 60);
}

/// Nodes of other providers neither vouch for the cloud nor count against it.
#[tokio::test(start_paused = true)]
async fn nodes_of_other_providers_do_not_count() {
    let world = with(10, 2).await;
    for number in 2..10 {
        world.cloud.set_presence(&format!("n{number}"), Presence::Foreign("aws".into()));
    }
    pass(600).await;
    assert_eq!(left(&world), 10, "of two machines none is left");
}

/// `Retry-After` of a front end in trouble may be anything; the machines are asked about again after two minutes.
#[rstest]
#[case::a_day(86_400)]
#[case::absurd(u64::MAX)]
#[tokio::test(start_paused = true)]
async fn no_wish_of_the_cloud_stops_the_check_of_nodes(#[case] seconds: u64) {
    let world = with(10, 2).await;
    world.cloud.ask_for_a_pause(seconds);
    pass(60).await;
    world.cloud.set_away(false);
    pass(180).await;
    assert_eq!(left(&world), 8);
}

/// An hour without the cloud costs no node, and nodes that really went are deleted afterwards.
#[tokio::test(start_paused = true)]
async fn an_outage_deletes_nothing_and_ends_by_itself() {
    let world = with(10, 2).await;
    world.cloud.set_away(true);
    pass(3600).await;
    assert_eq!(left(&world), 10);
    world.cloud.set_away(false);
    pass(60).await;
    assert_eq!(left(&world), 8);
}

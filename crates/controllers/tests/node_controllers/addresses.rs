//! The addresses of nodes over time.

use openstack_ccm_core::instance::Instance;
use rstest::rstest;
use serde_json::json;

use crate::base::pass;
use crate::cloud::{addresses, machine};
use crate::world::World;

fn status(text: &str) -> serde_json::Value {
    let entries = addresses(text).into_iter();
    let entries: Vec<_> =
        entries.map(|entry| json!({"type": entry.kind.as_str(), "address": entry.address})).collect();
    json!({"status": {"addresses": entries}})
}

/// One node with `before`, while the cloud says `cloud`; answers whether the node was written and its addresses.
async fn refreshed(before: &str, cloud: &str) -> (bool, String) {
    let mut world = World::new();
    world.cloud.found("n1", Instance { addresses: addresses(cloud), ..machine() });
    world.create("n1", status(before));
    world.start_node_controller().await;
    pass(10).await;
    (!world.take_writes().is_empty(), world.addresses("n1"))
}

/// Addresses are written when they differ in anything, the order included, and only then.
///
/// Framework: N20, better: the order counts, because the first address of a family is the node's.
/// Framework: N22, same.
/// Framework: N25, better: a change of the first of two addresses of one type is seen too.
#[rstest]
#[case::n20_same("InternalIP 10.0.0.1, Hostname h", "InternalIP 10.0.0.1, Hostname h", false)]
#[case::n20_other_value("InternalIP 10.0.0.1, Hostname h", "InternalIP 10.0.0.2, Hostname h", true)]
#[case::n20_one_fewer(
    "InternalIP 10.0.0.1, ExternalIP 203.0.113.9, Hostname h",
    "InternalIP 10.0.0.1, Hostname h",
    true
)]
#[case::n20_one_more(
    "InternalIP 10.0.0.1, Hostname h",
    "InternalIP 10.0.0.1, ExternalIP 203.0.113.9, Hostname h",
    true
)]
#[case::n20_types_swapped(
    "InternalIP 10.0.0.1, ExternalIP 203.0.113.9, Hostname h",
    "InternalIP 203.0.113.9, ExternalIP 10.0.0.1, Hostname h",
    true
)]
#[case::order(
    "InternalIP fd00::1, InternalIP 10.0.0.1, Hostname h",
    "InternalIP 10.0.0.1, InternalIP fd00::1, Hostname h",
    true
)]
#[case::n22_none("InternalIP 10.0.0.1, Hostname h", "", false)]
#[case::n25_second(
    "InternalIP 10.0.0.1, InternalIP fd00::1",
    "InternalIP 10.0.0.1, InternalIP fd00::2",
    true
)]
#[case::n25_first("InternalIP 10.0.0.1, InternalIP fd00::1", "InternalIP 10.0.0.2, InternalIP fd00::1", true)]
#[tokio::test(start_paused = true)]
async fn framework_n20_n22_n25_changed_addresses_are_written(
    #[case] before: &str,
    #[case] cloud: &str,
    #[case] written: bool,
) {
    let (was_written, now) = refreshed(before, cloud).await;
    assert_eq!(was_written, written);
    // A hostname of the kubelet stays where the cloud has none.
    let expected = if written { cloud } else { before };
    assert_eq!(now, expected);
}

/// The addresses of a node that still waits for its initialisation are not written by the periodic look.
///
/// Framework: N21, same.
#[tokio::test(start_paused = true)]
async fn framework_n21_a_tainted_node_is_not_refreshed() {
    let mut world = World::new();
    world.create_uninitialized("n1", json!({}));
    world.start_node_controller().await;
    pass(700).await;
    assert!(world.take_writes().is_empty());
    assert!(world.cloud.questions().iter().all(|question| question == "describe 1"));
}

/// Every five minutes the addresses of all nodes are compared with one question.
#[tokio::test(start_paused = true)]
async fn one_question_serves_all_nodes() {
    let mut world = World::new();
    for number in 0..50 {
        let name = format!("n{number}");
        world.cloud.found(&name, Instance { addresses: addresses("InternalIP 10.0.0.11"), ..machine() });
        world.create(&name, json!({}));
    }
    world.start_node_controller().await;
    pass(1).await;
    assert_eq!(world.cloud.questions(), ["describe 50"]);
    let moved = Instance { addresses: addresses("InternalIP 10.0.0.12"), ..machine() };
    world.cloud.found("n7", moved);
    pass(299).await;
    assert!(world.cloud.questions().is_empty());
    pass(2).await;
    assert_eq!(world.cloud.questions(), ["describe 50"]);
    assert_eq!(world.addresses("n7"), "InternalIP 10.0.0.12, Hostname n7");
    assert_eq!(world.take_writes(), ["PATCH /api/v1/nodes/n7/status"]);
}

/// An hour without the cloud changes no address, costs few calls, and ends by itself.
#[tokio::test(start_paused = true)]
async fn an_outage_changes_nothing_and_ends_by_itself() {
    let mut world = World::new();
    world.cloud.found("n1", Instance { addresses: addresses("InternalIP 10.0.0.12"), ..machine() });
    world.create("n1", json!({}));
    world.cloud.set_away(true);
    world.start_node_controller().await;
    pass(3600).await;
    assert_eq!(world.addresses("n1"), "InternalIP 10.0.0.11, Hostname n1");
    let questions = world.cloud.questions().len();
    assert!((10..60).contains(&questions), "{questions}");
    world.cloud.set_away(false);
    world.until("the address is written", |world| world.addresses("n1").contains("10.0.0.12")).await;
}

/// A wrong node IP leaves the addresses as they are and is reported.
#[tokio::test(start_paused = true)]
async fn a_wrong_node_ip_of_a_known_node_is_reported() {
    let mut world = World::new();
    world.cloud.found("n1", Instance { addresses: addresses("InternalIP 10.0.0.12"), ..machine() });
    let annotations = json!({"alpha.kubernetes.io/provided-node-ip": "10.0.0.77"});
    world.create("n1", json!({"metadata": {"annotations": annotations}}));
    world.start_node_controller().await;
    pass(10).await;
    assert!(world.take_writes().is_empty());
    let events = world.events("n1");
    assert!(events[0].contains("NodeAddressesNotUpdated") && events[0].contains("10.0.0.77"), "{events:?}");
}

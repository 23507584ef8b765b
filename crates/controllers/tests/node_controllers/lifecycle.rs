//! Nodes that are shut down or gone.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::Presence;
use rstest::rstest;
use serde_json::json;

use crate::base::pass;
use crate::world::{SHUTDOWN, World, taint};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Node n1 in this condition and n2 ready, while the cloud says this of n1; the controller is at work.
async fn with(condition: Option<&str>, presence: Option<Presence>) -> World {
    let mut world = World::new();
    world.create("n1", json!({}));
    world.create("n2", json!({}));
    match condition {
        Some(status) => world.set_ready("n1", status),
        None => {
            world.kube.patch_status("nodes", "", "n1", &json!({"status": {"conditions": null}})).unwrap();
        }
    }
    if let Some(presence) = presence {
        world.cloud.set_presence("n1", presence);
    }
    world.start_lifecycle_controller().await;
    world
}

/// A node whose machine is gone is deleted, whether its kubelet says that it is not ready, says nothing more, or never
/// said anything.
///
/// Framework: L1, better: the cloud has to say so twice, so that one wrong answer deletes nothing.
/// Framework: L2, better: as L1.
/// Framework: L3, better: as L1.
/// Framework: L10, better: as L1.
#[rstest]
#[case::l1_not_ready(Some("False"))]
#[case::l2_unknown(Some("Unknown"))]
#[case::l3_missing(None)]
#[case::l10_shut_down_before(Some("False"))]
#[tokio::test(start_paused = true)]
async fn framework_l1_l2_l3_l10_a_node_without_machine_is_deleted(#[case] condition: Option<&str>) {
    let world = with(condition, Some(Presence::Gone)).await;
    pass(4).await;
    assert!(!world.node("n1").is_null(), "one answer is not enough");
    pass(5).await;
    assert!(world.node("n1").is_null());
    assert!(!world.node("n2").is_null());
    assert_eq!(
        world.events("n1"),
        ["Normal DeletingNode: Deleting node n1 because it does not exist in the cloud provider"]
    );
    assert_eq!(world.metric("openstack_ccm_node_deletions_total"), "1");
}

/// A node stays while the cloud cannot be asked, or does not know, or has its machine.
///
/// Framework: L4, same.
/// Framework: L5, same.
/// Framework: L8, same.
/// Framework: L12, same.
#[rstest]
#[case::l5_exists(Presence::Exists)]
#[case::l12_unknown(Presence::Unknown(Failure::user_input("several servers")))]
#[case::foreign(Presence::Foreign("aws".into()))]
#[tokio::test(start_paused = true)]
async fn framework_l4_l5_l8_l12_a_node_stays_without_certain_knowledge(#[case] presence: Presence) {
    for condition in ["False", "Unknown"] {
        let world = with(Some(condition), Some(presence.clone())).await;
        let before = world.node("n1");
        pass(60).await;
        world.cloud.set_away(true);
        world.cloud.set_presence("n1", Presence::Gone);
        pass(600).await;
        assert_eq!(world.node("n1"), before);
        assert!(world.take_writes().is_empty());
        assert!(world.events("n1").is_empty());
    }
}

/// About ready nodes the cloud is not asked.
///
/// Framework: L6, same.
/// Framework: L9, same.
#[rstest]
#[case::l6_missing(Presence::Gone)]
#[case::l9_shut_down(Presence::ShutDown)]
#[tokio::test(start_paused = true)]
async fn framework_l6_l9_a_ready_node_is_left_alone(#[case] presence: Presence) {
    let world = with(Some("True"), Some(presence)).await;
    pass(60).await;
    assert!(world.cloud.questions().is_empty());
    assert!(world.take_writes().is_empty());
}

/// A node whose machine is shut down is tainted once, and keeps its other taints.
///
/// Framework: L7, same.
/// Framework: L14, same.
#[rstest]
#[case::with_provider_id(json!({}))]
#[case::without_provider_id(json!({"spec": {"providerID": null}}))]
#[tokio::test(start_paused = true)]
async fn framework_l7_l14_a_shut_down_node_is_tainted_once(#[case] change: serde_json::Value) {
    let mut world = World::new();
    world.create("n1", change);
    world.set_ready("n1", "Unknown");
    world.cloud.set_presence("n1", Presence::ShutDown);
    world.start_lifecycle_controller().await;
    pass(60).await;
    assert_eq!(world.taints("n1"), [NOT_READY, SHUTDOWN]);
    let taint = world.node("n1")["spec"]["taints"][1].clone();
    assert_eq!(taint, json!({"key": SHUTDOWN, "effect": "NoSchedule"}));
    assert_eq!(world.take_writes(), ["PATCH /api/v1/nodes/n1"]);
    assert!(world.events("n1").is_empty());
}

/// A node without a provider id is never deleted: its name proves nothing.
///
/// Framework: L11, better: a renamed server or a node of another provider has no server of the node's name either.
#[tokio::test(start_paused = true)]
async fn framework_l11_a_node_without_provider_id_stays() {
    let mut world = World::new();
    world.create("n1", json!({"spec": {"providerID": null}}));
    world.set_ready("n1", "Unknown");
    world.start_lifecycle_controller().await;
    pass(600).await;
    assert!(!world.node("n1").is_null());
    assert!(world.take_writes().is_empty());
}

/// The shutdown taint goes when the node is ready again; other taints stay.
///
/// Framework: L13, same.
#[tokio::test(start_paused = true)]
async fn framework_l13_the_taint_goes_when_the_node_is_ready() {
    let mut world = World::new();
    world.create("n1", json!({"spec": {"taints": [taint(SHUTDOWN), taint("theirs")]}}));
    world.set_ready("n1", "Unknown");
    world.start_lifecycle_controller().await;
    pass(60).await;
    assert_eq!(world.taints("n1")[..2], [SHUTDOWN, "theirs"], "a machine that runs is not a node yet");
    world.set_ready("n1", "True");
    pass(10).await;
    assert_eq!(world.taints("n1"), ["theirs", NOT_READY]);
}

/// Others who write to the node at the same time only delay the taint.
///
/// Framework: L15, same.
#[tokio::test(start_paused = true)]
async fn framework_l15_a_conflict_is_tried_again() {
    let mut world = World::new();
    world.create("n1", json!({}));
    world.set_ready("n1", "Unknown");
    world.cloud.set_presence("n1", Presence::ShutDown);
    world.kube.inject(World::on_patch("n1").once().conflict());
    world.start_lifecycle_controller().await;
    pass(3).await;
    assert_eq!(world.taints("n1"), [NOT_READY, SHUTDOWN]);
}

/// A node that was registered again under the same name is not deleted because of the previous one.
///
/// Framework: L16, better: the deletion names the uid and the version that were judged.
#[tokio::test(start_paused = true)]
async fn framework_l16_a_node_registered_anew_stays() {
    let world = with(Some("Unknown"), Some(Presence::Gone)).await;
    let hold = std::time::Duration::from_secs(2);
    world.kube.inject(openstack_ccm_kube_sim::Fault::on("DELETE", "/nodes/n1").once().delay(hold));
    pass(6).await;
    assert!(!world.node("n1").is_null(), "the deletion is under way");
    world.cloud.set_presence("n1", Presence::Exists);
    world.kube.delete("nodes", "", "n1").unwrap();
    world.create("n1", json!({}));
    pass(60).await;
    assert!(!world.node("n1").is_null());
    let failed = world.events("n1").iter().filter(|event| event.contains("Failed")).count();
    assert_eq!(failed, 0);
}

/// A deletion that the API server refuses is reported and tried again.
#[tokio::test(start_paused = true)]
async fn a_refused_deletion_is_reported() {
    let world = with(Some("Unknown"), Some(Presence::Gone)).await;
    let fault = openstack_ccm_kube_sim::Fault::on("DELETE", "/nodes/n1").once();
    world.kube.inject(fault.fail(403, "Forbidden", "no right to delete nodes"));
    pass(60).await;
    assert!(world.node("n1").is_null());
    let events = world.events("n1");
    let failed = events.iter().find(|event| event.starts_with("Warning DeletingNodeFailed")).unwrap();
    assert!(failed.contains("Failed deleting node n1: ") && failed.contains("no right"), "{failed}");
}

/// A node that recovers between two answers stays.
#[tokio::test(start_paused = true)]
async fn one_wrong_answer_deletes_nothing() {
    let world = with(Some("Unknown"), Some(Presence::Gone)).await;
    pass(3).await;
    for _ in 0..20 {
        world.cloud.set_presence("n1", Presence::Exists);
        pass(5).await;
        world.cloud.set_presence("n1", Presence::Gone);
        pass(5).await;
    }
    assert!(!world.node("n1").is_null());
}

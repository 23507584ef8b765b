//! New nodes.

use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_core::instance::Instance;
use rstest::rstest;
use serde_json::json;

use crate::base::pass;
use crate::cloud::{addresses, machine};
use crate::world::{UNINITIALIZED, World, taint};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

async fn started() -> World {
    let mut world = World::new();
    world.start_node_controller().await;
    world
}

async fn until_initialised(world: &World, node: &str) {
    world.until(&format!("{node} is initialised"), |world| !world.is_uninitialized(node)).await;
    pass(1).await;
}

/// A new node gets its addresses and loses the taint of its kubelet; other taints stay in order.
///
/// Framework: N1, better: the addresses are there before the taint goes, so that no pod comes to a node without them.
#[tokio::test(start_paused = true)]
async fn framework_n1_a_new_node_is_initialised() {
    let world = started().await;
    let instance = Instance { addresses: addresses("InternalIP 10.0.0.9, Hostname of-cloud"), ..machine() };
    world.cloud.found("n1", instance);
    let taints = json!([taint("first"), taint(UNINITIALIZED), taint("second")]);
    world.create_uninitialized("n1", json!({"spec": {"taints": taints}}));
    until_initialised(&world, "n1").await;
    assert_eq!(world.taints("n1"), ["first", "second", NOT_READY]);
    assert_eq!(world.addresses("n1"), "InternalIP 10.0.0.9, Hostname of-cloud");
    assert_eq!(world.events("n1"), ["Normal Synced: Node synced successfully"]);
    assert_eq!(world.take_writes(), ["PATCH /api/v1/nodes/n1/status", "PATCH /api/v1/nodes/n1"]);
    for name in ["initial_node_sync_delay", "cloud_provider_taint_removal_delay"] {
        assert_eq!(world.metric(&format!("node_controller_{name}_seconds_count")), "1");
    }
}

/// A node keeps the hostname of its kubelet where the cloud knows none.
///
/// Framework: N2, same.
#[tokio::test(start_paused = true)]
async fn framework_n2_the_hostname_of_the_kubelet_is_kept() {
    let world = started().await;
    world.cloud.found("n1", machine());
    world.create_uninitialized("n1", json!({}));
    until_initialised(&world, "n1").await;
    assert_eq!(world.addresses("n1"), "InternalIP 10.0.0.11, ExternalIP 203.0.113.9, Hostname n1");
}

/// A provider id is set where the node has none, and never replaced.
///
/// Framework: N3, same.
/// Framework: N4, same.
#[rstest]
#[case::n3_none(json!({}), "example:///id-1")]
#[case::n4_own(json!({"spec": {"providerID": "example:///own"}}), "example:///own")]
#[tokio::test(start_paused = true)]
async fn framework_n3_n4_the_provider_id_is_set_once(
    #[case] change: serde_json::Value,
    #[case] expected: &str,
) {
    let world = started().await;
    world.cloud.found("n1", machine());
    world.create_uninitialized("n1", change);
    until_initialised(&world, "n1").await;
    assert_eq!(world.node("n1")["spec"]["providerID"], expected);
}

/// A node that its kubelet does not mark costs neither a question nor a write.
///
/// Framework: N5, same.
#[tokio::test(start_paused = true)]
async fn framework_n5_a_known_node_costs_nothing() {
    let world = started().await;
    pass(1).await;
    world.cloud.questions();
    world.cloud.found("n1", machine());
    world.create("n1", json!({}));
    pass(60).await;
    assert!(world.cloud.questions().is_empty());
    assert!(world.take_writes().is_empty());
}

const PROVIDED: &str = "alpha.kubernetes.io/provided-node-ip";

/// A kubelet's `--node-ip` chooses among the addresses of the cloud.
///
/// Framework: N8, same.
#[tokio::test(start_paused = true)]
async fn framework_n8_the_node_ip_of_the_kubelet_chooses() {
    let world = started().await;
    let instance = Instance {
        addresses: addresses("InternalIP 10.0.0.2, InternalIP 10.0.0.1, ExternalIP 132.143.154.163"),
        ..machine()
    };
    world.cloud.found("n1", instance);
    world.create_uninitialized("n1", json!({"metadata": {"annotations": {PROVIDED: "10.0.0.1"}}}));
    until_initialised(&world, "n1").await;
    assert_eq!(world.addresses("n1"), "InternalIP 10.0.0.1, ExternalIP 132.143.154.163, Hostname n1");
}

/// A node IP that makes no sense keeps the node out of the cluster, and an event says why.
///
/// Framework: N9, better: the reason is an event on the node, not only a line in a log.
#[rstest]
#[case::not_an_ip("not-an-ip")]
#[case::of_another_machine("10.0.0.99")]
#[tokio::test(start_paused = true)]
async fn framework_n9_a_wrong_node_ip_is_refused(#[case] provided: &str) {
    let world = started().await;
    world.cloud.found("n1", machine());
    world.create_uninitialized("n1", json!({"metadata": {"annotations": {PROVIDED: provided}}}));
    pass(20).await;
    let before = world.node("n1");
    pass(600).await;
    assert!(world.is_uninitialized("n1"));
    assert!(world.take_writes().is_empty());
    assert_eq!(world.node("n1"), before);
    let events = world.events("n1");
    assert!(events[0].contains(provided) && events[0].contains("--node-ip"), "{events:?}");
}

/// A node is never initialised without a provider id; its own is enough.
///
/// Framework: N10, better: without a provider id the node could never be found again, so it stays tainted.
/// Framework: N11, same.
#[tokio::test(start_paused = true)]
async fn framework_n10_n11_without_provider_id_the_taint_stays() {
    let world = started().await;
    let instance = || Instance { provider_id: None, ..machine() };
    world.cloud.found("n1", instance());
    world.cloud.found("n2", instance());
    world.create_uninitialized("n1", json!({}));
    world.create_uninitialized("n2", json!({"spec": {"providerID": "example:///own"}}));
    until_initialised(&world, "n2").await;
    assert_eq!(world.node("n2")["spec"]["providerID"], "example:///own");
    assert!(world.is_uninitialized("n1"));
    let events = world.events("n1");
    assert!(events[0].contains("cloud provider does not set node provider ID for node n1"), "{events:?}");
}

/// While the cloud is away new nodes wait; afterwards they are initialised without a restart.
///
/// Framework: N12, same.
#[tokio::test(start_paused = true)]
async fn framework_n12_new_nodes_wait_for_the_cloud() {
    let world = started().await;
    world.cloud.found("n1", machine());
    world.cloud.set_away(true);
    world.create_uninitialized("n1", json!({}));
    pass(3600).await;
    assert!(world.is_uninitialized("n1"));
    let questions = world.cloud.questions().len();
    assert!(questions < 50, "{questions} questions in an hour");
    world.cloud.set_away(false);
    until_initialised(&world, "n1").await;
}

/// Labels of the provider arrive on the node.
///
/// Framework: N13, same.
#[tokio::test(start_paused = true)]
async fn framework_n13_further_labels_are_set() {
    let world = started().await;
    let labels = [("topology.k8s.cp/zone-id", "1"), ("kubernetes.io/hidden", "2")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    world.cloud.found("n1", Instance { labels, ..machine() });
    world.create_uninitialized("n1", json!({"metadata": {"labels": {"own": "kept"}}}));
    until_initialised(&world, "n1").await;
    assert_eq!(world.label("n1", "topology.k8s.cp/zone-id"), "1");
    assert!(world.label("n1", "kubernetes.io/hidden").is_null());
    assert_eq!(world.label("n1", "own"), "kept");
    assert_eq!(world.label("n1", "topology.kubernetes.io/zone"), "zone-1");
    assert_eq!(world.label("n1", "node.kubernetes.io/instance-type"), "m1.small");
}

/// A known node whose old label names say something else is corrected with one write.
///
/// Framework: N19, same.
#[tokio::test(start_paused = true)]
async fn framework_n19_labels_with_old_names_win() {
    let world = started().await;
    pass(1).await;
    let labels = json!({
        "failure-domain.beta.kubernetes.io/zone": "b", "topology.kubernetes.io/zone": "other",
        "beta.kubernetes.io/instance-type": "same", "node.kubernetes.io/instance-type": "same",
    });
    world.create("n1", json!({"metadata": {"labels": labels}}));
    pass(10).await;
    assert_eq!(world.label("n1", "topology.kubernetes.io/zone"), "b");
    assert_eq!(world.take_writes(), ["PATCH /api/v1/nodes/n1"]);
}

/// A hundred new nodes cost one question to the cloud, whatever the number of workers.
///
/// Framework: N23, better: one list serves all nodes that are due, in place of one call for each.
#[rstest]
#[case(1)]
#[case(5)]
#[case(10)]
#[case(30)]
#[tokio::test(start_paused = true)]
async fn framework_n23_many_new_nodes_cost_one_question(#[case] workers: usize) {
    let mut world = World::new();
    for number in 0..100 {
        let name = format!("n{number}");
        let provider_id = Some(format!("example:///{name}"));
        world.cloud.found(&name, Instance { provider_id, ..machine() });
        world.create_uninitialized(&name, json!({}));
    }
    let options = NodeControllerOptions { concurrency: workers, ..NodeControllerOptions::default() };
    world.start_node_controller_with(options).await;
    for number in 0..100 {
        until_initialised(&world, &format!("n{number}")).await;
    }
    assert_eq!(world.cloud.questions(), ["describe 100"]);
    assert_eq!(world.metric("workqueue_adds_total{name=\"Nodes\"}"), "100");
}

/// Others who write to the node at the same time only delay its initialisation.
///
/// Framework: N24, same.
#[tokio::test(start_paused = true)]
async fn framework_n24_conflicts_are_tried_again() {
    let world = started().await;
    world.cloud.found("n1", machine());
    world.kube.inject(World::on_patch("n1").times(2).conflict());
    world.create_uninitialized("n1", json!({}));
    until_initialised(&world, "n1").await;
    assert_eq!(world.events("n1"), ["Normal Synced: Node synced successfully"]);
    assert_eq!(world.cloud.questions(), ["describe 1"]);
}

/// What somebody writes between the reading and the end of the taint is not lost.
#[tokio::test(start_paused = true)]
async fn a_taint_that_appears_meanwhile_is_kept() {
    let world = started().await;
    world.cloud.found("n1", machine());
    world.kube.inject(World::on_patch("n1").once().delay(std::time::Duration::from_secs(5)));
    world.create_uninitialized("n1", json!({}));
    pass(2).await;
    let taints = json!([taint(UNINITIALIZED), taint("theirs")]);
    world.kube.patch("nodes", "", "n1", &json!({"spec": {"taints": taints}})).unwrap();
    until_initialised(&world, "n1").await;
    assert_eq!(world.taints("n1"), ["theirs"]);
}

/// A refusal of the API server is reported and tried again.
#[tokio::test(start_paused = true)]
async fn a_refused_write_is_an_event_and_is_tried_again() {
    let mut world = started().await;
    world.cloud.found("n1", machine());
    world.kube.inject(World::on_patch("n1").once().fail(403, "Forbidden", "no right to patch nodes"));
    world.create_uninitialized("n1", json!({}));
    pass(3).await;
    let events = world.events("n1");
    assert!(events[0].contains("NodeInitializationFailed") && events[0].contains("no right"), "{events:?}");
    until_initialised(&world, "n1").await;
    world.stop().await;
}

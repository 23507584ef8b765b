//! What users of this and of other controllers reported, each by its number in the list of reports that was tried.

use serde_json::json;

use crate::support::World;

/// A server that was rebuilt under its name: its kubelet did not register the Node anew, and its addresses are those of the old one.
#[tokio::test(start_paused = true)]
async fn field_53_a_node_whose_server_was_replaced_under_its_name_is_told_how_to_be_registered_anew() {
    let mut world = World::without_nodes();
    world.start().await;
    world.join("node-1").await;
    world.join("node-2").await;
    let before = world.server_id("node-1");
    world.cloud.remove_node("node-1");
    world.cloud.add_node("node-1");
    let now = world.server_id("node-1");
    world.pass(310).await;
    let [warning] = &world.node_warnings("node-1")[..] else { panic!("{:?}", world.node_warnings("node-1")) };
    assert!(warning.starts_with("NodeServerReplaced: "), "{warning}");
    for part in [
        format!("openstack:///{before}"),
        format!("openstack:///{now}"),
        "kubectl drain node-1".to_owned(),
        "kubectl delete node node-1".to_owned(),
        "on node-1 itself: systemctl restart kubelet".to_owned(),
    ] {
        assert!(warning.contains(&part), "{part} is missing: {warning}");
    }
    world.pass(900).await;
    assert_eq!(world.node_warnings("node-1").len(), 1, "repeats are counted in one Event");
    assert!(world.node_warnings("node-2").is_empty());
    assert_eq!(world.provider_id("node-1"), format!("openstack:///{before}"), "nobody can correct it");
}

/// A Node that was never initialised, or whose machine another tool looks after.
#[tokio::test(start_paused = true)]
async fn field_54_a_node_without_a_provider_id_whose_server_is_gone_says_so_once() {
    let mut world = World::without_nodes();
    world.start().await;
    world.join("node-1").await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lost"}});
    world.kube.create(&node).unwrap();
    world.set_ready("lost", "Unknown");
    world.pass(60).await;
    let [warning] = &world.node_warnings("lost")[..] else { panic!("{:?}", world.node_warnings("lost")) };
    assert!(warning.starts_with("NodeServerNotFound: "), "{warning}");
    for part in ["no server named lost", "spec.providerID", "kubectl delete node lost"] {
        assert!(warning.contains(part), "{part} is missing: {warning}");
    }
    world.pass(3600).await;
    assert_eq!(world.node_warnings("lost").len(), 1);
    assert!(!world.node("lost").is_null(), "it is kept");
}

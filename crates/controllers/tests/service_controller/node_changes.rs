//! Changes of nodes reach every load balancer once, and only when they matter.

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::Reconciliation;
use openstack_ccm_kube_sim::{ApiVersion, Fault};
use rstest::rstest;
use serde_json::{Value, json};

use crate::base::until;
use crate::world::{World, settle};

async fn three_services() -> World {
    let mut world = World::new(ApiVersion::V1_36);
    world.options.node_selector_annotation = Some("lb.example.org/node-selector".into());
    world.start().await;
    for name in ["a", "b", "c"] {
        world.serve(name).await;
    }
    world.create_with("plain", json!({"spec": {"type": "ClusterIP"}})).await;
    settle().await;
    world.wire.journal();
    world
}

fn sorted(mut journal: Vec<String>) -> Vec<String> {
    journal.sort();
    journal
}

/// New nodes are brought to every load balancer once, whatever its traffic policy.
///
/// Framework: P4, same.
#[tokio::test(start_paused = true)]
async fn framework_p4_a_new_node_is_brought_to_every_load_balancer_once() {
    let world = three_services().await;
    // Several at once are one change.
    for name in ["n3", "n4", "n5"] {
        world.create_node(name, "v1.36.0");
    }
    settle().await;
    let nodes = "n1,n2,n3,n4,n5";
    assert_eq!(
        sorted(world.wire.journal()),
        ["a", "b", "c"].map(|name| format!("cloud serves {name} on {nodes}"))
    );
    let events = world.events("a");
    assert!(
        events.last().unwrap().contains("Normal UpdatedLoadBalancer: Updated load balancer with new hosts"),
        "{events:?}"
    );
    assert_eq!(world.metric("service_controller_loadbalancer_sync_total"), "3");
    assert_eq!(world.metric("service_controller_nodesync_latency_seconds_count"), "1");
}

/// Every load balancer is updated once, however many there are and however many workers; other Services cost nothing.
///
/// Framework: P1, same.
/// Framework: P2, same.
#[rstest]
#[tokio::test(start_paused = true)]
async fn framework_p1_p2_each_load_balancer_is_updated_once(
    #[values(0, 1, 3, 4)] services: usize,
    #[values(1, 2, 3)] workers: usize,
) {
    let mut world = World::new(ApiVersion::V1_36);
    world.options.concurrency = workers;
    world.start().await;
    world.create_with("plain", json!({"spec": {"type": "ClusterIP"}})).await;
    world.create_with("ports", json!({"spec": {"type": "NodePort"}})).await;
    for index in 0..services {
        world.serve(&format!("s{index}")).await;
    }
    world.create_node("n3", "v1.36.0");
    settle().await;
    let expected: Vec<String> =
        (0..services).map(|index| format!("cloud serves s{index} on n1,n2,n3")).collect();
    assert_eq!(sorted(world.wire.journal()), expected);
    let changes_measured = world.metric("service_controller_nodesync_latency_seconds_count");
    assert_eq!(changes_measured, if services == 0 { "0" } else { "1" });
}

/// Nodes that cannot be listed are not taken for nodes that are gone.
///
/// Framework: P11, better: what is known of the nodes stays in use, and no Service is tried again for it.
#[tokio::test(start_paused = true)]
async fn framework_p11_nodes_that_cannot_be_listed_change_nothing() {
    let world = three_services().await;
    let fault = Fault::when(|request| request.method == "GET" && request.path.ends_with("/nodes"));
    let fault = world.kube.inject(fault.unavailable());
    world.kube.break_watches();
    world.create_node("n3", "v1.36.0");
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    assert!(!world.wire.journal().iter().any(|line| line.starts_with("cloud")));
    assert!(world.cloud.load_balancers().iter().all(|load_balancer| load_balancer.nodes.len() == 2));
    world.kube.remove_fault(fault);
    until("the new node is brought", async || {
        world.cloud.load_balancers().iter().all(|load_balancer| load_balancer.nodes.len() == 3)
    })
    .await;
}

/// A node that the autoscaler removes, or that is excluded by its label, leaves every load balancer.
///
/// Framework: P7, better: the taint itself starts the update, not the next change of another node.
/// Framework: P8, same.
#[rstest]
#[case::p7_autoscaler(json!({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": "1700000000"}]}}), "n1")]
#[case::p8_excluded(json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": ""}}}), "n1")]
#[tokio::test(start_paused = true)]
async fn framework_p7_p8_a_node_that_is_to_take_no_traffic_leaves(#[case] patch: Value, #[case] left: &str) {
    let world = three_services().await;
    world.patch_node("n2", patch).await;
    settle().await;
    assert_eq!(
        sorted(world.wire.journal()),
        ["a", "b", "c"].map(|name| format!("cloud serves {name} on {left}"))
    );
}

/// A node that is gone leaves every load balancer.
///
/// Framework: P9, same.
#[tokio::test(start_paused = true)]
async fn framework_p9_a_deleted_node_leaves() {
    let world = three_services().await;
    world.nodes().delete("n1", &kube::api::DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(world.wire.journal().len(), 3);
    assert!(world.cloud.load_balancers().iter().all(|load_balancer| load_balancer.nodes == ["n2"]));
}

#[tokio::test(start_paused = true)]
async fn a_new_address_is_followed() {
    let world = three_services().await;
    let addresses = json!([{"type": "InternalIP", "address": "10.0.0.99"}]);
    world.patch_node_status("n2", json!({"status": {"addresses": addresses}})).await;
    settle().await;
    assert_eq!(world.wire.journal().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_label_is_followed_by_those_who_select_by_it() {
    let world = three_services().await;
    let selector = json!({"metadata": {"annotations": {"lb.example.org/node-selector": "zone=a"}}});
    world.patch("b", selector).await;
    settle().await;
    world.wire.journal();
    world.patch_node("n2", json!({"metadata": {"labels": {"unrelated": "1"}}})).await;
    settle().await;
    assert!(world.wire.journal().is_empty());
    world.patch_node("n2", json!({"metadata": {"labels": {"zone": "a"}}})).await;
    settle().await;
    assert_eq!(world.wire.journal(), ["cloud serves b on n1,n2"]);
}

/// A failed update is reported, and tried again for the Services for which it failed.
///
/// Framework: P5, same.
#[tokio::test(start_paused = true)]
async fn framework_p5_a_failed_update_is_reported_and_tried_again() {
    let world = three_services().await;
    for _ in 0..3 {
        world
            .cloud
            .script(Reconciliation::failed(Failure::new(FailureClass::Unavailable, "503 from the cloud")));
    }
    world.create_node("n3", "v1.36.0");
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(world.wire.journal().len(), 6);
    assert!(world.cloud.load_balancers().iter().all(|load_balancer| load_balancer.nodes.len() == 3));
    let events = world.events("a");
    let expected = "Warning UpdateLoadBalancerFailed: Error updating load balancer with new hosts n1,n2,n3 \
                    [node names limited, total number of nodes: 3], error: 503 from the cloud";
    assert!(events.iter().any(|event| event.contains(expected)), "{events:?}");
    assert_eq!(world.metric("service_controller_nodesync_error_total"), "3");
}

/// A Service whose own change brought the new nodes is not updated a second time, and never back to the old ones.
///
/// Framework: P15, same.
#[tokio::test(start_paused = true)]
async fn framework_p15_a_service_that_has_the_new_nodes_already_is_not_bothered() {
    let world = three_services().await;
    world.create_node("n3", "v1.36.0");
    // Its own change arrives first and finds the new node.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    world.patch("b", json!({"metadata": {"annotations": {"x": "y"}}})).await;
    settle().await;
    let served: Vec<String> = world.wire.journal().into_iter().filter(|line| line.contains(" b ")).collect();
    assert_eq!(served, ["cloud serves b on n1,n2,n3"]);
}

/// Without nodes the user is warned, and the load balancer is made all the same.
///
/// Framework: S23, same.
#[tokio::test(start_paused = true)]
async fn framework_s23_without_nodes_the_user_is_warned_and_the_address_is_there_all_the_same() {
    let mut world = World::new(ApiVersion::V1_36);
    for name in ["n1", "n2"] {
        world.nodes().delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    }
    world.start().await;
    world.serve("app").await;
    let events = world.events("app");
    let warning = "Warning UnAvailableLoadBalancer: There are no available nodes for LoadBalancer";
    assert!(events.iter().any(|event| event.contains(warning)), "{events:?}");
    assert!(world.cloud.load_balancers()[0].nodes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_reconciliation_that_the_provider_asked_for_does_not_repeat_that_there_are_no_nodes() {
    let mut world = World::new(ApiVersion::V1_36);
    for name in ["n1", "n2"] {
        world.nodes().delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    }
    world.start().await;
    world.cloud.requeue_after(std::time::Duration::from_secs(30));
    world.serve("app").await;
    settle().await;
    world.wire.journal();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(world.wire.journal(), ["cloud serves app on "]);
}

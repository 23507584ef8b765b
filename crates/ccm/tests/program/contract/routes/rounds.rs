//! What one comparison of the cloud with the nodes leads to.

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::Fault;
use serde_json::json;

use super::stage::{NODE_1, REACHABLE, ROUTE_1, ROUTE_2, Stage, UNREACHABLE};

/// All routes are made, and the nodes are said to be reachable.
///
/// Framework: R2, same.
#[tokio::test(start_paused = true)]
async fn framework_r2_all_routes_are_made() {
    let stage = Stage::new().converged().await;
    assert_eq!(stage.routes(), [ROUTE_1, ROUTE_2]);
    assert_eq!(stage.conditions(), [REACHABLE, REACHABLE]);
    let node = stage.world.kube.get("nodes", "", "node-1").unwrap();
    let condition = &node["status"]["conditions"][0];
    assert_eq!(condition["message"], "RouteController created a route");
    assert!(condition["lastHeartbeatTime"].is_string() && condition["lastTransitionTime"].is_string());
}

/// Routes of both families are made for each node.
///
/// Framework: R2, same.
#[tokio::test(start_paused = true)]
async fn framework_r2_all_routes_are_made_in_both_families() {
    let stage = Stage::empty();
    for (index, server) in stage.world.cloud.nodes().into_iter().enumerate() {
        stage.set_addresses(&server.name, &[&server.addresses[0], &server.addresses[1]]);
        let ranges = [format!("10.244.{index}.0/24"), format!("fd00:244:0:{index}::/64")];
        stage.set_ranges(&server.name, &[&ranges[0], &ranges[1]]);
    }
    let stage = stage.converged().await;
    assert_eq!(stage.routes().len(), 4);
    assert_eq!(stage.conditions(), [REACHABLE, REACHABLE]);
}

/// Where all routes are there only the conditions are written.
///
/// Framework: R3, same.
#[tokio::test(start_paused = true)]
async fn framework_r3_where_all_routes_are_there_only_conditions_are_written() {
    let mut stage = Stage::new().without("allowed-address-pairs");
    stage.add_routes(&[ROUTE_1, ROUTE_2]);
    stage.set_condition("node-1", "False", "RouteCreated");
    stage.set_condition("node-2", "False", "CalicoIsUp");
    stage.world.start_to_rest().await;
    let writes: Vec<String> =
        stage.world.take_calls().into_iter().filter(|call| call.write).map(|call| call.name).collect();
    assert_eq!(writes, ["PATCH nodes/NAME/status"]);
    assert_eq!(stage.conditions(), [REACHABLE, REACHABLE]);
    let node = stage.world.kube.get("nodes", "", "node-2").unwrap();
    assert_eq!(node["status"]["conditions"].as_array().unwrap().len(), 2, "the other condition stays");
}

/// Only what is missing is made.
///
/// Framework: R4, same.
#[tokio::test(start_paused = true)]
async fn framework_r4_only_missing_routes_are_made() {
    let mut stage = Stage::new().without("allowed-address-pairs");
    stage.add_routes(&[ROUTE_1]);
    stage.world.start_to_rest().await;
    assert_eq!(stage.world.take_cloud_writes(), ["PUT routers/ID/add_extraroutes"]);
    assert_eq!(stage.routes(), [ROUTE_1, ROUTE_2]);
}

/// Two nodes whose ranges are swapped get each other's.
///
/// Framework: R5, same.
#[tokio::test(start_paused = true)]
async fn framework_r5_swapped_routes_are_put_right() {
    let mut stage = Stage::new();
    stage.add_routes(&["10.244.1.0/24 via 198.18.0.51", "10.244.2.0/24 via 198.18.0.50"]);
    for (node, wrong) in [("node-1", "10.244.2.0/24"), ("node-2", "10.244.1.0/24")] {
        let pairs = json!([{"ip_address": wrong}, {"ip_address": "10.9.9.9"}]);
        let path = format!("/v2.0/ports/{}", stage.port_id(node));
        stage.put(&path, &json!({"port": {"allowed_address_pairs": pairs}}));
    }
    stage.world.start_to_rest().await;
    assert_eq!(stage.routes(), [ROUTE_1, ROUTE_2]);
    assert_eq!(stage.pairs("node-1"), ["10.244.1.0/24", "10.9.9.9"], "the pair of somebody else stays");
    assert_eq!(stage.pairs("node-2"), ["10.244.2.0/24", "10.9.9.9"]);
}

/// Routes in the ranges of the cluster that no node wants go.
///
/// Framework: R6, same.
/// Framework: R10, same.
#[tokio::test(start_paused = true)]
async fn framework_r6_routes_for_unknown_nodes_go_and_foreign_ones_stay() {
    let stage = Stage::new();
    stage.add_routes(&["10.244.7.0/24 via 198.18.0.77", "10.77.7.0/24 via 198.18.0.77"]);
    let stage = stage.converged().await;
    assert_eq!(stage.routes(), [ROUTE_1, ROUTE_2, "10.77.7.0/24 via 198.18.0.77"]);
}

/// A route to a node's range over an address that the node does not have is replaced.
///
/// Framework: R7, same.
#[tokio::test(start_paused = true)]
async fn framework_r7_a_route_over_an_address_of_nobody_is_replaced() {
    let mut stage = Stage::new().without("allowed-address-pairs");
    stage.add_routes(&["10.244.1.0/24 via 198.18.0.77", ROUTE_2]);
    stage.world.start_to_rest().await;
    assert_eq!(
        stage.world.take_cloud_writes(),
        ["PUT routers/ID/remove_extraroutes", "PUT routers/ID/add_extraroutes"]
    );
    assert_eq!(stage.routes(), [ROUTE_1, ROUTE_2]);
}

/// A route over another address of the same node serves, and is kept.
///
/// Framework: R8, same.
#[tokio::test(start_paused = true)]
async fn framework_r8_a_route_over_another_address_of_the_node_is_kept() {
    let mut stage = Stage::new().without("allowed-address-pairs");
    stage.set_addresses("node-1", &["198.18.0.60", NODE_1]);
    stage.add_routes(&[ROUTE_1, ROUTE_2]);
    stage.world.start_to_rest().await;
    assert!(stage.world.take_cloud_writes().is_empty());
    assert_eq!(stage.conditions(), [REACHABLE, REACHABLE]);
}

/// A node without a range is none of the controller's business.
///
/// Framework: R9, same.
#[tokio::test(start_paused = true)]
async fn framework_r9_a_node_without_a_range_is_left_alone() {
    let stage = Stage::empty();
    stage.set_ranges("node-1", &["10.244.1.0/24"]);
    stage.set_condition("node-2", "True", "Other");
    let stage = stage.converged().await;
    assert_eq!(stage.routes(), [ROUTE_1]);
    assert_eq!(stage.conditions(), [REACHABLE, "True Other"]);
}

/// A range that a node has twice gets one route.
///
/// Framework: R11, better: one request, where the framework sends two equal ones.
#[tokio::test(start_paused = true)]
async fn framework_r11_a_range_given_twice_gets_one_route() {
    let stage = Stage::empty();
    stage.set_ranges("node-1", &["10.244.1.0/24", "10.244.1.0/24"]);
    let stage = stage.converged().await;
    assert_eq!(stage.routes(), [ROUTE_1]);
    assert_eq!(stage.pairs("node-1"), ["10.244.1.0/24"]);
}

/// A route that cannot be created is reported by an Event and in the condition, and the other nodes are served.
///
/// Framework: R12, better: repeats are one event with a count, because the message does not contain the time that each try
/// took; and the retries become less frequent.
#[tokio::test(start_paused = true)]
async fn framework_r12_a_route_that_cannot_be_made_is_reported() {
    // Without pairs ports are not looked at, and Neutron has the last word.
    let stage = Stage::new().without("allowed-address-pairs");
    stage.set_addresses("node-1", &["203.0.113.9"]);
    let stage = stage.converged().await;
    assert_eq!(stage.routes(), [ROUTE_2]);
    assert_eq!(stage.conditions(), [UNREACHABLE, REACHABLE]);
    let mut events = stage.world.kube.list("events", "default").unwrap();
    events.retain(|event| event["reason"] == "FailedToCreateRoute");
    // Neutron's text names the routes that the router had at that moment.
    assert!((1..=2).contains(&events.len()), "{events:#?}");
    let uid = stage.world.kube.get("nodes", "", "node-1").unwrap()["metadata"]["uid"].clone();
    let event = &events[0];
    assert_eq!(
        (&event["type"], &event["source"]["component"]),
        (&json!("Warning"), &json!("route_controller"))
    );
    assert_eq!(
        event["involvedObject"],
        json!({"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": uid})
    );
    let message = event["message"].as_str().unwrap();
    let start = format!("Could not create route {} 10.244.1.0/24 for node node-1: ", uid.as_str().unwrap());
    assert!(message.starts_with(&start), "{message}");
    assert!(message.contains("the nexthop is not connected with router"), "{message}");
}

/// While the routes cannot be listed nothing is written, and nothing is said about nodes.
///
/// Framework: R13, same.
#[tokio::test(start_paused = true)]
async fn framework_r13_without_a_list_nothing_is_written() {
    let mut stage = Stage::new();
    let fault = Fault::new().method(Method::GET).path("^/v2.0/routers/").answer(503, json!({}));
    stage.world.cloud.faults().add(fault);
    stage.world.start().await;
    stage.world.pass(600).await;
    let writes: Vec<_> = stage.world.take_calls().into_iter().filter(|call| call.write).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert_eq!(stage.conditions(), ["", ""]);
    stage.world.cloud.faults().clear();
    stage.world.until("the routes are made", |_| stage.routes() == [ROUTE_1, ROUTE_2]).await;
}

/// A change of a node is followed within seconds, not at the next period.
///
/// Framework: R14, better: without a feature gate.
#[tokio::test(start_paused = true)]
async fn framework_r14_changes_of_nodes_are_followed_at_once() {
    let mut stage = Stage::new();
    stage.world.settings.route.as_mut().unwrap().period = Duration::from_secs(3600);
    let stage = stage.converged().await;
    stage.add_node("node-3", &["10.244.3.0/24"]);
    stage.world.pass(3).await;
    assert_eq!(stage.routes().len(), 3);
    stage.set_addresses("node-3", &[NODE_1]);
    stage.world.pass(3).await;
    assert!(stage.routes().contains(&"10.244.3.0/24 via 198.18.0.50".to_owned()));
    stage.world.take_calls();
    stage.set_condition("node-3", "False", "RouteCreated");
    stage.world.pass(3).await;
    assert!(stage.world.take_calls().iter().all(|call| !call.name.contains("routers")));
}

/// What dashboards know, and ours.
#[tokio::test(start_paused = true)]
async fn rounds_and_corrections_are_counted() {
    let stage = Stage::new().converged().await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &stage.world.registry.lock().unwrap()).unwrap();
    assert!(text.contains("route_controller_route_corrections_total 2"), "{text}");
    assert!(text.contains("openstack_ccm_route_unreachable_nodes 0"), "{text}");
    let sync = |outcome, trigger| {
        format!("route_controller_route_sync_total{{outcome=\"{outcome}\",trigger=\"{trigger}\"}} ")
    };
    assert!(text.contains(&sync("changed", "periodic")), "{text}");
    assert!(
        text.contains(&sync("noop", "periodic")) || text.contains(&sync("noop", "node_change")),
        "{text}"
    );
    stage.add_node("node-3", &["10.244.77.0/24"]);
    stage.world.pass(5).await;
    assert!(stage.world.metrics().contains(&sync("changed", "node_change")), "{}", stage.world.metrics());
}

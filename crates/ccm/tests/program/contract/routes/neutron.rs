//! What is written to Neutron.

use rstest::rstest;
use serde_json::json;

use super::stage::{NODE_1, REACHABLE, ROUTE_1, ROUTE_2, Stage, UNREACHABLE};
use crate::support::{Side, service};

const FOREIGN: &str = "192.168.0.0/24 via 198.18.0.50";

/// A node gets a route, and its port may send from the pods' addresses.
///
/// Contract: T1, same.
#[tokio::test(start_paused = true)]
async fn t1_a_node_gets_a_route_and_a_pair() {
    let mut stage = Stage::empty();
    stage.set_ranges("node-1", &["10.244.1.0/24"]);
    stage.world.start_to_rest().await;
    assert_eq!(stage.world.take_cloud_writes(), ["PUT routers/ID/add_extraroutes", "PUT ports/ID"]);
    assert_eq!(stage.routes(), [ROUTE_1]);
    assert_eq!(stage.pairs("node-1"), ["10.244.1.0/24"]);
    assert!(stage.pairs("node-2").is_empty());
}

/// Many nodes get their routes in one request.
#[tokio::test(start_paused = true)]
async fn all_missing_routes_are_made_in_one_request() {
    let mut stage = Stage::new();
    for index in 3..30 {
        stage.add_node(&format!("node-{index}"), &[&format!("10.244.{index}.0/24")]);
    }
    stage.world.start_to_rest().await;
    let writes = stage.world.take_cloud_writes();
    assert_eq!(writes.iter().filter(|write| write.starts_with("PUT routers")).count(), 1, "{writes:?}");
    assert_eq!(writes.iter().filter(|write| *write == "PUT ports/ID").count(), 29);
    assert_eq!(stage.routes().len(), 29);
    assert!(stage.conditions().iter().all(|condition| condition == REACHABLE));
}

/// Without the atomic extension the whole list is replaced; the routes of others stay in it.
///
/// Contract: T2, better: the request names the revision that the list was read at, so that a route which somebody else
/// makes at the same time is not lost.
#[tokio::test(start_paused = true)]
async fn t2_without_the_atomic_extension_the_routes_of_others_stay_in_the_list() {
    let mut stage = Stage::new().without("extraroute-atomic");
    stage.add_routes(&[FOREIGN]);
    stage.world.start_to_rest().await;
    assert_eq!(stage.routes(), [ROUTE_1, ROUTE_2, FOREIGN]);
    assert_eq!(stage.world.take_cloud_writes(), ["PUT routers/ID", "PUT ports/ID", "PUT ports/ID"]);
    stage.remove_node("node-2");
    stage.world.quiet().await;
    assert_eq!(stage.routes(), [ROUTE_1, FOREIGN]);
    assert_eq!(stage.world.take_cloud_writes(), ["PUT routers/ID"]);
}

/// What is there is not written again, also not after a restart.
///
/// Contract: T3, same.
#[tokio::test(start_paused = true)]
async fn t3_routes_and_pairs_that_are_there_are_not_written_again() {
    let mut stage = Stage::new().converged().await;
    stage.world.restart_to_rest().await;
    let calls = stage.world.take_calls();
    let writes: Vec<_> = calls.iter().filter(|call| call.write).collect();
    assert!(writes.is_empty(), "{writes:?}");
    tokio::time::sleep(std::time::Duration::from_secs(100)).await;
    let calls = stage.world.take_calls();
    let cloud: Vec<&str> =
        calls.iter().filter(|call| call.side == Side::OpenStack).map(|call| call.name.as_str()).collect();
    assert!((9..=11).contains(&cloud.len()), "{cloud:?}");
    assert!(cloud.iter().all(|call| *call == "GET routers/ID"), "{cloud:?}");
}

/// A pair that somebody removed comes back within minutes, and a route with the next round.
#[tokio::test(start_paused = true)]
async fn what_was_removed_by_hand_comes_back() {
    let stage = Stage::new().converged().await;
    stage.put(
        &format!("/v2.0/ports/{}", stage.port_id("node-1")),
        &json!({"port": {"allowed_address_pairs": []}}),
    );
    stage.remove_routes(&[ROUTE_2]);
    stage.world.until("the route is back", |_| stage.routes() == [ROUTE_1, ROUTE_2]).await;
    stage.world.until("the pair is back", |_| stage.pairs("node-1") == ["10.244.1.0/24"]).await;
}

/// Ports are left alone where Neutron has no pairs, and where nothing is filtered.
///
/// Contract: T4, same.
#[rstest]
#[case::no_extension(true)]
#[case::no_port_security(false)]
#[tokio::test(start_paused = true)]
async fn t4_no_port_is_written_where_no_pair_is_needed(#[case] no_extension: bool) {
    let mut stage = Stage::new();
    if no_extension {
        stage = stage.without("allowed-address-pairs");
    }
    for node in ["node-1", "node-2"] {
        let path = format!("/v2.0/ports/{}", stage.port_id(node));
        stage.put(&path, &json!({"port": {"port_security_enabled": no_extension}}));
    }
    stage.world.start_to_rest().await;
    assert_eq!(stage.routes(), [ROUTE_1, ROUTE_2]);
    assert_eq!(stage.world.take_cloud_writes(), ["PUT routers/ID/add_extraroutes"]);
    assert_eq!(stage.conditions(), [REACHABLE, REACHABLE]);
}

/// A node whose port is not behind the router gets no route, and the user gets an Event.
///
/// Contract: T5, better: the port is looked for first, so that the route is not made and undone in each round.
#[tokio::test(start_paused = true)]
async fn t5_without_a_port_there_is_no_route() {
    let mut stage = Stage::new();
    stage.set_addresses("node-1", &["198.18.0.99"]);
    stage.world.start_to_rest().await;
    assert_eq!(stage.routes(), [ROUTE_2]);
    assert_eq!(stage.world.take_cloud_writes(), ["PUT routers/ID/add_extraroutes", "PUT ports/ID"]);
    assert_eq!(stage.conditions(), [UNREACHABLE, REACHABLE]);
    let warnings = stage.world.warnings("node-1");
    assert!(warnings[0].contains("no port with the address 198.18.0.99"), "{warnings:?}");
    stage.set_addresses("node-1", &[NODE_1]);
    stage.world.quiet().await;
    assert_eq!(stage.routes(), [ROUTE_1, ROUTE_2]);
    assert_eq!(stage.conditions(), [REACHABLE, REACHABLE]);
}

/// The port must be behind an internal interface: an address outside of the router is no next hop.
///
/// Defect: 52, better: only internal interfaces count, and what is known of ports belongs to one round.
#[tokio::test(start_paused = true)]
async fn a_port_on_the_external_network_is_no_next_hop() {
    let stage = Stage::new().converged().await;
    let external = &stage.world.cloud.seed().public_network_id;
    let body = json!({"port": {"network_id": external, "fixed_ips": [{"ip_address": "198.19.0.77"}]}});
    stage.world.cloud.admin().make("network", "/v2.0/ports", &body);
    stage.set_addresses("node-1", &["198.19.0.77"]);
    stage.world.quiet().await;
    assert_eq!(stage.routes(), [ROUTE_2]);
    assert!(stage.world.warnings("node-1")[0].contains("no port with the address 198.19.0.77"));
}

/// The route of a node that is gone is taken away by the text of its next hop.
///
/// Contract: T6, same.
#[tokio::test(start_paused = true)]
async fn t6_the_route_of_a_removed_node_goes() {
    let stage = Stage::new().converged().await;
    stage.remove_node("node-2");
    stage.world.quiet().await;
    assert_eq!(stage.routes(), [ROUTE_1]);
    assert_eq!(stage.world.take_cloud_writes(), ["PUT routers/ID/remove_extraroutes"]);
}

/// A route outside of the cluster's ranges is somebody else's.
///
/// Contract: T7, same.
#[tokio::test(start_paused = true)]
async fn t7_a_route_outside_of_the_ranges_is_left_alone() {
    let stage = Stage::new();
    stage.add_routes(&["192.168.0.0/24 via 198.18.0.77", FOREIGN]);
    let stage = stage.converged().await;
    stage.remove_node("node-1");
    stage.world.quiet().await;
    assert_eq!(stage.routes(), [ROUTE_2, FOREIGN, "192.168.0.0/24 via 198.18.0.77"]);
}

/// Each range goes over the first address of its family; without one the range has no route, and the user gets an Event.
///
/// Contract: T8, same.
#[tokio::test(start_paused = true)]
async fn t8_each_family_has_its_own_next_hop() {
    let stage = Stage::empty();
    let addresses = stage.world.cloud.nodes()[0].addresses.clone();
    stage.set_addresses("node-1", &[&addresses[0], &addresses[1]]);
    for (index, node) in ["node-1", "node-2"].iter().enumerate() {
        let index = index + 1;
        stage.set_ranges(node, &[&format!("10.244.{index}.0/24"), &format!("fd00:244:0:{index}::/64")]);
    }
    let stage = stage.converged().await;
    let v6 = format!("fd00:244:0:1::/64 via {}", addresses[1]);
    assert_eq!(stage.routes(), [ROUTE_1, ROUTE_2, v6.as_str()]);
    assert_eq!(stage.pairs("node-1"), ["10.244.1.0/24", "fd00:244:0:1::/64"]);
    assert_eq!(stage.conditions(), [REACHABLE, UNREACHABLE]);
    let warnings = stage.world.warnings("node-2");
    assert!(warnings[0].contains("no InternalIP of the family of fd00:244:0:2::/64"), "{warnings:?}");
}

/// A node whose range is outside of the cluster's gets no route that nobody would ever take away, and the user is warned.
#[tokio::test(start_paused = true)]
async fn a_pod_cidr_outside_of_the_ranges_is_reported() {
    let stage = Stage::empty();
    stage.set_ranges("node-1", &["10.99.1.0/24"]);
    let stage = stage.converged().await;
    assert!(stage.routes().is_empty());
    let warnings = stage.world.warnings("node-1");
    assert!(warnings[0].contains("correct --cluster-cidr"), "{warnings:?}");
}

/// A Neutron without extra routes: nothing is done about routes, and load balancers work.
///
/// Contract: T9, same.
#[tokio::test(start_paused = true)]
async fn t9_without_the_extension_the_other_controllers_run() {
    let stage = Stage::new().without("extraroute-atomic").without("extraroute");
    let stage = stage.converged().await;
    assert!(stage.world.health.report(openstack_ccm_manager::health::Probe::Readiness, &[]).0);
    stage.world.serve(&service("web", json!({}))).await;
    assert!(stage.routes().is_empty());
    assert_eq!(stage.conditions(), ["", ""]);
}

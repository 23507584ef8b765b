//! The address of the API server leads to another cluster. Nothing is changed there, and nothing is done in the cloud by what that
//! cluster has.

use std::time::Duration;

use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_controllers::route::RouteControllerOptions;
use openstack_ccm_core::route::range::ClusterRanges;
use openstack_ccm_kube_sim::{ApiVersion, Sim as Kubernetes};
use openstack_ccm_manager::health::Probe;
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::annotated;
use crate::support::nodes::{SHUTDOWN, UNINITIALIZED};
use crate::support::{World, node};

const HOUR: Duration = Duration::from_secs(3600);

/// What becomes of the watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watches {
    /// The history of the other cluster reaches back to where they were.
    Resumed,
    /// It does not: everything is listed anew.
    ListedAnew,
}

/// A cluster with these nodes that is older than that of the world.
fn another(world: &World, nodes: &[Value]) -> Kubernetes {
    let other = Kubernetes::numbered(ApiVersion::V1_36, 2);
    for node in nodes {
        other.create(node).unwrap();
    }
    while other.resource_version() <= world.kube.resource_version() + 10 {
        for node in nodes {
            let beat = json!({"metadata": {"annotations": {"beat": other.resource_version().to_string()}}});
            other.patch("nodes", "", node["metadata"]["name"].as_str().unwrap(), &beat).unwrap();
        }
    }
    other
}

impl Watches {
    fn lead_to(self, world: &World, other: &Kubernetes) {
        world.kube.lead_to(other);
        if self == Self::ListedAnew {
            world.kube.compact();
        }
    }
}

/// The nodes of the world's cluster, at other addresses.
fn namesakes(world: &World) -> Vec<Value> {
    let servers = world.cloud.nodes().into_iter().enumerate();
    let moved = servers.map(|(number, server)| {
        let mut node = node(&server, "v1.36.0");
        node["status"]["addresses"][0]["address"] = json!(format!("198.18.0.{}", 200 + number));
        node
    });
    moved.collect()
}

fn readiness(world: &World) -> String {
    let (ready, lines) = world.health.report(Probe::Readiness, &[]);
    assert!(!ready, "{lines}");
    lines
}

/// The objects of the cluster that the address leads to, but for Events.
fn theirs(world: &World) -> Value {
    json!([world.kube.list("nodes", "").unwrap(), world.kube.list("services", "").unwrap()])
}

#[rstest]
#[case::resumed(Watches::Resumed)]
#[case::listed_anew(Watches::ListedAnew)]
#[tokio::test(start_paused = true)]
async fn its_nodes_become_no_members(#[case] watches: Watches) {
    let world = World::serving(&annotated(&[])).await;
    watches.lead_to(&world, &another(&world, &namesakes(&world)));
    let before = theirs(&world);
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(theirs(&world), before);
    assert!(readiness(&world).contains("[-]cluster failed: the API server now belongs to another cluster"));
}

/// A world whose program runs the node controllers, and the service controller or not.
async fn of_nodes(serves: bool) -> World {
    let mut world = World::without_nodes();
    world.settings.serves = serves;
    world.settings.node = Some(NodeControllerOptions::default());
    world.settings.node_lifecycle = Some(NodeLifecycleOptions::default());
    world.start().await;
    for name in ["node-1", "node-2", "node-3"] {
        world.join(name).await;
    }
    world.pass(30).await;
    world
}

/// A node of theirs whose name a server of the project has, as its kubelet has registered it.
fn uninitialised(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "spec": {"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]},
        "status": {"addresses": [{"type": "Hostname", "address": name}]}})
}

#[rstest]
#[case::resumed(Watches::Resumed, true)]
#[case::listed_anew(Watches::ListedAnew, true)]
#[case::resumed_without_services(Watches::Resumed, false)]
#[case::listed_anew_without_services(Watches::ListedAnew, false)]
#[tokio::test(start_paused = true)]
async fn its_nodes_get_no_provider_id(#[case] watches: Watches, #[case] serves: bool) {
    let world = of_nodes(serves).await;
    watches.lead_to(&world, &another(&world, &[uninitialised("node-2")]));
    let before = theirs(&world);
    tokio::time::sleep(HOUR).await;
    assert_eq!(theirs(&world), before);
    assert!(readiness(&world).contains("the API server now belongs to another cluster"));
}

/// A node of theirs whose server this project does not have.
fn of_another_project() -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "theirs"},
        "spec": {"providerID": "openstack:///0a000000-0000-4000-8000-00000000000a"},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastHeartbeatTime": time,
            "lastTransitionTime": time}]}})
}

#[rstest]
#[case::resumed(Watches::Resumed)]
#[case::listed_anew(Watches::ListedAnew)]
#[tokio::test(start_paused = true)]
async fn its_nodes_are_not_deleted(#[case] watches: Watches) {
    let world = of_nodes(false).await;
    let mut nodes: Vec<Value> = world.cloud.nodes().iter().map(|server| node(server, "v1.36.0")).collect();
    nodes.push(of_another_project());
    watches.lead_to(&world, &another(&world, &nodes));
    let before = theirs(&world);
    tokio::time::sleep(HOUR).await;
    assert_eq!(theirs(&world), before);
}

/// Nothing of the other cluster is seen: what is written is decided by what is known of one's own.
#[tokio::test(start_paused = true)]
async fn what_is_known_of_ones_own_nodes_is_not_written_to_its_nodes() {
    let world = of_nodes(false).await;
    world.set_ready("node-2", "Unknown");
    world.pass(30).await;
    let other = Kubernetes::numbered(ApiVersion::V1_36, 2);
    for server in world.cloud.nodes() {
        other.create(&node(&server, "v1.36.0")).unwrap();
    }
    assert!(other.resource_version() < world.kube.resource_version(), "its watches are silent");
    world.kube.lead_to(&other);
    let before = theirs(&world);
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.cloud.set_server_status("node-2", "SHUTOFF");
    tokio::time::sleep(HOUR).await;
    assert!(!world.has_taint("node-2", SHUTDOWN));
    assert_eq!(theirs(&world), before);
}

#[rstest]
#[case::resumed(Watches::Resumed)]
#[case::listed_anew(Watches::ListedAnew)]
#[tokio::test(start_paused = true)]
async fn its_nodes_get_no_routes_and_no_condition(#[case] watches: Watches) {
    let mut world = World::new(ApiVersion::V1_36);
    let router = world.cloud.seed().router_id.clone();
    world.settings.serves = false;
    world.settings.cloud_conf = format!("[Route]\nrouter-id = {router}\n");
    let ranges = ClusterRanges::new(vec!["10.244.0.0/16".parse().unwrap()]);
    world.settings.route = Some(RouteControllerOptions::new(ranges));
    world.start().await;
    world.pass(30).await;
    let mut nodes = namesakes(&world);
    nodes[0]["spec"]["podCIDRs"] = json!(["10.244.77.0/24"]);
    nodes[0]["spec"]["podCIDR"] = json!("10.244.77.0/24");
    watches.lead_to(&world, &another(&world, &nodes));
    let before = theirs(&world);
    world.take_calls();
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(theirs(&world), before);
}

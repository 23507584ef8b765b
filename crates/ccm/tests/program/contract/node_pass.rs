//! Passes for nodes that come and go, and waiting for Octavia.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Method;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Fault, OperationKind, WorkerFault};
use openstack_ccm_provider_openstack::config::{self, Environment};
use rstest::rstest;
use serde_json::{Value, json};

use super::setup::{annotated, id, load_balancer, member_names};
use crate::support::{OneFile, World};

/// A node that joins costs one request for the pool, and the user gets an Event.
///
/// Contract: U1, better: nobody is asked for what did not change.
#[tokio::test(start_paused = true)]
async fn u1_a_node_that_joins_is_one_batch() {
    let world = World::serving(&annotated(&[])).await;
    world.add_node("node-3", "v1.36.0");
    world.pass(60).await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"]);
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
    world.pass(120).await;
    assert_eq!(world.take_cloud_writes(), [""; 0]);
    assert!(world.events("web").iter().any(|event| event.contains("UpdatedLoadBalancer")));
}

/// A node that is to take no traffic any more ceases to be a member.
///
/// Contract: U2, same.
#[rstest]
#[case::excluded(json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": ""}}}))]
#[case::autoscaler(json!({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}}))]
#[case::deleted(Value::Null)]
#[tokio::test(start_paused = true)]
async fn u2_a_node_that_is_to_take_no_traffic_leaves(#[case] change: Value) {
    let world = World::serving(&annotated(&[])).await;
    if change.is_null() {
        world.kube.delete("nodes", "", "node-1").unwrap();
    } else {
        world.kube.patch("nodes", "", "node-1", &change).unwrap();
    }
    world.quiet().await;
    let [write] = &world.take_cloud_writes()[..] else { panic!("one request") };
    assert!(write.contains(" pools/ID/members"), "{write}");
    assert_eq!(member_names(&world), ["node-2"]);
}

/// Without nodes the members that are there are kept, and the user is warned.
///
/// Contract: U3, better: OCCM empties the pools, also when the API server has lost the nodes or a label excludes all by mistake.
/// Defect: 35, better: the members stay, and everything else goes on.
#[tokio::test(start_paused = true)]
async fn u3_without_nodes_the_members_are_kept() {
    let world = World::serving(&annotated(&[])).await;
    for node in ["node-1", "node-2"] {
        world.kube.delete("nodes", "", node).unwrap();
    }
    world.quiet().await;
    assert_eq!(member_names(&world), ["node-1", "node-2"]);
    assert!(world.warnings("web").iter().any(|event| event.contains("UnAvailableLoadBalancer")));
}

/// A listener or pool that somebody deleted is recreated when a node change finds it missing.
///
/// Contract: U4, better: the same reconciliation repairs it, without an error in between.
#[rstest]
#[case::listener_and_pool(&["listeners", "pools"])]
#[case::pool(&["pools"])]
#[tokio::test(start_paused = true)]
async fn u4_a_child_that_is_gone_is_repaired_by_the_same_pass(#[case] kinds: &[&str]) {
    let world = World::serving(&annotated(&[])).await;
    for kind in kinds {
        let object = if *kind == "pools" { world.cloud.pools() } else { world.cloud.listeners() };
        let path = format!("/v2.0/lbaas/{kind}/{}", id(&object[0]));
        assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
        world.cloud.settle();
    }
    world.third_node_joins().await;
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
    assert_eq!(world.cloud.listeners().len(), 1);
    assert_eq!(world.cloud.listeners()[0]["default_pool_id"], world.cloud.pools()[0]["id"]);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

/// A load balancer that Octavia works on is waited for, whoever began.
///
/// Contract: U5, better: no error and no back-off; the reconciliation continues when Octavia has finished.
#[tokio::test(start_paused = true)]
async fn u5_a_load_balancer_that_is_not_active_is_waited_for() {
    let world = World::serving(&annotated(&[])).await;
    world.cloud.set_delay(OperationKind::LoadBalancerUpdate, Duration::from_secs(60));
    let path = format!("/v2.0/lbaas/loadbalancers/{}", load_balancer(&world)["id"].as_str().unwrap());
    let body = json!({"loadbalancer": {"admin_state_up": true}});
    assert_eq!(world.cloud.user().put("load-balancer", &path, &body).0, 200);
    world.add_node("node-3", "v1.36.0");
    world.until("the node is a member", |world| member_names(world).len() == 3).await;
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

/// What a node has besides its addresses changes nothing in the cloud.
///
/// Contract: U6, same.
#[tokio::test(start_paused = true)]
async fn u6_another_provider_id_changes_no_member() {
    let world = World::serving(&annotated(&[])).await;
    let id = "00000000-0000-4000-8000-00000000abcd";
    world.kube.delete("nodes", "", "node-2").unwrap();
    let server = world.cloud.nodes().into_iter().find(|node| node.name == "node-2").unwrap();
    let mut node = crate::support::node(&server, "v1.36.0");
    node["spec"]["providerID"] = json!(format!("openstack:///{id}"));
    world.kube.create(&node).unwrap();
    world.quiet().await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
}

/// Waiting survives answers that fail, and goes on as soon as Octavia has finished.
///
/// Contract: U7, better: one list for all load balancers that are waited for, and no worker is held up.
#[tokio::test(start_paused = true)]
async fn u7_waiting_survives_failures() {
    let world = World::started().await;
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, Duration::from_secs(30));
    world.create(&annotated(&[]));
    world.until("the load balancer is being made", |world| !world.cloud.load_balancers().is_empty()).await;
    let broken = Fault::new().service("load-balancer").method(Method::GET).answer(500, json!({})).times(2);
    world.cloud.faults().add(broken);
    world.until_published("web").await;
}

/// The variable with which OCCM's waits were stretched or cut has no effect, which is said at the start.
///
/// Contract: U9, better: nothing waits in steps, so that no wait is too short for a slow cloud.
#[tokio::test(start_paused = true)]
async fn u9_waiting_has_no_number_of_steps() {
    let mut world = World::new(ApiVersion::V1_36);
    let text = world.cloud.cloud_conf();
    let loaded = config::load(&["cloud.conf".into()], &WithSteps(OneFile(text))).unwrap();
    let named = |warning: &config::Finding| warning.to_string().contains("OCCM_WAIT_LB_ACTIVE_STEPS");
    assert!(loaded.warnings.iter().any(named), "{:?}", loaded.warnings);
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, Duration::from_secs(900));
    world.start().await;
    world.create(&annotated(&[]));
    world.until_published("web").await;
}

/// An environment in which OCCM's waits end after two steps.
struct WithSteps(OneFile);

impl Environment for WithSteps {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "OCCM_WAIT_LB_ACTIVE_STEPS").then(|| "2".to_owned())
    }

    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        self.0.read(path)
    }

    fn working_directory(&self) -> PathBuf {
        self.0.working_directory()
    }
}

/// The members of a Service's pools are its nodes: what somebody adds there goes with the next change.
///
/// Defect: 70, same: OCCM's users expect it, and a member that stays for ever cannot be distinguished from a node that is gone; a pool
/// of one's own is left alone.
#[tokio::test(start_paused = true)]
async fn a_member_that_somebody_added_goes_with_the_next_change() {
    let world = World::serving(&annotated(&[])).await;
    let pool = world.cloud.pools()[0]["id"].as_str().unwrap().to_owned();
    let body = json!({"member": {"name": "by-hand", "address": "198.18.0.99", "protocol_port": 80}});
    let path = format!("/v2.0/lbaas/pools/{pool}/members");
    assert_eq!(world.cloud.user().post("load-balancer", &path, &body).0, 201);
    world.cloud.settle();
    assert_eq!(member_names(&world).len(), 3);
    world.third_node_joins().await;
    assert_eq!(member_names(&world), ["node-1", "node-2", "node-3"]);
}

/// A load balancer that fails while it is waited for is not waited for any longer.
///
/// Contract: U8, better: it is recreated at once.
#[tokio::test(start_paused = true)]
async fn u8_an_error_ends_the_wait() {
    let world = World::started().await;
    world.cloud.faults().add_worker(WorkerFault::fail(OperationKind::LoadBalancerCreate).times(1));
    world.create(&annotated(&[]));
    world.until_served("web").await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert_eq!(load_balancer(&world)["provisioning_status"], "ACTIVE");
}

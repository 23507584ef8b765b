//! What a change writes, and that what does not matter writes and asks nothing.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use serde_json::{Value, json};

use crate::support::{Call, Side, World, service};

/// The calls to the cloud, and the writes in Kubernetes, that a change leads to.
async fn cost(world: &World) -> (usize, usize) {
    world.quiet().await;
    let calls = world.take_calls();
    let openstack = calls.iter().filter(|call| call.side == Side::OpenStack).count();
    (openstack, calls.iter().filter(|call| call.side == Side::Kubernetes && call.write).count())
}

#[tokio::test(start_paused = true)]
async fn changes_that_do_not_matter_cost_nothing() {
    let world = World::serving(&service("web", json!({}))).await;
    world.patch("web", &json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(cost(&world).await, (0, 0));
    world.annotate("web", "deploy.example.com/revision", Some("2"));
    assert_eq!(cost(&world).await, (0, 0));
}

fn http(node_port: u16) -> Value {
    json!({"name": "http", "port": 80, "protocol": "TCP", "nodePort": node_port})
}

/// A served Service with one port.
async fn served() -> World {
    World::serving(&service("web", json!({"spec": {"ports": [http(30080)]}}))).await
}

#[tokio::test(start_paused = true)]
async fn a_changed_limit_is_one_write() {
    let world = served().await;
    world.annotate_to_rest("web", "loadbalancer.openstack.org/connection-limit", Some("100")).await;
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"]);
    assert_eq!(world.cloud.listeners()[0]["connection_limit"], 100);
}

/// Defect: 23, better: however many ports a Service has, nothing is written but the new one.
#[tokio::test(start_paused = true)]
async fn an_added_port_is_written_and_no_other() {
    let world = served().await;
    let https = json!({"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443});
    world.patch_to_rest("web", &json!({"spec": {"ports": [http(30080), https]}})).await;
    let mut writes = world.take_cloud_writes();
    writes.sort();
    assert_eq!(writes, ["POST listeners", "POST pools", "PUT pools/ID/members"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_one_write_for_each_object_that_stands_alone() {
    let world = served().await;
    world.release("web").await;
    world.quiet().await;
    let mut writes = world.take_cloud_writes();
    writes.sort();
    assert_eq!(writes, ["DELETE floatingips/ID", "DELETE loadbalancers/ID"]);
}

/// A Service is held before anything is made for it, names its load balancer as soon as there is one, and is published after that: a program
/// that ends between two of these leaves nothing that the next one would not find. Whoever starts over writes nothing.
#[tokio::test(start_paused = true)]
async fn a_creation_writes_its_service_three_times_and_a_restart_not_at_all() {
    let mut world = World::started().await;
    world.create(&service("web", json!({})));
    world.until_served("web").await;
    let writes = |calls: Vec<Call>| -> Vec<Value> {
        let writes = calls.into_iter().filter(|call| call.name == "PATCH services/NAME/status");
        writes.filter_map(|call| call.request).map(|request| request.body).collect()
    };
    let has = |body: &Value, part: &str| !body.pointer(part).is_none_or(Value::is_null);
    let bodies = writes(world.take_calls());
    let [held, named, published] = bodies.as_slice() else { panic!("{bodies:#?}") };
    assert!(has(held, "/metadata/finalizers"), "{held}");
    assert!(has(named, "/metadata/annotations") && !has(named, "/status"), "{named}");
    assert!(has(published, "/status"), "{published}");
    world.restart_to_rest().await;
    assert_eq!(writes(world.take_calls()), Vec::<Value>::new());
}

/// Octavia has locked the load balancer, so that nothing could be changed yet.
#[tokio::test(start_paused = true)]
async fn a_node_that_joins_during_a_creation_is_a_member_when_octavia_is_done() {
    let mut world = World::new(ApiVersion::V1_36);
    world.cloud.set_delays(Duration::from_secs(60));
    world.start().await;
    world.create(&service("web", json!({})));
    world.until("the load balancer is being created", |world| world.cloud.load_balancers().len() == 1).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.take_calls();
    world.add_node("node-3", "v1.36.0");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let of_octavia = |write: &String| !write.contains("floatingips");
    assert_eq!(world.take_cloud_writes().into_iter().filter(of_octavia).count(), 0, "never too early");
    let has_all = |world: &World| {
        let pools = world.cloud.pools();
        pools.iter().all(|pool| world.cloud.members(pool["id"].as_str().unwrap()).len() == 3)
    };
    world.until_published("web").await;
    world.until("the node is a member", has_all).await;
}

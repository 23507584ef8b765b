//! What changes cost in calls to Octavia, held against the one table of what they may.

pub(crate) mod table;

use std::ops::Range;
use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Capacity, OperationKind};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{PROXY, Side, World, lb_name, service};
use table::{CREATE, DELETE, NODE_ADDED, PORT_ADDED, PROXY_OFF, RESTART};

const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
/// What a change of nodes leads to is confirmed by then.
const CONFIRMED: Duration = Duration::from_secs(100);

/// An Octavia that does one thing after another, as on a small machine, and a cluster of three nodes.
async fn small_cloud() -> World {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.plans = false;
    world.settings.latency = Duration::from_millis(50);
    world.cloud.set_delays(Duration::from_secs(1));
    world.cloud.set_delay(OperationKind::LoadBalancerCreate, Capacity::SMALL_CREATION);
    world.cloud.set_capacity(Some(Capacity::small()));
    world.start().await;
    world.third_node_joins().await;
    world.take_calls();
    world
}

fn name(number: usize) -> String {
    format!("web-{number}")
}

fn create(world: &World, numbers: Range<usize>) {
    let ports = json!([
        {"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "https", "port": 443, "protocol": "TCP"},
    ]);
    let change =
        json!({"metadata": {"annotations": {PROXY: "v2", INTERNAL: "true"}}, "spec": {"ports": ports}});
    numbers.for_each(|number| world.create(&service(&name(number), change.clone())));
}

async fn until_served(world: &World, numbers: Range<usize>) {
    for number in numbers {
        world.until_published(&name(number)).await;
    }
    world.quiet().await;
}

async fn delete(world: &World, numbers: Range<usize>) {
    numbers.clone().for_each(|number| world.delete(&name(number)));
    for number in numbers {
        world.until_gone(&name(number)).await;
    }
    world.quiet().await;
}

async fn node_joins(world: &World, node: &str) {
    world.add_node(node, "v1.36.0");
    let has_it = |pool: &Value| {
        let members = world.cloud.members(pool["id"].as_str().unwrap());
        members.iter().any(|member| member["name"] == node)
    };
    world.until("the node is a member everywhere", |world| world.cloud.pools().iter().all(has_it)).await;
    tokio::time::sleep(CONFIRMED).await;
}

/// The calls to Octavia since the last time.
fn octavia_calls(world: &World) -> Vec<String> {
    let collections = ["loadbalancers", "listeners", "pools", "healthmonitors"];
    let calls = world.take_calls().into_iter().filter(|call| call.side == Side::OpenStack);
    let is_octavia = |name: &String| {
        let path = name.split_once(' ').map_or("", |(_, path)| path);
        path == "/" || collections.iter().any(|collection| path.starts_with(collection))
    };
    calls.map(|call| call.name).filter(is_octavia).collect()
}

/// The calls to Octavia since the last time may be as many as the table says.
fn assert_within(world: &World, change: &str, count: usize) {
    let calls = octavia_calls(world);
    let most = table::most(change, count).expect("the table has the change");
    assert!(calls.len() <= most, "{change} {count}: {} calls, at most {most}: {calls:#?}", calls.len());
}

#[tokio::test(start_paused = true)]
async fn changes_cost_no_more_calls_than_the_table_says() {
    let mut world = small_cloud().await;
    for (numbers, count) in [(0..1, 1), (1..6, 5)] {
        create(&world, numbers.clone());
        until_served(&world, numbers).await;
        assert_within(&world, CREATE, count);
    }
    let mut ports = world.service(&name(0))["spec"]["ports"].clone();
    let third = json!({"name": "more", "port": 8080, "protocol": "TCP", "nodePort": 30999});
    ports.as_array_mut().unwrap().push(third);
    world.patch_to_rest(&name(0), &json!({"spec": {"ports": ports}})).await;
    assert_within(&world, PORT_ADDED, 1);
    node_joins(&world, "node-4").await;
    assert_within(&world, NODE_ADDED, 13);
    world.annotate_to_rest(&name(0), PROXY, Some("false")).await;
    assert_within(&world, PROXY_OFF, 1);
    for _ in 0..2 {
        world.restart_to_rest().await;
        assert_within(&world, RESTART, 6);
    }
    delete(&world, 0..6).await;
    assert_within(&world, DELETE, 6);
    create(&world, 0..1);
    until_served(&world, 0..1).await;
    world.take_calls();
    delete(&world, 0..1).await;
    assert_within(&world, DELETE, 1);
}

#[tokio::test(start_paused = true)]
async fn bursts_cost_no_more_calls_than_the_table_says() {
    let world = small_cloud().await;
    for count in [15, 30] {
        create(&world, 0..count);
        until_served(&world, 0..count).await;
        assert_within(&world, CREATE, count);
        let node = format!("joining-{count}");
        node_joins(&world, &node).await;
        assert_within(&world, NODE_ADDED, 2 * count);
        delete(&world, 0..count).await;
        assert_within(&world, DELETE, count);
        world.kube.delete("nodes", "", &node).unwrap();
        world.quiet().await;
        world.take_calls();
    }
}

/// A text that means nothing is told, and what the last full read showed stands in for it: nothing has to be read for it again.
#[tokio::test(start_paused = true)]
async fn a_wrong_annotation_makes_no_change_dearer() {
    let world = small_cloud().await;
    create(&world, 0..16);
    until_served(&world, 0..16).await;
    world.take_calls();
    let mut costs = Vec::new();
    for (node, switched) in [("right", 0), ("wrong", 1)] {
        node_joins(&world, node).await;
        let joined = octavia_calls(&world).len();
        world.annotate_to_rest(&name(switched), PROXY, Some("false")).await;
        let switched = octavia_calls(&world).len();
        costs.push((joined, switched));
        for number in 0..16 {
            world.annotate(&name(number), "loadbalancer.openstack.org/timeout-client-data", Some("soon"));
        }
        world.quiet().await;
        world.take_calls();
    }
    let [right, wrong] = costs[..] else { unreachable!() };
    assert!(wrong.0 * 4 <= right.0 * 5, "a node joins: {} calls, {} beside wrong values", right.0, wrong.0);
    assert!(wrong.1 * 4 <= right.1 * 5, "PROXY off: {} calls, {} beside a wrong value", right.1, wrong.1);
}

/// Listeners make way one after another. The quota is asked when that begins and before each of them, and not before other steps.
#[rstest]
#[case::without_a_limit(None, 60)]
#[case::with_a_limit(Some(100), 66)]
#[tokio::test(start_paused = true)]
async fn another_protocol_for_three_ports_asks_for_the_quota_only_where_it_may_matter(
    #[case] limit: Option<i64>,
    #[case] most: usize,
) {
    let ports: Vec<_> = (0..3)
        .map(|port| json!({"name": format!("p{port}"), "port": 80 + port, "protocol": "TCP"}))
        .collect();
    let world = World::serving(&service("web", json!({"spec": {"ports": ports}}))).await;
    world.cloud.set_delays(Duration::ZERO);
    if let Some(limit) = limit {
        ["listener", "pool"].iter().for_each(|resource| world.cloud.set_octavia_quota(resource, limit));
    }
    world.take_calls();
    world.annotate_to_rest("web", "x-forwarded-for", Some("true")).await;
    assert!(world.cloud.listeners().iter().all(|listener| listener["protocol"] == "HTTP"));
    let calls = world.take_calls().into_iter().filter(|call| call.side == Side::OpenStack);
    let calls: Vec<String> = calls.map(|call| call.name).collect();
    assert!(calls.len() <= most, "{} calls, at most {most}: {calls:#?}", calls.len());
}

/// Who the Service with the many ports is on its load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Alone,
    Owner,
    Guest,
}

/// The calls to OpenStack that PROXY protocol for `count` ports costs.
async fn cost_of_proxy(role: Role, count: u16) -> usize {
    let ports: Vec<_> = (0..count)
        .map(|port| json!({"name": format!("p{port}"), "port": 1000 + port, "protocol": "TCP"}))
        .collect();
    let mut wide = service("wide", json!({}));
    wide["spec"]["ports"] = json!(ports);
    let mut narrow = service("narrow", json!({}));
    let world = World::started().await;
    let (first, second) = match role {
        Role::Alone => (&mut wide, None),
        Role::Owner => (&mut wide, Some(&mut narrow)),
        Role::Guest => (&mut narrow, Some(&mut wide)),
    };
    world.serve(first).await;
    if let Some(second) = second {
        let name = lb_name(first["metadata"]["name"].as_str().unwrap());
        let id = world.cloud.load_balancer(&name).unwrap()["id"].clone();
        second["metadata"]["annotations"] = json!({"loadbalancer.openstack.org/load-balancer-id": id});
        world.serve(second).await;
    }
    world.annotate_to_rest("wide", PROXY, Some("v2")).await;
    let pools = world.cloud.pools();
    assert_eq!(pools.iter().filter(|pool| pool["protocol"] == "PROXYV2").count(), usize::from(count));
    world.take_calls().iter().filter(|call| call.side == Side::OpenStack).count()
}

/// What a change of all ports costs grows with their number, on a load balancer that others use too as well.
#[rstest]
#[tokio::test(start_paused = true)]
async fn twice_the_ports_cost_twice_the_calls(#[values(Role::Alone, Role::Owner, Role::Guest)] role: Role) {
    let (few, many) = (cost_of_proxy(role, 10).await, cost_of_proxy(role, 20).await);
    assert!(many <= few * 5 / 2, "10 ports: {few} calls, 20 ports: {many}");
}

//! A member that Octavia refuses is one member that is missing, in each pool. What an administrator set on a member stays with its machine.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, Lack};
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{id, member_names, put};
use crate::refused::on_port_80;
use crate::support::{ANNOTATION, PROXY, World, node};

const RESERVED: &str = "169.254.169.254";
const DRIFT_REPAIRED: &str = "LoadBalancerDriftRepaired";
const DRAINED: &str = "LoadBalancerMembersDrained";

/// Adds a node on a server of its own that reports this address.
fn add_node_at(world: &World, name: &str, address: &str) {
    let mut node = node(&world.cloud.add_node(name), "v1.36.0");
    node["status"]["addresses"][0]["address"] = json!(address);
    world.kube.create(&node).unwrap();
}

fn delete_node(world: &World, name: &str) {
    world.kube.delete("nodes", "", name).unwrap();
}

fn address_of(world: &World, node: &str) -> String {
    let node = world.kube.get("nodes", "", node).unwrap();
    node["status"]["addresses"][0]["address"].as_str().unwrap().to_owned()
}

/// The members of the pool that the only listener uses.
fn members(world: &World) -> Vec<Value> {
    let listener = &world.cloud.listeners()[0];
    world.cloud.members(listener["default_pool_id"].as_str().unwrap())
}

fn of_members(world: &World, attribute: &str) -> BTreeMap<String, Value> {
    let pair = |one: &Value| (one["name"].as_str().unwrap().to_owned(), one[attribute].clone());
    members(world).iter().map(pair).collect()
}

/// What an administrator does to take a node out of service.
fn set(world: &World, node: &str, change: &Value) {
    let pool = world.cloud.listeners()[0]["default_pool_id"].clone();
    let member = members(world).into_iter().find(|one| one["name"] == node).unwrap();
    let path = format!("/v2.0/lbaas/pools/{}/members/{}", pool.as_str().unwrap(), id(&member));
    put(world, &path, &json!({"member": change}));
}

fn drain(world: &World, nodes: &[&str]) {
    nodes.iter().for_each(|node| set(world, node, &json!({"weight": 0})));
}

async fn until_members(world: &World, expected: &[&str]) {
    world.until(&format!("members {expected:?}"), |world| member_names(world) == expected).await;
}

/// In the order of names, so that each pool and each try keep the same ones.
#[rstest]
#[case::two_wait(&["node-3", "node-4"])]
#[case::three_wait(&["node-3", "node-4", "node-5"])]
#[tokio::test(start_paused = true)]
async fn where_the_quota_of_members_is_used_up_a_node_that_goes_makes_room_for_one(#[case] waiting: &[&str]) {
    let mut world = World::serving(&on_port_80()).await;
    world.settings.plans = false;
    world.cloud.set_octavia_quota("member", 2);
    waiting.iter().for_each(|name| world.add_node(name, "v1.36.0"));
    world.until_warned("web", "quota").await;
    delete_node(&world, "node-1");
    until_members(&world, &["node-2", "node-3"]).await;
    world.pass(7200).await;
    assert_eq!(member_names(&world), ["node-2", "node-3"], "and it stays");
    world.cloud.set_octavia_quota("member", -1);
    let all = [&["node-2"], waiting].concat();
    world.until("all others", |world| member_names(world) == all).await;
}

/// By Octavia's default no member may have the address of the metadata service.
#[rstest]
#[case::with_additive_batches(None)]
#[case::without(Some(Lack::AdditiveBatches))]
#[tokio::test(start_paused = true)]
async fn a_node_that_octavia_refuses_keeps_no_other_away(#[case] lack: Option<Lack>) {
    let mut world = World::serving(&on_port_80()).await;
    world.settings.plans = false;
    lack.into_iter().for_each(|lack| world.cloud.lack(lack));
    add_node_at(&world, "node-3", RESERVED);
    world.add_node("node-4", "v1.36.0");
    until_members(&world, &["node-1", "node-2", "node-4"]).await;
    world.until_warned("web", RESERVED).await;
    world.add_node("node-5", "v1.36.0");
    until_members(&world, &["node-1", "node-2", "node-4", "node-5"]).await;
    delete_node(&world, "node-1");
    until_members(&world, &["node-2", "node-4", "node-5"]).await;
}

#[tokio::test(start_paused = true)]
async fn beside_a_node_that_octavia_refuses_all_others_can_be_replaced() {
    let mut world = World::serving(&on_port_80()).await;
    world.settings.plans = false;
    add_node_at(&world, "node-3", RESERVED);
    world.until_warned("web", RESERVED).await;
    world.add_node("node-4", "v1.36.0");
    delete_node(&world, "node-1");
    delete_node(&world, "node-2");
    until_members(&world, &["node-4"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_replaced_is_replaced_without_the_node_that_octavia_refuses() {
    let mut world = World::serving(&on_port_80()).await;
    world.settings.plans = false;
    add_node_at(&world, "node-3", RESERVED);
    world.until_warned("web", RESERVED).await;
    world.annotate("web", PROXY, Some("v2"));
    let is_proxied = |world: &World| world.cloud.pools().iter().all(|pool| pool["protocol"] == "PROXYV2");
    world.until("the pool is replaced", is_proxied).await;
    assert_eq!(member_names(&world), ["node-1", "node-2"]);
}

/// Octavia refuses a new load balancer as a whole, too.
#[rstest]
#[case::of_a_node(None, &["node-1", "node-2"])]
#[case::of_a_quota(Some(1), &["node-1"])]
#[tokio::test(start_paused = true)]
async fn a_new_service_is_served_without_the_member_that_is_refused(
    #[case] quota: Option<i64>,
    #[case] expected: &[&str],
) {
    let mut world = World::started().await;
    world.settings.plans = false;
    match quota {
        Some(quota) => world.cloud.set_octavia_quota("member", quota),
        None => add_node_at(&world, "node-3", RESERVED),
    }
    world.create(&on_port_80());
    until_members(&world, expected).await;
    world.until_published("web").await;
}

/// One that is refused is looked for once, and then rests with the pauses of any refusal.
#[tokio::test(start_paused = true)]
async fn what_is_refused_is_found_in_few_requests_and_asked_for_as_one() {
    let mut world = World::serving(&on_port_80()).await;
    world.settings.plans = false;
    let sent = Fault::new().method(Method::PUT).path("/members([?]|$)").latency(Duration::from_millis(1));
    let sent = world.cloud.faults().add(sent);
    for number in 10..26 {
        match number {
            17 => add_node_at(&world, "node-17", RESERVED),
            _ => world.add_node(&format!("node-{number}"), "v1.36.0"),
        }
    }
    world.until("all others are members", |world| member_names(world).len() == 17).await;
    world.quiet().await;
    let searched = world.cloud.faults().matched(sent);
    assert!(searched <= 1 + 1 + 2 * 4 + 2, "{searched} requests");
    world.pass(3600).await;
    let again = world.cloud.faults().matched(sent) - searched;
    assert!((1..=12).contains(&again), "it was sent {again} times in an hour");
}

/// Who replaces machines without a pause: the new Node is there before the old one goes.
#[rstest]
#[case::one(&[("node-1", "node-8")])]
#[case::all(&[("node-1", "node-8"), ("node-2", "node-9")])]
#[tokio::test(start_paused = true)]
async fn the_next_machine_at_an_address_is_not_drained(#[case] replaced: &[(&str, &str)]) {
    let world = World::serving(&on_port_80()).await;
    for (old, new) in replaced {
        drain(&world, &[old]);
        add_node_at(&world, new, &address_of(&world, old));
        world.pass(20).await;
        delete_node(&world, old);
        world.quiet().await;
        assert_eq!(of_members(&world, "weight").get(*new), Some(&json!(1)), "{:?}", world.cloud_state());
    }
    world.pass(7200).await;
    assert!(
        !world.warnings("web").iter().any(|one| one.contains(DRIFT_REPAIRED)),
        "{:#?}",
        world.warnings("web")
    );
}

#[rstest]
#[case::one(&[("node-1", "node-8")])]
#[case::all(&[("node-1", "node-8"), ("node-2", "node-9")])]
#[tokio::test(start_paused = true)]
async fn the_next_machine_at_an_address_is_not_drained_where_nobody_saw_it_come(
    #[case] replaced: &[(&str, &str)],
) {
    let mut world = World::serving(&on_port_80()).await;
    world.stop().await;
    for (old, new) in replaced {
        set(&world, old, &json!({"weight": 0, "backup": true, "admin_state_up": false}));
        let address = address_of(&world, old);
        delete_node(&world, old);
        add_node_at(&world, new, &address);
    }
    world.start_to_rest().await;
    for (_, new) in replaced {
        let of = |attribute| of_members(&world, attribute).get(*new).cloned();
        let (weight, backup, up) = (of("weight"), of("backup"), of("admin_state_up"));
        assert_eq!((weight, backup, up), (Some(json!(1)), Some(json!(false)), Some(json!(true))));
    }
}

/// The Node has the same name, and the process knows both servers.
#[rstest]
#[case::another_server(true, 1)]
#[case::the_same_one_with_a_region_before_it(false, 0)]
#[tokio::test(start_paused = true)]
async fn another_server_under_the_name_of_a_node_is_not_drained(
    #[case] is_another: bool,
    #[case] weight: u8,
) {
    let mut world = World::serving(&on_port_80()).await;
    world.settings.plans = false;
    drain(&world, &["node-1"]);
    let mut node = world.kube.get("nodes", "", "node-1").unwrap();
    delete_node(&world, "node-1");
    let server = node["spec"]["providerID"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let server = if is_another { "11111111-2222-4333-8444-555555555555".to_owned() } else { server };
    node["spec"]["providerID"] = json!(format!("openstack://RegionOne/{server}"));
    let metadata = json!({"name": "node-1"});
    node["metadata"] = metadata;
    world.kube.create(&node).unwrap();
    world.quiet().await;
    assert_eq!(of_members(&world, "weight")["node-1"], json!(weight));
}

/// Names of serial mode, of no Node and none at all say nothing about the machine.
#[rstest]
#[case::none("")]
#[case::of_nobody("Web server 1")]
#[case::of_serial_mode("member_node-1_10.0.0.11_30080")]
#[tokio::test(start_paused = true)]
async fn a_name_that_is_none_of_a_node_ends_no_drain(#[case] name: &str) {
    let mut world = World::serving(&on_port_80()).await;
    world.stop().await;
    set(&world, "node-1", &json!({"weight": 0, "name": name}));
    world.start_to_rest().await;
    assert_eq!(of_members(&world, "weight")["node-1"], json!(0));
}

#[rstest]
#[case::its_health_monitor_is_replaced("health-monitor-type", "TCP", json!({"weight": 0}))]
#[case::the_proxy_protocol_is_switched("proxy-protocol", "v2", json!({"weight": 0}))]
#[case::a_member_is_disabled("proxy-protocol", "v2", json!({"admin_state_up": false}))]
#[tokio::test(start_paused = true)]
async fn a_drained_node_stays_drained_when_its_pool_is_replaced(
    #[case] key: &str,
    #[case] value: &str,
    #[case] change: Value,
) {
    let world = World::serving(&on_port_80()).await;
    world.annotate("web", "enable-health-monitor", Some("true"));
    world.annotate_to_rest("web", "health-monitor-type", Some("TLS-HELLO")).await;
    let before = world.cloud.listeners()[0]["default_pool_id"].clone();
    set(&world, "node-1", &change);
    world.annotate_to_rest("web", &format!("{ANNOTATION}{key}"), Some(value)).await;
    assert_ne!(world.cloud.listeners()[0]["default_pool_id"], before);
    let (attribute, expected) = change.as_object().unwrap().iter().next().unwrap();
    assert_eq!(of_members(&world, attribute)["node-1"], *expected);
    assert_ne!(of_members(&world, attribute)["node-2"], *expected);
}

/// Until one takes connections again, whatever becomes of nodes.
#[rstest]
#[case::by_weight(json!({"weight": 0}))]
#[case::by_admin_state(json!({"admin_state_up": false}))]
#[tokio::test(start_paused = true)]
async fn a_port_none_of_whose_members_takes_connections_is_reported(#[case] change: Value) {
    const GAUGE: &str = "openstack_ccm_services_with_drained_pools";
    let world = World::serving(&on_port_80()).await;
    set(&world, "node-1", &change);
    world.pass(7200).await;
    assert!(world.warnings("web").is_empty(), "{:#?}", world.warnings("web"));
    set(&world, "node-2", &change);
    world.pass(3600).await;
    world.until_warned("web", DRAINED).await;
    assert!(world.metrics().contains(&format!("{GAUGE} 1")));
    delete_node(&world, "node-1");
    world.quiet().await;
    assert_eq!(member_names(&world), ["node-2"]);
    assert!(world.metrics().contains(&format!("{GAUGE} 1")), "it is so still");
    world.third_node_joins().await;
    assert!(world.metrics().contains(&format!("{GAUGE} 0")));
}

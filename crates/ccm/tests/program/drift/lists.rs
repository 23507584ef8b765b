//! One list of each kind serves all checks for drift.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::Fault;
use rstest::rstest;
use serde_json::{Value, json};

use super::EVERY_TEN_MINUTES;
use crate::contract::setup::{allowed_cidrs, annotated, attach, configured, floating_ip, id, put};
use crate::support::{Call, World, lb_name, service};

/// Longer than a check for drift takes to come, with its random part and that of the list.
const CHECKED: u64 = 900;
/// The list of the project, and not those by name or tag.
const LIST: &str = r"/loadbalancers\?project_id=";
const LIST_OF_FLOATING_IPS: &str = r"/floatingips\?.*project_id=.*limit=";

/// So many Services, each of which was read whole at its first check.
async fn serving(count: usize) -> World {
    let mut world = configured(|_| EVERY_TEN_MINUTES.to_owned()).await;
    world.settings.plans = false;
    (0..count).for_each(|number| world.create(&service(&name(number), json!({}))));
    for number in 0..count {
        world.until_published(&name(number)).await;
    }
    world.quiet().await;
    world.pass(CHECKED).await;
    world.take_calls();
    world
}

fn name(number: usize) -> String {
    format!("web-{number}")
}

fn listener_of(world: &World, name: &str) -> Value {
    let load_balancer = world.cloud.load_balancer(&lb_name(name)).unwrap();
    let is_its = |one: &Value| one["loadbalancers"][0]["id"] == load_balancer["id"];
    world.cloud.listeners().into_iter().find(is_its).unwrap()
}

fn set_limit(world: &World, name: &str, limit: i32) {
    let path = format!("/v2.0/lbaas/listeners/{}", id(&listener_of(world, name)));
    put(world, &path, &json!({"listener": {"connection_limit": limit}}));
    world.cloud.settle();
}

/// How many Services were read whole, once or more often.
fn read_whole(calls: &[Call]) -> usize {
    let members = calls.iter().filter(|call| !call.write && call.path.ends_with("/members"));
    members.map(|call| &call.path).collect::<BTreeSet<_>>().len()
}

fn of_octavia(calls: &[Call]) -> usize {
    calls.iter().filter(|call| call.octavia().is_some()).count()
}

#[tokio::test(start_paused = true)]
async fn checks_for_drift_of_many_services_take_a_few_lists_and_what_differs_is_read() {
    let world = serving(40).await;
    world.pass(CHECKED).await;
    let calls = world.take_calls();
    let floating_ips = calls.iter().filter(|call| call.path.contains("/floatingips")).count();
    assert_eq!(read_whole(&calls), 0);
    assert!(of_octavia(&calls) <= 10 && floating_ips <= 10, "{} and {floating_ips}", of_octavia(&calls));
    set_limit(&world, "web-7", 7);
    world.pass(CHECKED).await;
    assert_eq!(listener_of(&world, "web-7")["connection_limit"], -1);
    assert_eq!(read_whole(&world.take_calls()), 1, "the others did not change");
}

/// Where the list says nothing, each load balancer is asked for alone.
#[rstest]
#[case::lacks_them(LIST, 200, json!({"loadbalancers": []}))]
#[case::is_refused(LIST, 403, json!({"faultstring": "Policy does not allow this request to be performed."}))]
#[case::fails(LIST, 500, json!({"faultstring": "out of order"}))]
#[case::lacks_floating_ips(LIST_OF_FLOATING_IPS, 200, json!({"floatingips": []}))]
#[case::of_floating_ips_fails(LIST_OF_FLOATING_IPS, 500, json!({}))]
#[tokio::test(start_paused = true)]
async fn a_list_that(#[case] path: &str, #[case] status: u16, #[case] answer: Value) {
    let world = serving(3).await;
    world.cloud.faults().add(Fault::new().method(Method::GET).path(path).answer(status, answer));
    world.pass(CHECKED).await;
    let calls = world.take_calls();
    let is_alone = |call: &&Call| call.path.contains("/loadbalancers/") || call.path.contains("port_id=");
    let alone = calls.iter().filter(is_alone).count();
    assert!((3..=6).contains(&alone), "{alone}");
    assert_eq!(read_whole(&calls), 0, "nothing is concluded from it");
    set_limit(&world, "web-0", 7);
    world.pass(CHECKED).await;
    assert_eq!(listener_of(&world, "web-0")["connection_limit"], -1);
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"]);
    assert_eq!(world.cloud.load_balancers().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_takes_too_long_is_not_waited_for() {
    let world = serving(3).await;
    let slow = Fault::new().method(Method::GET).path(LIST).latency(Duration::from_secs(50));
    world.cloud.faults().add(slow);
    set_limit(&world, "web-0", 7);
    world.pass(CHECKED).await;
    assert_eq!(listener_of(&world, "web-0")["connection_limit"], -1);
}

/// The load balancer is the same, and the Service too; but what it asks for has another value in the cloud.
#[tokio::test(start_paused = true)]
async fn what_is_wanted_may_change_in_the_cloud() {
    const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let mut world = configured(|_| EVERY_TEN_MINUTES.to_owned()).await;
    world.settings.plans = false;
    world.serve(&annotated(&[(RANGES, "203.0.113.0/24"), ("allow-cluster-sources", "true")])).await;
    world.pass(CHECKED).await;
    let of_node = floating_ip(&world.cloud, "198.19.0.77", "of a node");
    attach(&world.cloud, &of_node, &world.cloud.nodes()[0].port_id);
    assert!(!allowed_cidrs(&world)[0].contains(&"198.19.0.77/32".to_owned()));
    // What was looked up is kept for ten minutes.
    world.pass(2 * CHECKED).await;
    assert!(allowed_cidrs(&world)[0].contains(&"198.19.0.77/32".to_owned()));
}

async fn node_joins(world: &World, node: &str) {
    world.add_node(node, "v1.36.0");
    let pools = world.cloud.pools();
    let has_it = |pool: &Value| {
        let members = world.cloud.members(pool["id"].as_str().unwrap());
        members.iter().any(|member| member["name"] == node)
    };
    world.until("the node is a member everywhere", |_| pools.iter().all(has_it)).await;
    world.quiet().await;
}

/// Nodes come and go all the time: after them, too, a list is enough.
#[tokio::test(start_paused = true)]
async fn after_a_node_joined_nothing_has_to_be_read_whole() {
    let world = serving(6).await;
    node_joins(&world, "node-3").await;
    world.take_calls();
    world.pass(3600).await;
    assert_eq!(read_whole(&world.take_calls()), 0);
    set_limit(&world, "web-4", 7);
    world.pass(CHECKED).await;
    assert_eq!(listener_of(&world, "web-4")["connection_limit"], -1);
}

/// What somebody changed before shows in no status, and is no part of what a node changes.
#[tokio::test(start_paused = true)]
async fn what_changed_before_a_node_joined_is_not_overlooked() {
    let world = serving(3).await;
    set_limit(&world, "web-1", 7);
    node_joins(&world, "node-3").await;
    assert_eq!(listener_of(&world, "web-1")["connection_limit"], 7, "statuses do not show it");
    world.pass(CHECKED).await;
    assert_eq!(listener_of(&world, "web-1")["connection_limit"], -1);
}

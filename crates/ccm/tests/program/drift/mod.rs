//! What is changed in the cloud behind a Service's back is put right after a while, and reported.

mod lists;

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, WorkerFault};
use rstest::rstest;
use serde_json::json;

use crate::contract::setup::{configured, id, load_balancer, member_names, only_floating_ip, put};
use crate::support::{World, lb_name, service};

/// Takes all members out of the only pool, as somebody with the same account could.
fn remove_members(world: &World) {
    let pool = world.cloud.pools()[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v2.0/lbaas/pools/{pool}/members");
    world.cloud.user().change("load-balancer", &path, &json!({"members": []}));
    world.cloud.settle();
    assert_eq!(world.members().len(), 0);
}

/// Defect: 66, better: the cloud is compared at an interval.
#[tokio::test(start_paused = true)]
async fn drift_is_repaired_after_the_interval_and_reported_once() {
    let world = configured(|_| "drift-check-interval=10m\n".to_owned()).await;
    world.serve(&service("web", json!({}))).await;
    remove_members(&world);
    world.pass(500).await;
    assert_eq!(world.members().len(), 0, "not before the interval");
    world.pass(300).await;
    assert_eq!(world.members().len(), 2, "with the random part, at most a fifth later");
    let warnings = world.warnings("web");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("LoadBalancerDriftRepaired") && warnings[0].contains("members"),
        "{warnings:?}"
    );
    let mut metrics = String::new();
    prometheus_client::encoding::text::encode(&mut metrics, &world.registry.lock().unwrap()).unwrap();
    assert!(metrics.contains("openstack_ccm_drift_repairs_total 1"), "{metrics}");
    world.pass(3600).await;
    assert_eq!(world.warnings("web").len(), 1);
}

/// What others list meanwhile is not what is there afterwards.
#[tokio::test(start_paused = true)]
async fn what_somebody_changes_while_all_look_is_put_right_when_octavia_has_done_it() {
    const LIMIT: &str = "loadbalancer.openstack.org/connection-limit";
    let world = World::started().await;
    let names: Vec<String> = (0..6).map(|number| format!("web-{number}")).collect();
    for name in &names {
        world.serve(&service(name, json!({}))).await;
    }
    let of_first = |world: &World| {
        let first = world.cloud.load_balancer(&lb_name("web-0")).unwrap();
        world.cloud.listeners().into_iter().find(|one| one["loadbalancers"][0]["id"] == first["id"])
    };
    let hold = world.cloud.faults().add_worker(WorkerFault::hold(None).of(&lb_name("web-0")));
    let listener = of_first(&world).unwrap();
    let path = format!("/v2.0/lbaas/listeners/{}", id(&listener));
    assert_eq!(world.cloud.user().delete("load-balancer", &path).0, 204);
    world.annotate("web-0", LIMIT, Some("100"));
    world.pass(5).await;
    world.cloud.faults().add(Fault::new().method(Method::GET).latency(Duration::from_millis(300)));
    names[1..].iter().for_each(|name| world.annotate(name, LIMIT, Some("100")));
    world.pass(5).await;
    world.cloud.faults().remove(hold);
    world.pass(20).await;
    assert_eq!(of_first(&world).expect("it is made again")["connection_limit"], 100);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_service_is_no_drift() {
    let world = World::serving(&service("web", json!({}))).await;
    world.annotate_to_rest("web", "loadbalancer.openstack.org/connection-limit", Some("100")).await;
    world.pass(7200).await;
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

#[tokio::test(start_paused = true)]
async fn with_an_interval_of_zero_nobody_looks() {
    let world = World::configured("drift-check-interval=0\n").await;
    world.serve(&service("web", json!({}))).await;
    remove_members(&world);
    world.pass(6 * 3600).await;
    assert_eq!(world.members().len(), 0);
}

/// Strangers are members in place of the nodes.
fn replace_members(world: &World) {
    let stranger = |address: &str| json!({"address": address, "protocol_port": 30080, "name": "stranger"});
    let members = json!({"members": [stranger("10.0.0.77"), stranger("10.0.0.78")]});
    put(world, &format!("/v2.0/lbaas/pools/{}/members", id(&world.cloud.pools()[0])), &members);
}

fn replace_nodes(world: &World) {
    world.kube.delete("nodes", "", "node-1").unwrap();
    world.add_node("node-3", "v1.36.0");
}

fn take_floating_ip_off(world: &World) {
    let path = format!("/v2.0/floatingips/{}", id(&only_floating_ip(world)));
    put(world, &path, &json!({"floatingip": {"port_id": null}}));
}

#[rstest]
#[case::members_were_replaced(replace_members)]
#[case::nodes_were_replaced(replace_nodes)]
#[case::the_floating_ip_was_taken_off(take_floating_ip_off)]
#[tokio::test(start_paused = true)]
async fn what_changed_while_nobody_was_at_work_is_put_right_by_the_next_start(#[case] change: fn(&World)) {
    let mut world = World::serving(&service("web", json!({}))).await;
    world.stop().await;
    change(&world);
    world.start_to_rest().await;
    let nodes = world.kube.list("nodes", "").unwrap();
    let nodes: Vec<_> = nodes.iter().map(|node| node["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(member_names(&world), nodes);
    assert_eq!(only_floating_ip(&world)["port_id"], load_balancer(&world)["vip_port_id"]);
}

const EVERY_TEN_MINUTES: &str = "drift-check-interval=10m\n";

fn set_limit(world: &World, limit: i32) {
    let path = format!("/v2.0/lbaas/listeners/{}", id(&world.cloud.listeners()[0]));
    put(world, &path, &json!({"listener": {"connection_limit": limit}}));
}

/// Whether somebody has read the members, which only a whole look does here, from a place in the log on.
fn was_read_whole(world: &World, from: usize) -> bool {
    world.cloud.log().calls()[from..].iter().any(|call| !call.is_write() && call.path.ends_with("/members"))
}

/// Octavia counts seconds: of two changes in one second, with a look between them, the second one does not show in `updated_at`.
#[tokio::test(start_paused = true)]
async fn of_two_changes_in_one_second_none_is_overlooked() {
    let mut world = configured(|_| EVERY_TEN_MINUTES.to_owned()).await;
    world.settings.plans = false;
    world.serve(&service("web", json!({}))).await;
    world.cloud.set_delays(Duration::ZERO);
    let updated = |world: &World| load_balancer(world)["updated_at"].clone();
    loop {
        // One that matters to nobody.
        set_limit(&world, -1);
        let (at, from) = (updated(&world), world.cloud.log().calls().len());
        tokio::time::sleep(Duration::from_millis(100)).await;
        if !was_read_whole(&world, from) {
            continue;
        }
        set_limit(&world, 7);
        if updated(&world) == at {
            break;
        }
        // The second was over.
        world.pass(1800).await;
    }
    world.pass(3600).await;
    assert_eq!(world.cloud.listeners()[0]["connection_limit"], -1);
}

/// As where the clock of the database was set back.
#[tokio::test(start_paused = true)]
async fn what_does_not_show_in_the_time_of_the_last_change_is_put_right_within_a_day() {
    let mut world = configured(|_| EVERY_TEN_MINUTES.to_owned()).await;
    world.settings.plans = false;
    world.serve(&service("web", json!({}))).await;
    world.pass(1800).await;
    let at = load_balancer(&world)["updated_at"].clone();
    set_limit(&world, 7);
    assert!(world.cloud.set_updated_at(&lb_name("web"), at.as_str().unwrap()));
    world.pass(25 * 3600).await;
    assert_eq!(world.cloud.listeners()[0]["connection_limit"], -1);
}

/// Where nothing changes, lists are enough but for once a day, and not for all Services at once.
#[tokio::test(start_paused = true)]
async fn everything_is_read_once_a_day_and_not_all_at_once() {
    let mut world = configured(|_| EVERY_TEN_MINUTES.to_owned()).await;
    world.settings.plans = false;
    for number in 0..12 {
        world.serve(&service(&format!("web-{number}"), json!({}))).await;
    }
    world.pass(3600).await;
    let mut by_hour = Vec::new();
    for _ in 0..24 {
        let from = world.cloud.log().calls().len();
        world.pass(3600).await;
        let calls = world.cloud.log().calls().split_off(from);
        by_hour.push(calls.iter().filter(|call| call.path.ends_with("/members")).count());
    }
    // One at either end of the day may be late.
    assert!((11..=13).contains(&by_hour.iter().sum::<usize>()), "{by_hour:?}");
    assert!(by_hour.iter().all(|count| *count <= 4), "{by_hour:?}");
}

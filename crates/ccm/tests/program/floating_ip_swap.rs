//! A Service that asks for another floating IP than the one it has: the old one goes when the new one stands.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, Traffic};
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{external_network, floating_ip, load_balancer};
use crate::support::{Stop, World, service};

const FORMER: &str = "198.19.0.11";
const ASKED: &str = "198.19.0.77";

fn ask(world: &World) {
    world.patch("web", &json!({"spec": {"loadBalancerIP": ASKED}}));
}

/// The address that leads to the load balancer.
fn attached(world: &World) -> Option<String> {
    let port = load_balancer(world)["vip_port_id"].clone();
    let all = world.cloud.floating_ips();
    let one = all.iter().find(|one| one["port_id"] == port)?;
    one["floating_ip_address"].as_str().map(str::to_owned)
}

fn addresses(world: &World) -> Vec<String> {
    let all = world.cloud.floating_ips();
    all.iter().map(|one| one["floating_ip_address"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_former_floating_ip_is_deleted_after_the_new_one_is_attached() {
    let world = World::serving(&service("web", json!({}))).await;
    floating_ip(&world.cloud, ASKED, "");
    ask(&world);
    world.until_served_at("web", &format!("{ASKED}(VIP)")).await;
    let writes = ["PUT floatingips/ID", "PUT floatingips/ID", "DELETE floatingips/ID"];
    assert_eq!(world.take_cloud_writes(), writes);
    assert_eq!(addresses(&world), [ASKED]);
}

#[rstest]
#[case::taken(409, json!({"NeutronError": {"type": "FloatingIPPortAlreadyAssociated", "message": "Cannot associate", "detail": ""}}))]
#[case::no_router(404, json!({"NeutronError": {"type": "ExternalGatewayForFloatingIPNotFound", "message": "External network is not reachable", "detail": ""}}))]
#[tokio::test(start_paused = true)]
async fn one_that_is_refused_leaves_the_former_one_in_its_place(#[case] status: u16, #[case] body: Value) {
    let world = World::serving(&service("web", json!({}))).await;
    let asked = floating_ip(&world.cloud, ASKED, "");
    let attach = Fault::new().service("network").method(Method::PUT).path(&format!("/floatingips/{asked}"));
    let refused = world.cloud.faults().add(attach.answer(status, body));
    ask(&world);
    world.until_warned("web", "attach floating IP").await;
    for _ in 0..3600 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(attached(&world).as_deref(), Some(FORMER));
    }
    assert_eq!(addresses(&world).len(), 2, "nothing is deleted");
    assert_eq!(world.ingress("web"), [format!("{FORMER}(VIP)")]);
    world.cloud.faults().remove(refused);
    // A refusal stands until something else is asked for.
    world.annotate("web", "loadbalancer.openstack.org/connection-limit", Some("7"));
    world.pass(600).await;
    assert_eq!(attached(&world).as_deref(), Some(FORMER));
    world.patch("web", &json!({"spec": {"loadBalancerIP": null}}));
    world.quiet_unplanned().await;
    ask(&world);
    world.until_ingress("web", &format!("{ASKED}(VIP)")).await;
    world.quiet_unplanned().await;
    assert_eq!(addresses(&world), [ASKED]);
}

/// Each attempt interrupts connections, and nobody knows whether the next one succeeds.
#[rstest]
#[tokio::test(start_paused = true)]
async fn one_that_fails_is_tried_once_more_and_then_once_an_hour(#[values(500, 503, 504)] status: u16) {
    let world = World::serving(&service("web", json!({}))).await;
    let asked = floating_ip(&world.cloud, ASKED, "");
    let attach = Fault::new().service("network").method(Method::PUT).path(&format!("/floatingips/{asked}"));
    let failing = world.cloud.faults().add(attach.answer(status, json!({})));
    let taken_off = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken_off);
    world.cloud.watch_writes(move |write| {
        let attached = |traffic: &Traffic| traffic.floating_ips.values().any(|one| one.port_id.is_some());
        let is_taken_off = attached(write.before) && !attached(write.after);
        count.fetch_add(usize::from(is_taken_off), Ordering::Relaxed);
    });
    ask(&world);
    world.until_warned("web", "one attempt an hour").await;
    for range in 0..6 {
        world.pass(500).await;
        world.patch("web", &json!({"spec": {"loadBalancerSourceRanges": [format!("192.0.2.{range}/32")]}}));
    }
    assert_eq!(taken_off.load(Ordering::Relaxed), 2, "once more after the usual pause");
    world.pass(7200).await;
    assert_eq!(taken_off.load(Ordering::Relaxed), 4, "then once an hour");
    assert_eq!(attached(&world).as_deref(), Some(FORMER));
    world.cloud.faults().remove(failing);
    world.pass(3700).await;
    assert_eq!(attached(&world).as_deref(), Some(ASKED));
}

/// The former one cannot go back at once either.
#[tokio::test(start_paused = true)]
async fn one_that_fails_while_neutron_is_down_costs_no_address() {
    let world = World::serving(&service("web", json!({}))).await;
    let asked = floating_ip(&world.cloud, ASKED, "");
    let attach = Fault::new().service("network").method(Method::PUT).path("/floatingips/[^/]+$");
    let failing = world.cloud.faults().add(attach.clone().without_body("null").answer(503, json!({})));
    ask(&world);
    world.until_warned("web", "attach floating IP").await;
    world.pass(60).await;
    assert_eq!(attached(&world), None);
    world.cloud.faults().remove(failing);
    let of_asked = attach.path(&format!("/floatingips/{asked}$"));
    world.cloud.faults().add(of_asked.answer(503, json!({})));
    world.pass(300).await;
    assert_eq!(attached(&world).as_deref(), Some(FORMER), "it comes back");
    assert_eq!(world.ingress("web"), [format!("{FORMER}(VIP)")]);
}

/// Neutron would refuse it, or take it away from what it serves.
#[rstest]
#[case::port_forwarding(json!({"port_forwardings": [{"id": "f", "protocol": "tcp", "external_port": 80}]}))]
#[case::router(json!({"router_id": "4bd16d0a-2f0b-4a9a-9a3c-1a3f0e8a9b11"}))]
#[tokio::test(start_paused = true)]
async fn one_with_port_forwardings_or_a_router_is_in_use(
    #[case] use_of_it: Value,
    #[values(false, true)] is_serving: bool,
) {
    let world = World::started().await;
    let asked = floating_ip(&world.cloud, ASKED, "");
    let mut shown = world.cloud.floating_ips().remove(0);
    shown.as_object_mut().unwrap().extend(use_of_it.as_object().unwrap().clone());
    let list =
        Fault::new().service("network").method(Method::GET).path(&format!("floating_ip_address={ASKED}"));
    world.cloud.faults().add(list.answer(200, json!({"floatingips": [shown]})));
    let asking = service("web", json!({"spec": {"loadBalancerIP": ASKED}}));
    if is_serving {
        world.serve(&service("web", json!({}))).await;
        ask(&world);
        world.until_warned("web", "keeps floating IP").await;
    } else {
        world.create(&asking);
        world.until_warned("web", "a router or a port forwarding already uses").await;
    }
    world.pass(900).await;
    let all = world.cloud.floating_ips();
    let used = all.iter().find(|one| one["id"] == asked.as_str()).unwrap();
    assert_eq!(used["port_id"], Value::Null, "it is left alone");
    assert_eq!(world.cloud.load_balancers().len(), usize::from(is_serving));
}

/// Nobody knows whether a router leads there.
#[tokio::test(start_paused = true)]
async fn one_on_another_network_is_not_tried_while_the_former_one_serves() {
    let world = World::serving(&service("web", json!({}))).await;
    let (network, _) = external_network(&world.cloud, "other", "203.0.113.0/24");
    // The project's own, or the program would not see it.
    let body = json!({"floatingip": {"floating_network_id": network, "floating_ip_address": "203.0.113.77",
        "project_id": world.cloud.seed().project_id}});
    world.cloud.admin().make("network", "/v2.0/floatingips", &body);
    world.patch("web", &json!({"spec": {"loadBalancerIP": "203.0.113.77"}}));
    world.until_warned_at_rest("web", "keeps floating IP").await;
    assert_eq!(world.take_cloud_writes(), [""; 0]);
    assert_eq!(attached(&world).as_deref(), Some(FORMER));
}

/// The Service has one of the two addresses in the end, whatever was made when the program died, and whether or not the new one can still be had.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_program_that_dies_meanwhile_leaves_the_next_one_all_it_needs(
    #[values(false, true)] taken: bool,
    #[values(Stop::Before as fn(usize) -> Stop, Stop::After as fn(usize) -> Stop)] stop: fn(usize) -> Stop,
) {
    for number in 0.. {
        let mut world = World::serving(&service("web", json!({}))).await;
        let asked = floating_ip(&world.cloud, ASKED, "");
        world.settings.plans = false;
        world.stop_at(stop(number));
        ask(&world);
        if world.survives().await {
            assert!(number > 5, "it was killed at each call");
            return;
        }
        world.kill().await;
        let is_attached = attached(&world).as_deref() == Some(ASKED);
        if taken && !is_attached {
            let port = json!({"port": {"network_id": world.cloud.seed().network_id}});
            let port = world.cloud.user().make("network", "/v2.0/ports", &port);
            let body = json!({"floatingip": {"port_id": port["port"]["id"]}});
            let path = format!("/v2.0/floatingips/{asked}");
            assert_eq!(world.cloud.user().put("network", &path, &body).0, 200);
        }
        world.start().await;
        let expected = if taken && !is_attached { FORMER } else { ASKED };
        let serves = |world: &World| attached(world).as_deref() == Some(expected);
        world.until("it has its address", serves).await;
        world.quiet_unplanned().await;
        assert!(serves(&world), "{number}");
        assert_eq!(world.ingress("web"), [format!("{expected}(VIP)")]);
    }
}

//! The load balancer's own metrics, for Prometheus.

use openstack_ccm_openstack_sim::Sim as Cloud;
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{annotated, configured, id, load_balancer};
use crate::support::{ANNOTATION, World, service};

const ASKED: [(&str, &str); 2] =
    [("metrics-enable", "true"), ("metrics-allow-cidrs", "10.0.0.0/8, 192.0.2.7/32")];

/// Port and sources of each listener for metrics.
fn metrics(cloud: &Cloud) -> Vec<String> {
    let of_metrics = |listener: &&Value| listener["protocol"] == "PROMETHEUS";
    let listeners = cloud.listeners();
    let shown = listeners.iter().filter(of_metrics).map(|listener| {
        assert!(listener["default_pool_id"].is_null());
        let mut sources: Vec<&str> =
            listener["allowed_cidrs"].as_array().unwrap().iter().map(|cidr| cidr.as_str().unwrap()).collect();
        sources.sort_unstable();
        format!("{} {}", listener["protocol_port"], sources.join(" "))
    });
    shown.collect()
}

fn set(world: &World, key: &str, value: Option<&str>) {
    world.annotate("web", &format!("{ANNOTATION}{key}"), value);
}

/// The listener for Prometheus comes when the load balancer is there, with those who may read it and no others; it changes and goes with the
/// annotations, and no port of the Service is touched.
///
/// Contract: O13, better: OCCM has no such annotations; they are proposed with these names, without the duty to say who may read.
#[tokio::test(start_paused = true)]
async fn the_load_balancer_shows_its_metrics_to_those_who_may_read_them() {
    let world = World::started().await;
    world.serve(&annotated(&ASKED)).await;
    assert_eq!(metrics(&world.cloud), ["9100 10.0.0.0/8 192.0.2.7/32"]);
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
    set(&world, "metrics-allow-cidrs", Some("10.0.0.0/8"));
    world.quiet().await;
    assert_eq!(metrics(&world.cloud), ["9100 10.0.0.0/8"]);
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"]);
    set(&world, "metrics-port", Some("9101"));
    world.quiet().await;
    assert_eq!(metrics(&world.cloud), ["9101 10.0.0.0/8"]);
    assert_eq!(world.take_cloud_writes(), ["POST listeners", "DELETE listeners/ID"]);
    set(&world, "metrics-enable", None);
    world.quiet().await;
    assert!(metrics(&world.cloud).is_empty());
    assert_eq!(world.cloud.listeners().len(), 1);
}

/// Nobody learns what passes a load balancer because somebody forgot to say who may, or said it wrong; what is there stays as it is.
#[rstest]
#[case::nobody_is_named("metrics-allow-cidrs", None, "set loadbalancer.openstack.org/metrics-allow-cidrs")]
#[case::no_network("metrics-allow-cidrs", Some("prometheus"), "is not a CIDR")]
#[case::a_port_of_the_service("metrics-port", Some("80"), "is a port of the Service")]
#[case::no_bool("metrics-enable", Some("yes"), "is neither")]
#[tokio::test(start_paused = true)]
async fn a_wrong_wish_changes_nothing(#[case] key: &str, #[case] value: Option<&str>, #[case] said: &str) {
    let mut world = World::serving(&annotated(&ASKED)).await;
    set(&world, key, value);
    world.until_warned("web", said).await;
    world.third_node_joins().await;
    world.restart_to_rest().await;
    assert_eq!(metrics(&world.cloud), ["9100 10.0.0.0/8 192.0.2.7/32"]);
    let pool = id(&world.cloud.pools()[0]);
    assert_eq!(world.cloud.members(&pool).len(), 3);
}

/// Where it cannot be, the Service is served without, and a Warning says why.
#[rstest]
#[case::ovn("ovn", &ASKED, "provider ovn does not support it")]
#[case::other_family("amphora", &[("metrics-enable", "true"), ("metrics-allow-cidrs", "2001:db8::/32")], "has the IP family of")]
#[tokio::test(start_paused = true)]
async fn where_it_cannot_be_the_service_goes_without(
    #[case] provider: &str,
    #[case] annotations: &[(&str, &str)],
    #[case] said: &str,
) {
    let world = configured(|world| {
        if provider == "ovn" {
            world.cloud.add_octavia_provider("ovn");
        }
        format!("lb-provider = {provider}\n")
    })
    .await;
    world.serve(&annotated(annotations)).await;
    assert!(metrics(&world.cloud).is_empty());
    world.assert_warned_once("web", said);
}

/// The metrics show all listeners and members: on a load balancer of others they are not a guest's to give away.
#[rstest]
#[case::the_owner_shows_them(&ASKED, &["9100 10.0.0.0/8 192.0.2.7/32"])]
#[case::the_owner_shows_none(&[], &[])]
#[tokio::test(start_paused = true)]
async fn a_guest_opens_no_metrics_of_others(
    #[case] owner: &[(&str, &str)],
    #[case] expected: &[&str],
    #[values("192.0.2.0/24", "0.0.0.0/0")] sources: &str,
) {
    let world = World::serving(&annotated(owner)).await;
    let shared = id(&load_balancer(&world));
    let keys = ["load-balancer-id", "metrics-enable", "metrics-allow-cidrs"];
    let values = [shared.as_str(), "true", sources];
    let annotations: serde_json::Map<String, Value> = keys
        .into_iter()
        .zip(values)
        .map(|(key, value)| (format!("{ANNOTATION}{key}"), json!(value)))
        .collect();
    let ports = json!([{"name": "http", "port": 81, "protocol": "TCP"}]);
    world
        .serve(&service("guest", json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}})))
        .await;
    assert_eq!(metrics(&world.cloud), expected);
    world.assert_warned_once("guest", "created for another Service");
    world.release("guest").await;
    assert_eq!(metrics(&world.cloud), expected);
}

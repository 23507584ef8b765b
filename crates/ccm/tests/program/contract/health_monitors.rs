//! Health monitors.

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::Sim as Cloud;
use rstest::rstest;
use serde_json::{Value, json};

use super::setup::{annotated, configured, id};
use crate::support::World;

const MONITOR: &str = "loadbalancer.openstack.org/enable-health-monitor";

async fn world_with(cloud_conf: &'static str) -> World {
    configured(|_| cloud_conf.to_owned()).await
}

fn monitors(world: &World) -> Vec<Value> {
    world.cloud.health_monitors()
}

fn only_monitor(world: &World) -> Value {
    let monitors = monitors(world);
    let [only] = monitors.as_slice() else { panic!("{monitors:#?}") };
    only.clone()
}

fn numbers(monitor: &Value) -> [u64; 4] {
    ["delay", "timeout", "max_retries", "max_retries_down"].map(|key| monitor[key].as_u64().unwrap())
}

fn monitor_ports(world: &World) -> Vec<Value> {
    world.members().iter().map(|member| member["monitor_port"].clone()).collect()
}

fn local(mut service: Value, protocol: &str) -> Value {
    service["spec"]["externalTrafficPolicy"] = json!("Local");
    service["spec"]["healthCheckNodePort"] = json!(32000);
    service["spec"]["ports"] = json!([{"name": "p", "port": 80, "protocol": protocol}]);
    service
}

/// `create-monitor` makes a monitor within the request that makes the load balancer.
///
/// Contract: M1, same.
#[tokio::test(start_paused = true)]
async fn m1_the_monitor_is_made_with_the_load_balancer() {
    let world = world_with("create-monitor=true\n").await;
    world.create(&annotated(&[]));
    world.until_served("web").await;
    let monitor = only_monitor(&world);
    assert_eq!((&monitor["type"], numbers(&monitor)), (&json!("TCP"), [5, 3, 1, 3]));
    assert_eq!(monitor["name"], "monitor_0_kube_service_c1_default_web");
    assert_eq!(world.take_cloud_writes()[0], "POST loadbalancers");
}

/// Annotations give the numbers of the monitor, and change them on a live one with one request.
///
/// Contract: M2, same.
#[tokio::test(start_paused = true)]
async fn m2_the_numbers_follow_the_annotations() {
    let world = world_with("create-monitor=true\n").await;
    let annotations = [
        ("health-monitor-delay", "10"),
        ("health-monitor-timeout", "5"),
        ("health-monitor-max-retries", "2"),
        ("health-monitor-max-retries-down", "4"),
    ];
    world.serve(&annotated(&annotations)).await;
    assert_eq!(numbers(&only_monitor(&world)), [10, 5, 2, 4]);
    world.annotate_to_rest("web", "health-monitor-delay", Some("20")).await;
    assert_eq!(world.take_cloud_writes(), ["PUT healthmonitors/ID"]);
    assert_eq!(numbers(&only_monitor(&world)), [20, 5, 2, 4]);
}

/// The annotation takes the monitor off and puts it back, and nothing else changes.
///
/// Contract: M3, same.
#[tokio::test(start_paused = true)]
async fn m3_the_annotation_switches_the_monitor() {
    let world = World::serving(&annotated(&[(MONITOR, "true")])).await;
    world.annotate_to_rest("web", MONITOR, Some("false")).await;
    assert_eq!(world.take_cloud_writes(), ["DELETE healthmonitors/ID"]);
    world.annotate_to_rest("web", MONITOR, Some("true")).await;
    assert_eq!(world.take_cloud_writes(), ["POST healthmonitors"]);
    assert_eq!(only_monitor(&world)["type"], "TCP");
}

/// The type of the check follows the protocol, the traffic policy, and what Octavia and the provider can do; members get
/// the health check node port only where it is asked.
///
/// Contract: M4, same.
/// Contract: M5, same.
/// Contract: M6, better: the members of a check that does not ask the health check node port are settled after one request.
/// Contract: M7, better: the same for the provider ovn.
/// Contract: M9, same.
#[rstest]
#[case::m4_udp("UDP", false, true, 30, "", Some("UDP-CONNECT"), None)]
#[case::m5_local("TCP", true, true, 30, "", Some("HTTP"), Some(32000))]
#[case::m6_local_udp("UDP", true, true, 30, "", Some("HTTP"), Some(32000))]
#[case::m6_local_udp_on_old_octavia("UDP", true, true, 15, "", Some("UDP-CONNECT"), None)]
#[case::m7_local_ovn("TCP", true, true, 30, "lb-provider=ovn\nlb-method=SOURCE_IP_PORT\n", Some("TCP"), None)]
#[case::m7_local_ovn_udp(
    "UDP",
    true,
    true,
    30,
    "lb-provider=ovn\nlb-method=SOURCE_IP_PORT\n",
    Some("UDP-CONNECT"),
    None
)]
#[case::m9_local_without_monitors("TCP", true, false, 30, "", None, None)]
#[case::m4_sctp("SCTP", false, true, 30, "", Some("SCTP"), None)]
#[tokio::test(start_paused = true)]
async fn m4_to_m9_the_type_follows_protocol_policy_and_cloud(
    #[case] protocol: &str,
    #[case] is_local: bool,
    #[case] enabled: bool,
    #[case] api: u8,
    #[case] cloud_conf: &str,
    #[case] kind: Option<&str>,
    #[case] monitor_port: Option<u16>,
) {
    let cloud = Cloud::builder().nodes(2).octavia_api(api).build();
    cloud.add_octavia_provider("ovn");
    let mut world = World::in_cloud(ApiVersion::V1_36, cloud);
    world.settings.cloud_conf = cloud_conf.to_owned();
    world.start().await;
    let mut service = annotated(&[(MONITOR, if enabled { "true" } else { "false" })]);
    service["spec"]["ports"][0]["protocol"] = json!(protocol);
    if is_local {
        service = local(service, protocol);
    }
    world.serve(&service).await;
    let types: Vec<Value> = monitors(&world).iter().map(|monitor| monitor["type"].clone()).collect();
    assert_eq!(types, kind.map(Value::from).into_iter().collect::<Vec<_>>());
    assert_eq!(monitor_ports(&world), vec![json!(monitor_port); 2]);
    if kind == Some("HTTP") {
        let monitor = only_monitor(&world);
        let check = [&monitor["url_path"], &monitor["http_method"], &monitor["expected_codes"]];
        assert_eq!(check, ["/healthz", "GET", "200"]);
    }
    world.restart_to_rest().await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new(), "nothing is sent twice");
}

/// A Service that keeps traffic on nodes with endpoints, and has no health monitor to find out which these are, gets an Event.
///
/// Defect: 81, better: an event says that nodes without endpoints get traffic too, and what to set.
#[tokio::test(start_paused = true)]
async fn local_traffic_without_a_monitor_is_named() {
    let world = World::serving(&local(annotated(&[]), "TCP")).await;
    world.assert_warned_once("web", "LoadBalancerLocalWithoutMonitor");
    world.assert_warned_once("web", MONITOR);
    world.annotate_to_rest("web", MONITOR, Some("true")).await;
    assert_eq!(only_monitor(&world)["type"], "HTTP");
    assert_eq!(world.warnings("web").len(), 1);
}

/// A live Service turns to the HTTP check and back, with a pool for each. The check of the node port never meets members without that port.
///
/// Contract: M8, better: OCCM changes the members first, so that the old check meets the new members.
#[tokio::test(start_paused = true)]
async fn m8_the_check_follows_the_traffic_policy() {
    let world = World::serving(&annotated(&[(MONITOR, "true")])).await;
    let local = json!({"spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 32000}});
    world.patch_to_rest("web", &local).await;
    let writes =
        ["POST pools", "PUT pools/ID/members", "POST healthmonitors", "PUT listeners/ID", "DELETE pools/ID"];
    assert_eq!(world.take_cloud_writes(), writes);
    assert_eq!(only_monitor(&world)["type"], "HTTP");
    assert_eq!(monitor_ports(&world), [32000, 32000]);
    let cluster = json!({"spec": {"externalTrafficPolicy": "Cluster", "healthCheckNodePort": null}});
    world.patch_to_rest("web", &cluster).await;
    assert_eq!(world.take_cloud_writes(), writes);
    assert_eq!(only_monitor(&world)["type"], "TCP");
    assert_eq!(monitor_ports(&world), [Value::Null, Value::Null]);
}

/// A monitor that somebody deleted is recreated when the Service is next reconciled.
///
/// Contract: M10, better: one that vanishes between two reads is no error.
#[tokio::test(start_paused = true)]
async fn m10_a_deleted_monitor_is_made_again() {
    let world = World::serving(&annotated(&[(MONITOR, "true")])).await;
    let path = format!("/v2.0/lbaas/healthmonitors/{}", id(&only_monitor(&world)));
    let (status, answer) = world.cloud.user().delete("load-balancer", &path);
    assert_eq!(status, 204, "{answer}");
    world.cloud.settle();
    assert!(monitors(&world).is_empty());
    world.annotate_to_rest("web", "connection-limit", Some("100")).await;
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID", "POST healthmonitors"]);
    assert_eq!(only_monitor(&world)["type"], "TCP");
}

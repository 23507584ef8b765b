//! `create-monitor = local`: monitors where connections get lost without them.

use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{annotated, configured, id, load_balancer};
use crate::support::{ANNOTATION, Stop, World, service};

const LOCAL: &str = "create-monitor = local\n";
const WITHOUT_MONITOR: &str = "LoadBalancerLocalWithoutMonitor";

fn with_policy(policy: &str, annotations: &[(&str, &str)]) -> Value {
    let mut object = annotated(annotations);
    object["spec"]["externalTrafficPolicy"] = json!(policy);
    if policy == "Local" {
        object["spec"]["healthCheckNodePort"] = json!(31000);
    }
    object
}

fn monitors(world: &World) -> Vec<String> {
    let monitors = world.cloud.health_monitors();
    monitors
        .iter()
        .map(|monitor| format!("{} {}", monitor["type"], monitor["url_path"]).replace('"', ""))
        .collect()
}

fn lacks_monitor(world: &World) -> bool {
    world.warnings("web").iter().any(|warning| warning.contains(WITHOUT_MONITOR))
}

/// A new Service that keeps traffic on nodes with pods has the monitor that shows which these are; others have none. The annotation has
/// the last word.
///
/// Contract: O4, better: with `create-monitor = local`, nodes without a pod get no traffic without a word from the user of the Service.
#[rstest]
#[case::local("Local", &[], &["HTTP /healthz"])]
#[case::cluster("Cluster", &[], &[])]
#[case::local_that_wants_none("Local", &[("enable-health-monitor", "false")], &[])]
#[case::cluster_that_wants_one("Cluster", &[("enable-health-monitor", "true")], &["TCP null"])]
#[tokio::test(start_paused = true)]
async fn local_services_have_a_monitor(
    #[case] policy: &str,
    #[case] annotations: &[(&str, &str)],
    #[case] expected: &[&str],
) {
    let world = configured(|_| LOCAL.to_owned()).await;
    world.serve(&with_policy(policy, annotations)).await;
    assert_eq!(monitors(&world), expected);
    assert_eq!(lacks_monitor(&world), policy == "Local" && expected.is_empty());
}

/// Load balancers that exist keep what they have when the operator turns it on, and are named.
#[rstest]
#[case::without("false", &[])]
#[case::with("true", &["TCP null"])]
#[tokio::test(start_paused = true)]
async fn what_exists_keeps_what_it_has(#[case] before: &str, #[case] expected: &[&str]) {
    let mut world = configured(|_| format!("create-monitor = {before}\n")).await;
    world.serve(&with_policy("Cluster", &[])).await;
    world.settings.cloud_conf = LOCAL.to_owned();
    world.restart_to_rest().await;
    assert_eq!(monitors(&world), expected);
    world
        .patch_to_rest(
            "web",
            &json!({"spec": {"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000}}),
        )
        .await;
    assert_eq!(monitors(&world).len(), expected.len());
    assert_eq!(lacks_monitor(&world), expected.is_empty());
    world.annotate_to_rest("web", "enable-health-monitor", Some("true")).await;
    assert_eq!(monitors(&world), ["HTTP /healthz"]);
}

/// The type of the check changes, and the controller is killed at any call, so that for a while there is no check: there is one in the end.
#[tokio::test(start_paused = true)]
async fn a_check_of_another_type_takes_the_place_of_one_that_is_there() {
    for number in 0.. {
        let mut world = configured(|_| LOCAL.to_owned()).await;
        world.serve(&with_policy("Local", &[])).await;
        world.settings.plans = false;
        world.stop_at(Stop::Before(number));
        world.annotate("web", "health-monitor-type", Some("PING"));
        if world.survives().await {
            assert!(number > 3, "it was killed at each call");
            assert_eq!(monitors(&world), ["PING null"]);
            return;
        }
        world.kill().await;
        world.start().await;
        world.quiet_unplanned().await;
        assert_eq!(monitors(&world), ["PING null"], "{number}");
    }
}

/// A port that is added later gets a monitor where the others have one; and where children are made one by one, a pool is not in use
/// before it has its monitor.
#[rstest]
#[case::trees("")]
#[case::one_by_one("provider-requires-serial-api-calls = true\n")]
#[tokio::test(start_paused = true)]
async fn all_ports_have_a_monitor(#[case] conf: &str) {
    let world = configured(|_| format!("{LOCAL}{conf}")).await;
    let mut object = with_policy("Local", &[]);
    let ports = |last: u16| {
        (80..=last).map(|port| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP", "nodePort": 30000 + port}))
    };
    object["spec"]["ports"] = ports(81).collect();
    world.serve(&object).await;
    assert_eq!(monitors(&world), ["HTTP /healthz"; 2]);
    world.patch_to_rest("web", &json!({"spec": {"ports": ports(82).collect::<Vec<_>>()}})).await;
    assert_eq!(monitors(&world), ["HTTP /healthz"; 3]);
}

/// A guest's pools are new on a load balancer that exists.
#[tokio::test(start_paused = true)]
async fn a_guest_has_a_monitor_too() {
    let world = configured(|_| LOCAL.to_owned()).await;
    world.serve(&with_policy("Cluster", &[])).await;
    let shared = id(&load_balancer(&world));
    world
        .serve(&service(
            "guest",
            json!({
                "metadata": {"annotations": {format!("{ANNOTATION}load-balancer-id"): shared}},
                "spec": {
                    "ports": [{"name": "http", "port": 81, "protocol": "TCP"}],
                    "externalTrafficPolicy": "Local",
                    "healthCheckNodePort": 31001,
                },
            }),
        ))
        .await;
    assert_eq!(monitors(&world), ["HTTP /healthz"]);
}

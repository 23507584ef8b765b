//! Verdicts of the canary, and what follows from them. Kubelets and pods are played.

use std::time::Duration;

use openstack_ccm_advertise::canary::CanaryOptions;
use openstack_ccm_canary::DAEMON_SETS;
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::objects::Canary;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_overlay::check::check;
use openstack_ccm_overlay::cleanup::cleanup;
use openstack_ccm_overlay::names::{CANARY_CLASS, CANARY_NAMESPACE};
use serde_json::{Value, json};

use crate::world::{World, settle};

const FIT: (bool, bool) = (true, true);
const UNFIT: (bool, bool) = (true, false);
/// Longer than reports of pods need to count after the status of the canary was written.
const TRUSTED: Duration = Duration::from_secs(180);

fn canary() -> Canary {
    Canary { namespace: CANARY_NAMESPACE.into(), image: "a/b:1".into(), addresses: Addresses::permanent() }
}

/// A cluster with a canary, whose pods report the same of both nodes.
async fn world(kubelets: &str, readiness: (bool, bool)) -> World {
    let mut world = World::new(ApiVersion::V1_36);
    for node in ["n1", "n2"] {
        let status = json!({"status": {"nodeInfo": {"kubeletVersion": kubelets}}});
        world.kube.patch_status("nodes", "", node, &status).unwrap();
    }
    world.kube.create(&canary().namespace()).unwrap();
    world.kube.create(&canary().daemon_set()).unwrap();
    for mut service in canary().services() {
        service["spec"]["loadBalancerClass"] = json!(CANARY_CLASS);
        world.kube.create(&service).unwrap();
    }
    set_readiness(&world, "n1", readiness);
    set_readiness(&world, "n2", readiness);
    let (namespace, addresses) = (CANARY_NAMESPACE.into(), Addresses::permanent());
    world.options.canary = Some(CanaryOptions { namespace, addresses, class: CANARY_CLASS });
    world.start().await;
    world.serve("app").await;
    tokio::time::sleep(TRUSTED).await;
    world
}

/// The uid of what makes the pods.
fn daemon_set(world: &World) -> String {
    let found = world.kube.get("daemonsets", CANARY_NAMESPACE, DAEMON_SETS[0]).unwrap();
    found["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// The pod of a node says something by its readiness.
fn set_readiness(world: &World, node: &str, (conclusive, fit): (bool, bool)) {
    let name = format!("canary-{node}");
    if world.kube.get("pods", CANARY_NAMESPACE, &name).is_err() {
        let mut pod = canary().daemon_pod(node, "t", &daemon_set(world));
        pod["metadata"]["name"] = json!(name);
        world.kube.create(&pod).unwrap();
    }
    let container = |name: &str, ready: bool| {
        let state = json!({"running": {}});
        json!({"name": name, "ready": ready, "restartCount": 0, "image": "", "imageID": "", "state": state})
    };
    let statuses = [container("conclusive", conclusive), container("fit", fit)];
    let status = json!({"status": {"phase": "Running", "containerStatuses": statuses}});
    world.kube.patch_status("pods", CANARY_NAMESPACE, &name, &status).unwrap();
}

fn of_canary(world: &World, service: &str) -> Value {
    let service = world.kube.get("services", CANARY_NAMESPACE, service).unwrap();
    service["status"]["loadBalancer"]["ingress"].clone()
}

const UNFIT_NODES: &str = "ip_mode_overlay_ip_mode_unfit_nodes";

#[tokio::test(start_paused = true)]
async fn a_node_that_was_measured_unfit_is_named_whatever_its_version() {
    let world = world("v1.36.0", UNFIT).await;
    assert_eq!(world.metric(UNFIT_NODES), "2");
    let events = world.events("app");
    let is_named = events.iter().any(|event| {
        event.contains("LoadBalancerIPModeNotHonoured") && event.contains("n1") && event.contains("canary")
    });
    assert!(is_named, "{events:?}");
    let report = check(&world.user, &world.options).await.unwrap().to_string();
    assert!(report.contains("Obstacle: 2 nodes") && report.contains("canary"), "{report}");
    for node in ["n1", "n2"] {
        set_readiness(&world, node, FIT);
    }
    tokio::time::sleep(TRUSTED).await;
    assert_eq!(world.metric(UNFIT_NODES), "0");
    let report = check(&world.user, &world.options).await.unwrap().to_string();
    assert!(report.contains("Nodes: all honour ipMode"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_were_measured_fit_need_no_hostname_whatever_their_version() {
    let mut world = world("v1.29.4", FIT).await;
    world.stop().await;
    world.options.hostname_suffix = Some("nip.example".into());
    world.start().await;
    settle().await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]));
    set_readiness(&world, "n2", UNFIT);
    tokio::time::sleep(TRUSTED).await;
    assert_eq!(world.ingress("app"), json!([{"hostname": "203.0.113.10.nip.example"}]));
}

/// It measures by the modes of its own Services, which mean nobody's load balancer.
#[tokio::test(start_paused = true)]
async fn nobody_takes_the_modes_of_the_canary_away() {
    let mut world = world("v1.36.0", FIT).await;
    world.options.rules.labels = openstack_ccm_overlay::selector::parse("!internal").unwrap();
    world.stop().await;
    world.start().await;
    settle().await;
    assert_eq!(of_canary(&world, "control")[0]["ipMode"], "VIP");
    assert_eq!(of_canary(&world, "subject")[0]["ipMode"], "Proxy");
    world.stop().await;
    let given_back = cleanup(&world.user, None).await.unwrap().given_back;
    assert_eq!(given_back.iter().map(ToString::to_string).collect::<Vec<_>>(), ["default/app"]);
    assert_eq!(of_canary(&world, "subject")[0]["ipMode"], "Proxy");
}

//! The canary and what follows from its verdicts. Kubelets and pods are played.

use std::time::Duration;

use openstack_ccm_advertise::canary::CanaryOptions;
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::objects::Canary;
use openstack_ccm_canary::{CLASS, DAEMON_SETS, NAMESPACE, SUBJECT};
use openstack_ccm_core::advertise::{Needs, Path, Preference};
use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::{Value, json};

use crate::base::until;
use crate::world::{World, settle};

const BY_PROXY: &str = "203.0.113.10(Proxy)";
const BY_HOSTNAME: &str = "203.0.113.10.example.org";
const FIT: Option<(bool, bool)> = Some((true, true));
const UNFIT: Option<(bool, bool)> = Some((true, false));

fn canary() -> Canary {
    Canary { namespace: NAMESPACE.into(), image: "a/b:1".into(), addresses: Addresses::permanent() }
}

/// A controller that keeps a canary, and the namespace with its Services.
async fn world(version: ApiVersion, kubelets: &str) -> World {
    let mut world = World::new(version);
    for node in ["n1", "n2"] {
        world.patch_node_status(node, json!({"status": {"nodeInfo": {"kubeletVersion": kubelets}}})).await;
    }
    let options =
        CanaryOptions { namespace: NAMESPACE.into(), addresses: Addresses::permanent(), class: CLASS };
    world.options.canary = Some(options);
    let suffix = Preference { hostname_suffix: Some("example.org".into()), ..Preference::default() };
    world.cloud.publish_by(Path::ThroughLoadBalancer(Needs::ProxyProtocol), suffix);
    make(&world);
    world
}

fn make(world: &World) {
    world.kube.create(&canary().namespace()).unwrap();
    world.kube.create(&canary().daemon_set()).unwrap();
    for service in canary().services() {
        world.kube.create(&service).unwrap();
    }
}

/// The uid of what makes the pods.
fn daemon_set(world: &World) -> String {
    let found = world.kube.get("daemonsets", NAMESPACE, DAEMON_SETS[0]).unwrap();
    found["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// The pod of a node reports the readiness of `conclusive` and of `fit`, or that it does not run.
fn set_readiness(world: &World, node: &str, readiness: Option<(bool, bool)>) {
    let name = format!("canary-{node}");
    if world.kube.get("pods", NAMESPACE, &name).is_err() {
        let mut pod = canary().daemon_pod(node, "t", &daemon_set(world));
        pod["metadata"]["name"] = json!(name);
        world.kube.create(&pod).unwrap();
    }
    report(world, &name, readiness);
}

fn report(world: &World, pod: &str, readiness: Option<(bool, bool)>) {
    let container = |name: &str, ready: bool| {
        let state =
            if readiness.is_some() { json!({"running": {}}) } else { json!({"terminated": {"exitCode": 1}}) };
        json!({"name": name, "ready": ready, "restartCount": 0, "image": "", "imageID": "", "state": state})
    };
    let (conclusive, fit) = readiness.unwrap_or_default();
    let statuses = [container("conclusive", conclusive), container("fit", fit)];
    let status = json!({"status": {"phase": "Running", "containerStatuses": statuses}});
    world.kube.patch_status("pods", NAMESPACE, pod, &status).unwrap();
}

fn subject(world: &World) -> Value {
    world.kube.get("services", NAMESPACE, SUBJECT).unwrap()["status"]["loadBalancer"]["ingress"].clone()
}

/// The leader has written the status, and the pods had time to look.
async fn looked_at(world: &World) {
    until("the status is written", async || subject(world)[0]["ipMode"] == "Proxy").await;
    tokio::time::sleep(Duration::from_secs(120)).await;
}

fn all_are_fit(world: &World) {
    ["n1", "n2"].iter().for_each(|node| set_readiness(world, node, FIT));
}

/// A Service that is published with `Proxy`, because the canary saw that all nodes honour it.
async fn published_by_proxy(version: ApiVersion, kubelets: &str) -> World {
    let mut world = world(version, kubelets).await;
    world.start().await;
    all_are_fit(&world);
    looked_at(&world).await;
    world.create("app").await;
    world.until_ingress("app", BY_PROXY).await;
    world
}

fn reasons(world: &World, namespace: &str, object: &str) -> Vec<String> {
    let events = world.kube.list("events", namespace).unwrap_or_default();
    let about = events.iter().filter(|event| event["involvedObject"]["name"] == object);
    about.map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

/// How often each Event about an object was written.
fn counts(world: &World, namespace: &str, name: &str) -> Vec<i64> {
    let events = world.kube.list("events", namespace).unwrap();
    let about = events.iter().filter(|event| event["involvedObject"]["name"] == name);
    about.map(|event| event["count"].as_i64().unwrap_or_default()).collect()
}

/// kube-proxy 1.29 with its gate on: the version says no, the canary says yes, and no flag is needed.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_seen_to_honour_the_mode_is_fit_whatever_its_version() {
    let mut world = world(ApiVersion::V1_29_GATE_ON, "v1.29.3").await;
    world.start().await;
    world.create("app").await;
    world.until_ingress("app", BY_HOSTNAME).await;
    all_are_fit(&world);
    world.until_ingress("app", BY_PROXY).await;
    settle().await;
    let of_node = "openstack_ccm_node_ip_mode{node=\"n1\",verdict=\"fit\",source=\"canary\"}";
    assert_eq!(world.metric(of_node), "1");
}

/// Whoever may make pods in the namespace of the canary is not asked, even if they write the name of its DaemonSet into them.
#[rstest]
#[case::without_owner(None)]
#[case::of_a_forged_owner(Some("00000000-0000-4000-8000-000000000000"))]
#[tokio::test(start_paused = true)]
async fn a_pod_that_the_daemon_set_did_not_make_counts_for_nothing(#[case] owner: Option<&str>) {
    let world = published_by_proxy(ApiVersion::V1_36, "v1.36.3").await;
    let mut pod =
        owner.map_or_else(|| canary().pod("n2", "t"), |owner| canary().daemon_pod("n2", "t", owner));
    pod["metadata"]["name"] = json!("canary-of-somebody");
    world.kube.create(&pod).unwrap();
    report(&world, "canary-of-somebody", UNFIT);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.ingress("app").await, [BY_PROXY]);
    assert_eq!(reasons(&world, "default", "n2"), Vec::<String>::new());
}

/// The pods of a DaemonSet that was deleted and made again are those of the new one.
#[tokio::test(start_paused = true)]
async fn a_daemon_set_that_is_made_again_is_asked_instead_of_the_old_one() {
    let world = published_by_proxy(ApiVersion::V1_36, "v1.36.3").await;
    world.kube.delete("daemonsets", NAMESPACE, DAEMON_SETS[0]).unwrap();
    world.kube.create(&canary().daemon_set()).unwrap();
    settle().await;
    let mut pod = canary().daemon_pod("n2", "t", &daemon_set(&world));
    pod["metadata"]["name"] = json!("canary-of-the-new-one");
    world.kube.create(&pod).unwrap();
    report(&world, "canary-of-the-new-one", UNFIT);
    world.until_ingress("app", BY_HOSTNAME).await;
}

/// A kubelet of 1.36 beside an old kube-proxy: the version lies, and an Event names the node.
#[tokio::test(start_paused = true)]
async fn a_node_whose_version_lies_turns_the_publication_until_it_is_fit() {
    let mut world = published_by_proxy(ApiVersion::V1_36, "v1.36.3").await;
    world.stop().await;
    world.options.resync = Some(Duration::from_secs(1800));
    world.start().await;
    set_readiness(&world, "n2", UNFIT);
    world.until_ingress("app", BY_HOSTNAME).await;
    settle().await;
    let warned = world.events("app").join("\n");
    assert!(warned.contains("node n2 does not honour ipMode: the canary found"), "{warned}");
    assert_eq!(reasons(&world, "default", "n2"), ["ServiceProxyIgnoresIPMode"]);
    // As often as the cloud is compared.
    tokio::time::sleep(Duration::from_secs(2 * 1800 + 600)).await;
    assert_eq!(reasons(&world, "default", "n2"), ["ServiceProxyIgnoresIPMode"]);
    assert_eq!(counts(&world, "default", "n2"), [3]);
    set_readiness(&world, "n2", FIT);
    world.until_ingress("app", BY_PROXY).await;
    settle().await;
    assert_eq!(reasons(&world, "default", "n2"), ["ServiceProxyIgnoresIPMode", "ServiceProxyHonoursIPMode"]);
}

/// What was known before the leader changed is known at its start: nothing turns over.
#[tokio::test(start_paused = true)]
async fn a_new_leader_knows_the_verdicts_before_it_publishes() {
    let mut world = published_by_proxy(ApiVersion::V1_29_GATE_ON, "v1.29.3").await;
    world.kill().await;
    world.wire.journal();
    world.start().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.ingress("app").await, [BY_PROXY]);
    let journal = world.wire.journal();
    assert!(!journal.iter().any(|line| line.contains("ingress")), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn verdicts_outlive_their_pods_for_a_while_and_then_versions_count_again() {
    let world = published_by_proxy(ApiVersion::V1_29_GATE_ON, "v1.29.3").await;
    // A rollout replaces them.
    for node in ["n1", "n2"] {
        world.kube.delete("pods", NAMESPACE, &format!("canary-{node}")).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(world.ingress("app").await, [BY_PROXY]);
    all_are_fit(&world);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.ingress("app").await, [BY_PROXY]);
    // They do not come back.
    ["n1", "n2"].iter().for_each(|node| set_readiness(&world, node, None));
    tokio::time::sleep(Duration::from_secs(310)).await;
    assert_eq!(world.ingress("app").await, [BY_HOSTNAME]);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_writer_is_noticed_and_reported_and_not_fought() {
    let world = published_by_proxy(ApiVersion::V1_29_GATE_ON, "v1.29.3").await;
    let foreign = json!([{"ip": "203.0.113.99", "ipMode": "VIP"}]);
    let status = json!({"status": {"loadBalancer": {"ingress": foreign}}});
    world.kube.patch_status("services", NAMESPACE, SUBJECT, &status).unwrap();
    // Its address makes every node look unfit, which counts for nothing.
    ["n1", "n2"].iter().for_each(|node| set_readiness(&world, node, UNFIT));
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(world.ingress("app").await, [BY_PROXY]);
    assert_eq!(subject(&world), foreign);
    assert_eq!(reasons(&world, NAMESPACE, SUBJECT), ["CanaryStatusOverwritten"]);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(world.ingress("app").await, [BY_HOSTNAME], "versions count");
    // It gives up.
    all_are_fit(&world);
    world
        .kube
        .patch_status("services", NAMESPACE, SUBJECT, &json!({"status": {"loadBalancer": null}}))
        .unwrap();
    world.until_ingress("app", BY_PROXY).await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_writer_is_named_again_as_long_as_its_status_stands() {
    let mut world = published_by_proxy(ApiVersion::V1_36, "v1.36.3").await;
    world.stop().await;
    world.options.resync = Some(Duration::from_secs(1800));
    world.start().await;
    let foreign = |address: &str| {
        let entries = json!([{"ip": address, "ipMode": "VIP"}]);
        let status = json!({"status": {"loadBalancer": {"ingress": entries}}});
        world.kube.patch_status("services", NAMESPACE, SUBJECT, &status).unwrap();
    };
    foreign("203.0.113.99");
    tokio::time::sleep(Duration::from_secs(60)).await;
    foreign("203.0.113.98");
    tokio::time::sleep(Duration::from_secs(1700)).await;
    assert_eq!(counts(&world, NAMESPACE, SUBJECT), [1]);
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(counts(&world, NAMESPACE, SUBJECT), [2]);
    let none = json!({"status": {"loadBalancer": null}});
    world.kube.patch_status("services", NAMESPACE, SUBJECT, &none).unwrap();
    tokio::time::sleep(Duration::from_secs(7200)).await;
    assert_eq!(counts(&world, NAMESPACE, SUBJECT), [2], "it is over");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_deleted_under_way_leaves_the_versions_and_may_come_back() {
    let world = published_by_proxy(ApiVersion::V1_29_GATE_ON, "v1.29.3").await;
    for (resource, names) in [("pods", ["canary-n1", "canary-n2"]), ("services", ["control", "subject"])] {
        names.iter().for_each(|name| drop(world.kube.delete(resource, NAMESPACE, name).unwrap()));
    }
    world.kube.delete("namespaces", "", NAMESPACE).unwrap();
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(world.ingress("app").await, [BY_HOSTNAME]);
    make(&world);
    all_are_fit(&world);
    world.until_ingress("app", BY_PROXY).await;
}

/// A server that drops the mode makes every node look unfit: that is no news of the nodes, and there is no Event.
#[tokio::test(start_paused = true)]
async fn where_the_server_drops_the_mode_nodes_are_not_blamed() {
    let mut world = world(ApiVersion::V1_29, "v1.36.3").await;
    world.start().await;
    ["n1", "n2"].iter().for_each(|node| set_readiness(&world, node, UNFIT));
    world.create("app").await;
    world.until_ingress("app", BY_HOSTNAME).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.metric("openstack_ccm_ip_mode_unfit_nodes"), "0");
    assert!(reasons(&world, "default", "n1").is_empty());
}

/// Nobody waits for a canary that is not there.
#[tokio::test(start_paused = true)]
async fn without_its_namespace_the_controller_works() {
    let mut world = world(ApiVersion::V1_36, "v1.36.3").await;
    let (namespace, addresses) = ("nowhere".into(), Addresses::permanent());
    world.options.canary = Some(CanaryOptions { namespace, addresses, class: CLASS });
    world.start().await;
    world.create("app").await;
    world.until_ingress("app", BY_PROXY).await;
}

/// On a large cluster verdicts that go to and fro turn the publication a few times and not each time, and cost the API
/// server nothing.
#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_with_verdicts_that_flap_do_not_turn_the_publication_each_time() {
    let mut world = world(ApiVersion::V1_36, "v1.36.3").await;
    let nodes: Vec<String> = (0..1000).map(|number| format!("w{number}")).collect();
    for node in &nodes {
        world.create_node(node, "v1.36.3");
        set_readiness(&world, node, FIT);
    }
    all_are_fit(&world);
    world.start().await;
    looked_at(&world).await;
    world.create("app").await;
    world.until_ingress("app", BY_PROXY).await;
    let counted = "openstack_ccm_node_ip_mode{node=\"\",verdict=\"fit\",source=\"canary\"}";
    assert_eq!(world.metric(counted), "1002");
    world.wire.journal();
    // For an hour, a handful of them at a time.
    for minute in 0..60 {
        for node in nodes.iter().skip(minute % 5).step_by(200) {
            set_readiness(&world, node, if minute % 2 == 0 { UNFIT } else { FIT });
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let journal = world.wire.journal();
    let turns = journal.iter().filter(|line| line.contains("ingress")).count();
    assert!((1..=4).contains(&turns), "{turns} {journal:#?}");
    assert!(journal.len() < 500, "{} requests", journal.len());
}

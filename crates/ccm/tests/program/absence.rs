//! Kubernetes is doubted as the cloud is: what it does not show any more was not asked for.

use std::time::Duration;

use openstack_ccm_kube_sim::{ApiVersion, merge_patch};
use openstack_ccm_manager::health::Probe;
use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{annotated, member_names};
use crate::support::{ANNOTATION, PROXY, World, node, service};

const HOUR: Duration = Duration::from_secs(3600);

fn held(world: &World) -> String {
    let metrics = world.metrics();
    let name = "openstack_ccm_services_held{reason=\"service_vanished\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(name)).expect("the metric").to_owned()
}

async fn serving(count: usize) -> World {
    let mut world = World::new(ApiVersion::V1_36);
    world.start().await;
    for number in 0..count {
        world.create(&service(&format!("web-{number}"), json!({})));
    }
    for number in 0..count {
        world.until_published(&format!("web-{number}")).await;
    }
    world.quiet().await;
    world.take_calls();
    world
}

/// The Service asks for PROXY protocol, and its pool is replaced.
async fn switch_on_proxy(world: &World) {
    world.annotate("web", PROXY, Some("v2"));
    world
        .until("the pool has the other protocol", |world| {
            let pools = world.cloud.pools();
            pools.len() == 1 && pools[0]["protocol"] == "PROXYV2"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_without_our_services_costs_no_load_balancer_and_no_floating_ip() {
    let world = serving(3).await;
    for number in 0..3 {
        world.kube.lose("services", "default", &format!("web-{number}")).unwrap();
    }
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!((world.cloud.load_balancers().len(), world.cloud.floating_ips().len()), (3, 3));
    assert_eq!(held(&world), "3");
    let orphans = world.metrics();
    assert!(orphans.contains("openstack_ccm_load_balancers_without_service 3"), "{orphans}");
}

fn with_another_port() -> Value {
    json!({"spec": {"ports": [
        {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
        {"name": "https", "port": 443, "protocol": "TCP", "nodePort": 30443},
    ]}})
}

#[rstest]
#[case::before_it_got_another_port(json!({}), with_another_port())]
#[case::before_it_got_our_type_again(
    json!({"spec": {"type": "ClusterIP"}}),
    json!({"spec": {"type": "LoadBalancer"}})
)]
#[tokio::test(start_paused = true)]
async fn a_list_that_shows_a_service_as_it_was_takes_nothing_away(#[case] before: Value, #[case] now: Value) {
    let world = serving(1).await;
    world.patch("web-0", &before);
    world.answer_lists(&world.kube.list("services", "").unwrap(), 3);
    world.patch_to_rest("web-0", &now).await;
    world.take_calls();
    let state = world.state();
    // All that was listed or watched before is too old.
    world.kube.restore(&world.kube.backup());
    world.pass(60).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(world.state(), state);
}

/// After the restoration of a backup, the Service itself is what it was.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_restored_to_what_it_was_is_served_as_that() {
    let world = serving(1).await;
    let before = world.kube.backup();
    world.patch("web-0", &with_another_port());
    world.until("it has two listeners", |world| world.cloud.listeners().len() == 2).await;
    world.quiet().await;
    world.kube.restore(&before);
    world.until("it has one listener", |world| world.cloud.listeners().len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_on_purpose_goes_as_fast_as_ever() {
    let world = serving(3).await;
    let start = tokio::time::Instant::now();
    for number in 0..3 {
        world.delete(&format!("web-{number}"));
    }
    world.until("all are gone", |world| world.cloud.load_balancers().is_empty()).await;
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    world.quiet().await;
    assert_eq!(held(&world), "0");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_leads_to_another_cluster_is_said_by_readiness_and_nothing_is_done() {
    let world = serving(2).await;
    world.kube.set_cluster_uid("11111111-2222-4333-8444-555555555555").unwrap();
    world.kube.lose("services", "default", "web-0").unwrap();
    world.create(&service("theirs", json!({})));
    tokio::time::sleep(HOUR).await;
    world.delete("web-1");
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    assert_eq!(world.cloud.load_balancers().len(), 2);
    let (ready, lines) = world.health.report(Probe::Readiness, &[]);
    assert!(!ready);
    assert!(
        lines.contains(
            "[-]cluster failed: the API server now belongs to another cluster: the namespace kube-system has uid"
        ),
        "{lines}"
    );
}

const SELECTOR: &str = "node-selector";

fn without_nodes(world: &World) -> String {
    let metrics = world.metrics();
    let name = "openstack_ccm_services_without_nodes ";
    metrics.lines().find_map(|line| line.strip_prefix(name)).expect("the metric").to_owned()
}

/// How all nodes of a Service go at once.
#[derive(Clone, Copy, Debug)]
enum AllGone {
    Lost,
    Excluded,
    Deleting,
    Selector,
}

impl AllGone {
    fn happens(self, world: &World) {
        for node in ["node-1", "node-2"] {
            let patch = |patch| drop(world.kube.patch("nodes", "", node, &patch).unwrap());
            match self {
                Self::Lost => world.kube.lose("nodes", "", node).unwrap(),
                Self::Excluded => patch(json!({"metadata": {"labels": {
                    "node.kubernetes.io/exclude-from-external-load-balancers": "true"}}})),
                Self::Deleting => {
                    patch(json!({"metadata": {"finalizers": ["example.org/kept"]}}));
                    world.kube.delete("nodes", "", node).unwrap();
                }
                Self::Selector => {
                    world.annotate("web", &format!("{ANNOTATION}{SELECTOR}"), Some("pool=egde"));
                }
            }
        }
    }
}

#[rstest]
#[case::lost(AllGone::Lost, &["node-1", "node-2"], "the cluster has no Nodes")]
#[case::excluded(AllGone::Excluded, &["node-2"],
    "2 Nodes: 2 have the label node.kubernetes.io/exclude-from-external-load-balancers")]
#[case::deleting(AllGone::Deleting, &["node-2"], "2 Nodes: 2 are being deleted")]
#[case::selector(AllGone::Selector, &["node-1", "node-2"],
    "node-selector \"pool=egde\" matches none of the 2 Nodes that take traffic")]
#[tokio::test(start_paused = true)]
async fn an_empty_set_of_nodes_empties_no_pool_and_says_why_it_is_empty(
    #[case] how: AllGone,
    #[case] kept: &[&str],
    #[case] why: &str,
) {
    let world = World::serving(&annotated(&[])).await;
    how.happens(&world);
    world.quiet().await;
    tokio::time::sleep(HOUR).await;
    // Those that went one after the other left one after the other.
    let members = member_names(&world);
    assert!(members == kept || members == ["node-1", "node-2"], "{members:?}");
    let warnings = world.warnings("web");
    assert!(warnings.iter().any(|warning| warning.contains(why)), "{warnings:?}");
    assert_eq!(without_nodes(&world), "1");
    // What else the Service asks for goes on, and takes the members along.
    switch_on_proxy(&world).await;
    world.quiet().await;
    assert_eq!(member_names(&world), members);
}

#[tokio::test(start_paused = true)]
async fn members_follow_the_nodes_again_when_there_is_one() {
    let world = World::serving(&annotated(&[])).await;
    for node in ["node-1", "node-2"] {
        let excluded =
            json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": ""}}});
        world.kube.patch("nodes", "", node, &excluded).unwrap();
    }
    world.quiet().await;
    let back =
        json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": null}}});
    world.kube.patch("nodes", "", "node-1", &back).unwrap();
    world.quiet().await;
    assert_eq!((member_names(&world), without_nodes(&world)), (vec!["node-1".to_owned()], "0".to_owned()));
}

/// A Node that was restored from before it was initialised has no address: its member stays until it has one, also through a
/// change of protocol.
#[tokio::test(start_paused = true)]
async fn a_node_without_an_address_keeps_its_member_until_it_has_another() {
    let world = World::serving(&annotated(&[])).await;
    let addresses = |entries: Value| json!({"status": {"addresses": entries}});
    world.kube.patch_status("nodes", "", "node-1", &addresses(json!([]))).unwrap();
    world.until_warned("web", "node node-1 is not added as a member").await;
    tokio::time::sleep(HOUR).await;
    assert_eq!(world.take_cloud_writes(), Vec::<String>::new());
    switch_on_proxy(&world).await;
    assert_eq!(member_names(&world), ["node-1", "node-2"]);
    let other = json!([{"type": "InternalIP", "address": "10.0.0.99"}]);
    world.kube.patch_status("nodes", "", "node-1", &addresses(other)).unwrap();
    world.quiet().await;
    let pool = world.cloud.pools()[0]["id"].as_str().unwrap().to_owned();
    let members = world.cloud.members(&pool);
    let of_node = members.iter().filter(|member| member["name"] == "node-1");
    assert_eq!(of_node.map(|member| &member["address"]).collect::<Vec<_>>(), ["10.0.0.99"]);
}

#[rstest]
#[case::of_a_pool_with_members("pool=edge", &["node-1"])]
#[case::of_an_empty_pool("pool=none", &[])]
#[tokio::test(start_paused = true)]
async fn a_node_selector_that_cannot_be_read_changes_no_member(
    #[case] before: &str,
    #[case] members: &[&str],
) {
    let world = World::started().await;
    let label = json!({"metadata": {"labels": {"pool": "edge"}}});
    world.kube.patch("nodes", "", "node-1", &label).unwrap();
    world.serve(&annotated(&[(SELECTOR, before)])).await;
    assert_eq!(member_names(&world), members);
    world.annotate("web", &format!("{ANNOTATION}{SELECTOR}"), Some("pool = edge"));
    world.until_warned_at_rest("web", "node-selector").await;
    tokio::time::sleep(HOUR).await;
    assert_eq!(member_names(&world), members);
    // Everything else is followed.
    world.patch("web", &json!({"spec": {"ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}}));
    world
        .until("it follows the port", |world| {
            let listeners = world.cloud.listeners();
            listeners.len() == 1 && listeners[0]["protocol_port"] == 8080
        })
        .await;
    world.quiet().await;
    assert_eq!(member_names(&world), members);
}

fn register_again(world: &World, name: &str, change: &Value) {
    let server = world.cloud.nodes().into_iter().find(|server| server.name == name).unwrap();
    let mut node = node(&server, "v1.36.0");
    merge_patch(&mut node, change);
    world.kube.create(&node).unwrap();
}

/// A backup is restored from before the nodes of today joined. Their kubelets go on, as do the service proxies on them.
#[tokio::test(start_paused = true)]
async fn nodes_of_then_take_the_place_of_no_node_of_now() {
    let world = World::serving(&annotated(&[])).await;
    let then = world.kube.backup();
    for name in ["node-3", "node-4", "node-5"] {
        world.add_node(name, "v1.36.0");
    }
    world.quiet().await;
    for name in ["node-1", "node-2"] {
        world.kube.delete("nodes", "", name).unwrap();
    }
    world.cloud.remove_node("node-2");
    world.quiet().await;
    let now = ["node-3", "node-4", "node-5"];
    assert_eq!(member_names(&world), now);
    world.kube.restore(&then);
    tokio::time::sleep(HOUR).await;
    let members = member_names(&world);
    assert!(now.iter().all(|name| members.contains(&(*name).to_owned())), "{members:?}");
    let doubted =
        |count: usize| world.metrics().contains(&format!("\nopenstack_ccm_doubted_nodes {count}\n"));
    assert!(doubted(3), "{}", world.metrics());
    // A machine that is gone takes no traffic.
    world.cloud.remove_node("node-3");
    tokio::time::sleep(Duration::from_secs(300)).await;
    let members = member_names(&world);
    assert!(!members.contains(&"node-3".to_owned()) && members.contains(&"node-4".to_owned()), "{members:?}");
    // What the watch shows of a node counts.
    let excluded =
        json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": ""}}});
    register_again(&world, "node-4", &excluded);
    register_again(&world, "node-5", &json!({}));
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.kube.delete("nodes", "", "node-5").unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(member_names(&world), ["node-1", "node-2"]);
    assert!(doubted(0));
}

/// A backup from before `node-3` joined is restored, and then no Node is shown at all: `node-3`, which is doubted, takes no member's place.
#[tokio::test(start_paused = true)]
async fn no_node_at_all_beside_one_that_is_doubted_takes_no_member_away() {
    let world = World::serving(&annotated(&[])).await;
    let then = world.kube.backup();
    world.add_node("node-3", "v1.36.0");
    world.set_kubelets("v1.36.1");
    world.quiet().await;
    world.kube.restore(&then);
    tokio::time::sleep(Duration::from_secs(300)).await;
    let all = ["node-1", "node-2", "node-3"];
    assert_eq!(member_names(&world), all);
    ["node-1", "node-2"].iter().for_each(|name| world.kube.lose("nodes", "", name).unwrap());
    tokio::time::sleep(HOUR).await;
    assert_eq!(member_names(&world), all);
    // What comes back is from before `node-3` again.
    world.kube.restore(&then);
    tokio::time::sleep(HOUR).await;
    assert_eq!(member_names(&world), all);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_left_out_then_and_is_a_member_now_stays_one_until_it_changes() {
    let world = World::started().await;
    let label = |value: Value| json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": value}}});
    world.kube.patch("nodes", "", "node-1", &label(json!(""))).unwrap();
    world.serve(&annotated(&[])).await;
    assert_eq!(member_names(&world), ["node-2"]);
    let then = world.kube.backup();
    world.kube.patch("nodes", "", "node-1", &label(Value::Null)).unwrap();
    world.quiet().await;
    assert_eq!(member_names(&world), ["node-1", "node-2"]);
    world.kube.restore(&then);
    tokio::time::sleep(HOUR).await;
    assert_eq!(member_names(&world), ["node-1", "node-2"]);
    // Its kubelet reports.
    world.set_ready("node-1", "True");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(member_names(&world), ["node-2"]);
}

//! Clusters that get another name (`--cluster-name`).

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::{Value, json};

use super::setup::as_occm_leaves_it;
use crate::support::ledger::Ledger;
use crate::support::{ANNOTATION, Call, Stop, World, lb_name, service, text};

const OCTAVIA: &str = "load-balancer";
const LB_ID: &str = "loadbalancer.openstack.org/load-balancer-id";
const OWNED: &str = "loadbalancer.openstack.org/owned-load-balancer-id";
const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

fn web() -> Value {
    let monitor = format!("{ANNOTATION}enable-health-monitor");
    service("web", json!({"metadata": {"annotations": {monitor: "true"}}}))
}

/// A world in which `web` was served by a cluster of the name `old`, stopped, as OCCM or as this program leaves it.
async fn served_as(old: &str, occm: bool) -> World {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cluster_name = old.to_owned();
    world.start().await;
    world.serve(&web()).await;
    world.stop().await;
    if occm {
        as_occm_leaves_it(&world, "web");
        world.settings.cloud_conf = format!("former-cluster-names = {old}\n");
    }
    world.settings.cluster_name = "c1".to_owned();
    world
}

fn names(objects: &[Value]) -> Vec<String> {
    objects.iter().map(|one| text(&one["name"]).to_owned()).collect()
}

/// Starts the program, which renames what is there.
async fn start_and_rename(world: &mut World) {
    world.start().await;
    world.until("it is renamed", |world| world.cloud.load_balancer(&lb_name("web")).is_some()).await;
    world.quiet().await;
}

/// Names and tags of everything are those of the cluster's new name; nothing was recreated.
fn assert_renamed(world: &World) {
    let load_balancers = world.cloud.load_balancers();
    assert_eq!(names(&load_balancers), [lb_name("web")]);
    assert_eq!(names(&world.cloud.listeners()), [format!("listener_0_{}", lb_name("web"))]);
    assert_eq!(names(&world.cloud.pools()), [format!("pool_0_{}", lb_name("web"))]);
    assert_eq!(names(&world.cloud.health_monitors()), [format!("monitor_0_{}", lb_name("web"))]);
    for one in load_balancers.iter().chain(&world.cloud.listeners()) {
        let tags = one["tags"].as_array().unwrap();
        let generated: Vec<&str> =
            tags.iter().map(text).filter(|tag| tag.starts_with("kube_service_")).collect();
        assert_eq!(generated, [lb_name("web")], "{one:#}");
    }
}

/// Health monitor, pool, listener and load balancer get the new name, and tags with it; the descriptions stay. The
/// address stays too.
///
/// Contract: R1, better: what OCCM made is renamed where the operator says what the cluster was called
/// (`former-cluster-names`); OCCM takes the word of an annotation that anybody may write.
#[rstest]
#[case::made_by_occm(true)]
#[case::made_by_this_program(false)]
#[tokio::test(start_paused = true)]
async fn r1_everything_gets_the_new_name_of_the_cluster(#[case] occm: bool) {
    let mut world = served_as("old", occm).await;
    let (before, address) = (world.cloud.load_balancers()[0]["id"].clone(), world.ingress("web"));
    start_and_rename(&mut world).await;
    assert_renamed(&world);
    assert_eq!(world.cloud.load_balancers()[0]["id"], before);
    assert_eq!(world.ingress("web"), address);
    let description = world.cloud.floating_ips()[0]["description"].clone();
    assert_eq!(description, "Floating IP for Kubernetes external service default/web from cluster old");
    assert!(world.warnings("web").iter().any(|one| one.contains("LoadBalancerRename")));
    // And it is all the Service's own to the end.
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
}

/// A flag that was forgotten renames nothing: the Service goes on being served under the name that is there, ports and nodes
/// included, until the operator says which name is right.
#[rstest]
#[case::the_flag_is_set_again("old", "", false)]
#[case::the_cluster_was_renamed("kubernetes", "former-cluster-names = old\n", true)]
#[tokio::test(start_paused = true)]
async fn a_forgotten_cluster_name_renames_nothing_and_serves_on(
    #[case] then: &str,
    #[case] cloud_conf: &str,
    #[case] renames: bool,
) {
    let old = "kube_service_old_default_web";
    let mut world = served_as("old", false).await;
    let (id, address) = (world.cloud.load_balancers()[0]["id"].clone(), world.ingress("web"));
    world.settings.cluster_name = "kubernetes".to_owned();
    world.start().await;
    world.until_warned("web", "runs with --cluster-name=kubernetes").await;
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080},
        {"name": "more", "port": 443, "protocol": "TCP", "nodePort": 30443}]);
    world.patch("web", &json!({"spec": {"ports": ports}}));
    world.until("the new port is served", |world| world.cloud.listeners().len() == 2).await;
    world.quiet().await;
    assert_eq!(names(&world.cloud.load_balancers()), [old]);
    assert!(names(&world.cloud.listeners()).iter().all(|name| name.ends_with(old)));
    world.stop().await;
    world.settings.cluster_name = then.to_owned();
    world.settings.cloud_conf = cloud_conf.to_owned();
    world.start_to_rest().await;
    let expected = if renames { "kube_service_kubernetes_default_web" } else { old };
    assert_eq!(names(&world.cloud.load_balancers()), [expected]);
    assert_eq!((world.cloud.load_balancers()[0]["id"].clone(), world.ingress("web")), (id, address));
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
}

/// A former name with underscores is read right.
///
/// Contract: R2, same.
#[tokio::test(start_paused = true)]
async fn r2_a_former_name_with_underscores_is_recognised() {
    let mut world = served_as("my_cluster", true).await;
    start_and_rename(&mut world).await;
    assert_renamed(&world);
}

/// Renames all, killed once at most. Answers the calls of the programs.
async fn renamed(stop: Option<Stop>) -> Vec<Call> {
    let mut world = served_as("old", true).await;
    world.take_calls();
    world.start_until(stop).await;
    if !world.survives().await {
        world.kill().await;
        world.start_to_rest().await;
    }
    assert_renamed(&world);
    assert_eq!(world.ingress("web").len(), 1);
    world.take_calls()
}

/// A rename that is interrupted at any call goes on, and no name is left out.
///
/// Contract: R3, better: OCCM renames a listener by the name of its pool, so that an interrupted rename leaves the
/// listener's old name for good.
#[tokio::test(start_paused = true)]
async fn r3_an_interrupted_rename_goes_on_wherever_it_stopped() {
    let _all = Ledger::open();
    let calls = renamed(None).await;
    assert!(calls.len() > 20, "only {} calls", calls.len());
    for stop in Stop::beside(&calls) {
        renamed(Some(stop)).await;
    }
}

/// A listener without the generated prefix is left alone.
///
/// Contract: R4, same.
#[tokio::test(start_paused = true)]
async fn r4_a_listener_of_another_name_is_left_alone() {
    let mut world = served_as("old", true).await;
    let id = world.cloud.load_balancers()[0]["id"].clone();
    let body = json!({"listener": {"name": "mine", "protocol": "TCP", "protocol_port": 9000,
        "loadbalancer_id": id, "tags": ["mine"]}});
    assert_eq!(world.cloud.user().post(OCTAVIA, "/v2.0/lbaas/listeners", &body).0, 201);
    world.cloud.settle();
    let mine = |world: &World| {
        world.cloud.listeners().into_iter().find(|listener| listener["protocol_port"] == 9000).unwrap()
    };
    let before = mine(&world);
    start_and_rename(&mut world).await;
    assert_eq!(mine(&world), before);
}

/// With the name unchanged nothing is written.
///
/// Contract: R5, same.
#[tokio::test(start_paused = true)]
async fn r5_an_unchanged_name_costs_no_write() {
    let mut world = served_as("c1", false).await;
    world.take_calls();
    world.start_to_rest().await;
    assert!(world.take_cloud_writes().is_empty());
    assert!(!world.warnings("web").iter().any(|one| one.contains("LoadBalancerRename")));
}

/// A Service on the load balancer of another cluster is a guest there, and renames nothing.
///
/// Contract: R6, better: OCCM renames the load balancer to itself, owns it from then on, and deletes it later.
#[rstest]
#[case::of_another_service("kube_service_c2_default_api")]
#[case::of_a_service_of_the_same_name("kube_service_c2_default_web")]
#[tokio::test(start_paused = true)]
async fn r6_a_load_balancer_of_another_cluster_keeps_its_name_and_owner(#[case] theirs: &str) {
    let world = World::started().await;
    let body = json!({"loadbalancer": {"name": theirs, "tags": [theirs],
        "vip_subnet_id": world.cloud.seed().subnet_id}});
    let (_, made) = world.cloud.user().post(OCTAVIA, "/v2.0/lbaas/loadbalancers", &body);
    world.cloud.settle();
    let before = world.cloud_state();
    let annotations = json!({LB_ID: made["loadbalancer"]["id"], INTERNAL: "true"});
    world.serve(&service("web", json!({"metadata": {"annotations": annotations}}))).await;
    assert_eq!(names(&world.cloud.load_balancers()), [theirs]);
    assert_eq!(names(&world.cloud.listeners()), [format!("listener_0_{}", lb_name("web"))]);
    world.release("web").await;
    world.quiet().await;
    assert_eq!(world.cloud_state(), before);
}

/// A former name that looks like a part of generated names spoils none of them.
///
/// Contract: R7, better: OCCM makes `listener_0_c1_service_kube_…` of it.
/// Defect: 59, better: names are rebuilt from their parts.
#[rstest]
#[case::kube("kube")]
#[case::service("service")]
#[case::listener("listener")]
#[case::zero("0")]
#[tokio::test(start_paused = true)]
async fn r7_no_former_name_spoils_the_new_ones(#[case] old: &str) {
    let mut world = served_as(old, true).await;
    start_and_rename(&mut world).await;
    assert_renamed(&world);
}

/// A Service without the annotation gets a new load balancer.
///
/// Contract: R8, same.
#[tokio::test(start_paused = true)]
async fn r8_without_the_annotation_there_is_a_new_load_balancer() {
    let mut world = served_as("old", true).await;
    world.annotate("web", LB_ID, None);
    world.annotate("web", "load-balancer-address", None);
    world.start().await;
    world.until("there is a new one", |world| world.cloud.load_balancer(&lb_name("web")).is_some()).await;
    world.quiet().await;
    let mut all = names(&world.cloud.load_balancers());
    all.sort();
    assert_eq!(all, [lb_name("web"), "kube_service_old_default_web".to_owned()]);
}

/// The Services that share a load balancer are renamed one by one, each by itself, and the owner keeps it.
#[tokio::test(start_paused = true)]
async fn every_user_of_a_shared_load_balancer_renames_its_own() {
    let mut world = World::new(ApiVersion::V1_36);
    world.settings.cluster_name = "old".to_owned();
    world.start().await;
    world.serve(&web()).await;
    let id = world.cloud.load_balancers()[0]["id"].clone();
    let guest = json!({"metadata": {"annotations": {LB_ID: id}}, "spec": {"ports": [{"port": 81, "protocol": "TCP"}]}});
    world.serve(&service("api", guest)).await;
    world.stop().await;
    as_occm_leaves_it(&world, "web");
    as_occm_leaves_it(&world, "api");
    world.settings.cluster_name = "c1".to_owned();
    world.settings.cloud_conf = "former-cluster-names = older,old\n".to_owned();
    start_and_rename(&mut world).await;
    let listeners: Vec<String> = names(&world.cloud.listeners());
    assert!(listeners.contains(&format!("listener_0_{}", lb_name("api"))), "{listeners:?}");
    assert!(listeners.contains(&format!("listener_0_{}", lb_name("web"))), "{listeners:?}");
    let load_balancer = &world.cloud.load_balancers()[0];
    let tags: Vec<&str> = load_balancer["tags"].as_array().unwrap().iter().map(text).collect();
    assert!(!tags.iter().any(|tag| tag.contains("_old_")), "{tags:?}");
    assert_eq!(world.annotation("api", OWNED).as_deref(), Some("none"));
    assert_eq!(world.annotation("web", OWNED).as_deref(), Some(text(&id)));
}

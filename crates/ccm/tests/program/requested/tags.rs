//! Tags of the user, beside our own.

use std::collections::BTreeSet;

use rstest::rstest;
use serde_json::{Value, json};

use crate::contract::setup::{
    annotated, as_occm_leaves_it, configured, id, load_balancer, only_floating_ip, put,
};
use crate::support::{ANNOTATION, World, service};

/// The tags of an object that are neither ours nor OCCM's.
fn tags(object: &Value) -> BTreeSet<String> {
    let tags = object["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap().to_owned());
    tags.filter(|tag| !["openstack-ccm-", "kube_service_"].iter().any(|own| tag.starts_with(own))).collect()
}

fn set<const N: usize>(tags: [&str; N]) -> BTreeSet<String> {
    tags.map(str::to_owned).into()
}

/// The generated security group.
fn group(world: &World) -> Value {
    let generated = |group: &Value| group["name"].as_str().unwrap().starts_with("lb-sg-");
    world.cloud.security_groups().into_iter().find(generated).unwrap()
}

fn annotate(world: &World, key: &str, value: Option<&str>) {
    world.annotate("web", &format!("{ANNOTATION}{key}"), value);
}

/// Tags of cloud.conf and of the Service are on everything that is made for it; those for one kind of object are on that
/// alone.
///
/// Contract: O1, better: OCCM has tags of load balancers, listeners and pools only, by annotation, and none for the whole cluster.
#[tokio::test(start_paused = true)]
async fn tags_of_the_user_are_on_everything_that_is_made() {
    let world =
        configured(|_| "manage-security-groups = true\ntags = centre=42, env=test\n".to_owned()).await;
    let annotations = [
        ("tags", "team=web"),
        ("load-balancer-tags", "front"),
        ("listener-tags", "port"),
        ("pool-tags", "nodes, \u{e9}quipe"),
        ("enable-health-monitor", "true"),
    ];
    world.serve(&annotated(&annotations)).await;
    let everywhere = set(["centre=42", "env=test", "team=web"]);
    assert_eq!(tags(&load_balancer(&world)), &everywhere | &set(["front"]));
    assert_eq!(tags(&world.cloud.listeners()[0]), &everywhere | &set(["port"]));
    assert_eq!(tags(&world.cloud.pools()[0]), &everywhere | &set(["nodes", "\u{e9}quipe"]));
    assert_eq!(tags(&world.cloud.health_monitors()[0]), everywhere);
    assert_eq!(tags(&only_floating_ip(&world)), everywhere);
    assert_eq!(tags(&group(&world)), everywhere);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

/// A new tag gets to what exists; one that goes from the annotation stays, and so do those of others.
///
/// Contract: O2, better: what somebody else set is never taken off.
#[tokio::test(start_paused = true)]
async fn tags_are_added_and_never_taken_off() {
    let world = World::serving(&annotated(&[("tags", "a")])).await;
    let all = |own: &str| {
        let tags = load_balancer(&world)["tags"].as_array().unwrap().clone();
        json!({own: {"tags": tags.into_iter().chain([json!("theirs")]).collect::<Vec<_>>()}})
    };
    put(&world, &format!("/v2.0/lbaas/loadbalancers/{}", id(&load_balancer(&world))), &all("loadbalancer"));
    annotate(&world, "tags", Some("b"));
    world.quiet().await;
    assert_eq!(tags(&load_balancer(&world)), set(["a", "b", "theirs"]));
    for child in [&world.cloud.listeners()[0], &world.cloud.pools()[0], &only_floating_ip(&world)] {
        assert_eq!(tags(child), set(["a", "b"]));
    }
    annotate(&world, "tags", None);
    world.quiet().await;
    assert_eq!(tags(&load_balancer(&world)), set(["a", "b", "theirs"]));
}

/// After a switch from OCCM a load balancer gets the tags of cloud.conf when it is its turn to be marked, and not before.
#[tokio::test(start_paused = true)]
async fn tags_of_cloud_conf_come_with_the_tags_of_identity() {
    let mut world = World::serving(&annotated(&[])).await;
    world.stop().await;
    as_occm_leaves_it(&world, "web");
    world.settings.cloud_conf = "tags = centre=42\n".to_owned();
    world.start().await;
    world.pass(30).await;
    assert!(tags(&load_balancer(&world)).is_empty() && tags(&world.cloud.listeners()[0]).is_empty());
    world.pass(300).await;
    world.quiet().await;
    for object in [&load_balancer(&world), &world.cloud.listeners()[0], &world.cloud.pools()[0]] {
        assert_eq!(tags(object), set(["centre=42"]), "{object}");
    }
    assert_eq!(tags(&only_floating_ip(&world)), set(["centre=42"]));
}

/// A tag that says whose an object is, or that the cloud would refuse, is named. What exists goes on, and a new load
/// balancer is not made.
///
/// Contract: O3, better: OCCM sends it.
#[rstest]
#[case::of_another_cluster("tags", "openstack-ccm-cluster=another", "choose another tag")]
#[case::of_another_service(
    "load-balancer-tags",
    "kube_service_kubernetes_default_other",
    "choose another tag"
)]
#[case::of_occm("listener-tags", "kube_cluster_id_another", "choose another tag")]
#[case::long("tags", "x234567890123456789012345678901234567890123456789012345678901", "use at most 60")]
#[tokio::test(start_paused = true)]
async fn a_tag_that_cannot_be_given_is_refused(#[case] key: &str, #[case] tag: &str, #[case] fix: &str) {
    let world = World::serving(&annotated(&[])).await;
    annotate(&world, key, Some(tag));
    world.until_warned("web", fix).await;
    world.third_node_joins().await;
    assert!(tags(&load_balancer(&world)).is_empty());
    world.release("web").await;
    world.create(&annotated(&[(key, tag)]));
    world.quiet().await;
    assert!(world.cloud.load_balancers().is_empty());
}

/// A guest labels its own listeners and pools, not the load balancer that was made for somebody else.
#[tokio::test(start_paused = true)]
async fn a_guest_does_not_label_the_load_balancer() {
    let world = World::serving(&annotated(&[])).await;
    let shared = id(&load_balancer(&world));
    let annotations =
        json!({format!("{ANNOTATION}load-balancer-id"): shared, format!("{ANNOTATION}tags"): "guest"});
    let ports = json!([{"name": "http", "port": 81, "protocol": "TCP"}]);
    world
        .serve(&service("guest", json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports}})))
        .await;
    assert_eq!(world.cloud.load_balancers().len(), 1);
    assert!(tags(&load_balancer(&world)).is_empty() && tags(&only_floating_ip(&world)).is_empty());
    let of_guest =
        |objects: Vec<Value>| objects.into_iter().filter(|one| tags(one) == set(["guest"])).count();
    assert_eq!((of_guest(world.cloud.listeners()), of_guest(world.cloud.pools())), (1, 1));
}

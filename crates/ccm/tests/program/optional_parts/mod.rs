//! A cloud that lacks an optional part of its API: what needs the part is missed, and nothing else, from creation over a change of the
//! nodes and a restart to deletion.

mod believed;
mod life;
mod lives;

use http::Method;
use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::{Fault, Lack};
use rstest::rstest;
use serde_json::json;

use crate::contract::setup::as_occm_leaves_it;
use crate::refused::{leads, on_port_80};
use crate::support::{World, lb_name, service};

/// What says that the cloud lacks something.
const LACKING: &str = "CloudPartMissing";

/// A world whose cloud lacks a part, and that needs every part of it.
async fn lacking(lack: Lack) -> World {
    let mut world = World::new(ApiVersion::V1_36);
    // A plan learns of it when it is carried out.
    world.settings.plans = false;
    if lack == Lack::SecurityGroups {
        world.settings.cloud_conf = "manage-security-groups = true".to_owned();
    }
    if lack == Lack::Providers {
        world.settings.cloud_conf = "lb-provider =".to_owned();
    }
    if lack == Lack::NetworkById {
        world.settings.cloud_conf = format!("floating-network-id = {}", world.cloud.seed().public_network_id);
    }
    world.cloud.lack(lack);
    world.start().await;
    world
}

fn told(world: &World, name: &str) -> Vec<String> {
    world.warnings(name).into_iter().filter(|warning| warning.contains(LACKING)).collect()
}

/// Contract: O15, better: OCCM does not use most of them; without the versions of Octavia it serves too, and without the right to read a network or to delete a
/// floating IP it does not.
#[rstest]
#[case::floating_ip_tags(Lack::FloatingIpTags, Some("Tags of floating IPs"))]
#[case::floating_ip_marks(Lack::FloatingIpMarks, Some("Descriptions of floating IPs"))]
#[case::load_balancer_tags(Lack::LoadBalancerTags, Some("Tags of load balancers"))]
#[case::versions(Lack::Versions, Some("Versions of Octavia"))]
#[case::status_tree(Lack::StatusTree, Some("Status tree"))]
#[case::additive_batches(Lack::AdditiveBatches, Some("Batches that add members"))]
#[case::network_by_id(Lack::NetworkById, Some("Networks by id"))]
#[case::security_groups(Lack::SecurityGroups, Some("Security groups"))]
#[case::providers(Lack::Providers, Some("Providers"))]
#[case::quotas(Lack::Quotas, None)]
#[case::certificates(Lack::Certificates, None)]
#[tokio::test(start_paused = true)]
async fn a_part_that_is_missing_costs_what_needs_it(#[case] lack: Lack, #[case] said: Option<&str>) {
    let mut world = lacking(lack).await;
    world.create(&on_port_80());
    world.until_published("web").await;
    let published = world.ingress("web");
    world.until("all nodes are members", |world| leads(world, &[80], 2)).await;
    world.add_node("node-3", "v1.36.0");
    world.until("the new node is a member", |world| leads(world, &[80], 3)).await;
    world.quiet_unplanned().await;
    let told = told(&world, "web");
    match said {
        Some(part) => {
            assert!(told.iter().any(|event| event.contains(part)), "{part}: {:#?}", world.events("web"));
            let metrics = world.metrics();
            assert!(!metrics.contains("openstack_ccm_cloud_parts_missing 0"), "{metrics}");
        }
        None => assert!(told.is_empty(), "{told:?}"),
    }
    world.restart().await;
    world.quiet_unplanned().await;
    assert!(leads(&world, &[80], 3), "a restart takes nothing away: {}", world.state());
    world.kube.delete("nodes", "", "node-1").unwrap();
    world.until("the node that went is no member", |world| leads(world, &[80], 2)).await;
    assert_eq!(world.ingress("web"), published);
    world.release("web").await;
    assert!(world.cloud.load_balancers().is_empty());
    assert!(world.cloud.floating_ips().is_empty(), "{:#?}", world.cloud.floating_ips());
}

/// It is said once, and the refused call is not sent with each reconciliation.
#[tokio::test(start_paused = true)]
async fn a_part_that_is_missing_is_asked_for_again_at_the_check_for_drift_and_not_before() {
    let mut world = World::new(ApiVersion::V1_36);
    let tags = Fault::new().service("network").method(Method::PUT).path("/floatingips/[^/]+/tags$");
    let refused =
        world.cloud.faults().add(tags.answer(404, json!({"message": "The resource could not be found."})));
    world.start().await;
    world.create(&on_port_80());
    world.until_published("web").await;
    world.pass(1500).await;
    assert_eq!(world.cloud.faults().matched(refused), 1);
    let [event] = &told(&world, "web")[..] else { panic!("{:?}", world.events("web")) };
    for part in ["PUT /v2.0/floatingips/", "/tags", "standard-attr-tag", "description"] {
        assert!(event.contains(part), "{part}: {event}");
    }
    world.cloud.faults().remove(refused);
    world.pass(5400).await;
    let tags = world.cloud.floating_ips()[0]["tags"].to_string();
    assert!(tags.contains("openstack-ccm-service="), "{tags}");
    assert_eq!(told(&world, "web").len(), 1);
}

/// The name of a cluster is not unique. Without tags the description says which one a floating IP belongs to.
#[tokio::test(start_paused = true)]
async fn two_clusters_of_one_name_keep_their_floating_ips_apart_without_tags() {
    let mut one = lacking(Lack::FloatingIpTags).await;
    one.create(&on_port_80());
    one.until_published("web").await;
    one.quiet_unplanned().await;
    let kept = one.ingress("web");
    let described = one.cloud.floating_ips()[0]["description"].as_str().unwrap().to_owned();
    let (text, uids) = described.split_once(" (").unwrap_or_else(|| panic!("{described}"));
    assert_eq!(text, "Floating IP for Kubernetes external service default/web from cluster c1");
    let uid = one.service("web")["metadata"]["uid"].as_str().unwrap().to_owned();
    assert!(uids.ends_with(&format!("{uid})")), "{described}");
    let mut other = World::in_cloud(ApiVersion::V1_36, one.cloud.clone());
    other.settings.cluster_uid = Some("5ec0ad00-0000-4000-8000-000000000002".to_owned());
    // Simulated clusters give the same uids; real ones do not.
    other.create(&service("placeholder", json!({"spec": {"type": "ClusterIP"}})));
    other.start().await;
    other.create(&service("web", json!({})));
    other.until_warned("web", "belongs to another cluster").await;
    other.release("web").await;
    one.restart().await;
    one.quiet_unplanned().await;
    assert_eq!(one.ingress("web"), kept);
    let left = one.cloud.floating_ips();
    assert!(left.len() == 1 && !left[0]["port_id"].is_null(), "{left:#?}");
}

/// One that OCCM's text alone describes, and that is free, may be anybody's of that name.
#[tokio::test(start_paused = true)]
async fn a_free_floating_ip_with_the_bare_description_is_never_deleted() {
    let world = lacking(Lack::FloatingIpTags).await;
    let description = "Floating IP for Kubernetes external service default/web from cluster c1";
    world.create(&on_port_80());
    world.until_published("web").await;
    world.quiet_unplanned().await;
    let id = crate::contract::setup::floating_ip(&world.cloud, "198.19.0.77", description);
    world.release("web").await;
    let left = world.cloud.floating_ips();
    assert!(left.len() == 1 && left[0]["id"] == json!(id), "{left:#?}");
}

/// OCCM gives its floating IPs no tags either.
#[rstest]
#[case::refused(403)]
#[case::unknown(404)]
#[tokio::test(start_paused = true)]
async fn a_service_of_occm_that_ceases_to_be_one_leaves_no_floating_ip_where_tags_are_refused(
    #[case] status: u16,
) {
    let mut world = World::serving(&on_port_80()).await;
    as_occm_leaves_it(&world, "web");
    world.quiet_unplanned().await;
    world.stop().await;
    world.settings.plans = false;
    as_occm_leaves_it(&world, "web");
    let tags = Fault::new().service("network").method(Method::PUT).path("/floatingips/[^/]+/tags$");
    let body = json!({"NeutronError": {"type": "PolicyNotAuthorized", "message": "no", "detail": ""}});
    world.cloud.faults().add(tags.answer(status, body));
    world.start().await;
    world.pass(60).await;
    world.patch("web", &json!({"spec": {"type": "ClusterIP"}}));
    world.until("the load balancer is gone", |world| world.cloud.load_balancers().is_empty()).await;
    world.quiet_unplanned().await;
    assert_eq!(world.cloud.floating_ips(), Vec::<serde_json::Value>::new());
}

/// One load balancer refuses its status tree and others show theirs: that is no news each time.
#[tokio::test(start_paused = true)]
async fn a_part_that_one_object_lacks_is_said_once() {
    let mut world = World::new(ApiVersion::V1_36);
    // A plan learns of it when it is carried out.
    world.settings.plans = false;
    world.start().await;
    world.serve(&on_port_80()).await;
    world.serve(&service("other", json!({}))).await;
    let id = world.cloud.load_balancer(&lb_name("other")).unwrap()["id"].as_str().unwrap().to_owned();
    let body = json!({"faultcode": "Server", "faultstring": "not implemented", "debuginfo": null});
    let refused = Fault::new().service("load-balancer").method(Method::GET).path(&format!("/{id}/status$"));
    world.cloud.faults().add(refused.answer(501, body));
    let said = |world: &World| [told(world, "web"), told(world, "other")].concat();
    world.add_node("node-3", "v1.36.0");
    world.pass(100).await;
    assert_eq!(said(&world).len(), 1, "{:#?}", said(&world));
    for round in 4..9 {
        world.add_node(&format!("node-{round}"), "v1.36.0");
        world.pass(2000).await;
    }
    // Events are gone after an hour.
    assert_eq!(said(&world), [""; 0]);
}

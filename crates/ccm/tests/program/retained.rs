//! A load balancer that is to outlive its Service (`reclaim-policy: retain`) stays whatever becomes of later Services of
//! the name, until one of them is served by it and goes.

use openstack_ccm_kube_sim::ApiVersion;
use rstest::rstest;
use serde_json::{Value, json};

use crate::cloud_faults::breaks;
use crate::contract::setup::{annotated, configured, id, load_balancer, member_names};
use crate::support::{ANNOTATION, Call, LB_ID, Stop, World, lb_name, service};

const RETAINED: &str = "Retained: Kubernetes external service default/web from cluster c1";

/// The load balancer of `web`, with its listeners and the number of floating IPs.
fn kept(world: &World) -> (Value, Vec<String>, usize) {
    let kept = load_balancer(world);
    let is_on = |listener: &&Value| listener["loadbalancers"][0]["id"] == kept["id"];
    let listeners = world.cloud.listeners();
    let listeners = listeners.iter().filter(is_on).map(|one| one["id"].to_string()).collect();
    (kept["vip_address"].clone(), listeners, world.cloud.floating_ips().len())
}

/// Another Service on port 90. Answers the id of its load balancer.
async fn serve_other(world: &World) -> String {
    let ports = json!([{"name": "http", "port": 90, "protocol": "TCP"}]);
    world.serve(&service("other", json!({"spec": {"ports": ports}}))).await;
    id(&world.cloud.load_balancer(&lb_name("other")).unwrap())
}

async fn type_changes(world: &World, kind: &str) {
    world.patch("web", &json!({"spec": {"type": kind}}));
    let is_served = kind == "LoadBalancer";
    world.until(kind, |world| world.ingress("web").is_empty() != is_served).await;
    world.quiet().await;
}

async fn goes(world: &World) {
    world.release("web").await;
    world.quiet().await;
}

#[rstest]
#[case::deleted(true)]
#[case::type_changed(false)]
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_is_to_be_retained_stays_and_is_taken_over_again(#[case] delete: bool) {
    let world = World::serving(&annotated(&[("reclaim-policy", "retain")])).await;
    let (before, address) = (kept(&world), world.ingress("web"));
    if delete {
        goes(&world).await;
    } else {
        type_changes(&world, "ClusterIP").await;
    }
    let member = "DELETE pools/ID/members/ID";
    assert_eq!(
        world.take_cloud_writes(),
        [member, member, "PUT loadbalancers/ID"],
        "it says why it is there"
    );
    assert_eq!(kept(&world), before);
    assert_eq!(member_names(&world), Vec::<String>::new(), "the node ports belong to nobody now");
    assert_eq!(load_balancer(&world)["description"], RETAINED);
    let events = world.events("web").join("\n");
    assert!(events.contains("Normal LoadBalancerRetained"), "{events}");
    if delete {
        world.serve(&service("web", json!({}))).await;
    } else {
        type_changes(&world, "LoadBalancer").await;
    }
    assert_eq!((world.ingress("web"), kept(&world).0), (address, before.0));
    assert_eq!(load_balancer(&world)["description"], RETAINED.trim_start_matches("Retained: "));
    assert_eq!(member_names(&world), ["node-1", "node-2"]);
    world.annotate("web", "reclaim-policy", None);
    goes(&world).await;
    assert!(world.cloud.load_balancers().is_empty() && world.cloud.floating_ips().is_empty());
}

/// Why a Service of the name is not served by the load balancer that was retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Namesake {
    /// Another load balancer serves it.
    Guest,
    /// The same, and it is the very Service, which was of another type for a while.
    SameService,
    /// It asks for something that cannot be had.
    Refused,
}

#[rstest]
#[case::guest_of_another(Namesake::Guest, None)]
#[case::same_service_elsewhere(Namesake::SameService, None)]
#[case::refused(Namesake::Refused, None)]
#[case::refused_on_a_cloud_without_tags(Namesake::Guest, Some(4))]
#[tokio::test(start_paused = true)]
async fn what_is_retained_does_not_go_with_a_namesake_that_another_load_balancer_serves(
    #[case] namesake: Namesake,
    #[case] octavia_api: Option<u8>,
) {
    let mut world = World::new(ApiVersion::V1_36);
    if let Some(minor) = octavia_api {
        world.cloud.set_octavia_api(minor);
    }
    world.start().await;
    let other = serve_other(&world).await;
    world.serve(&annotated(&[("reclaim-policy", "retain")])).await;
    if namesake == Namesake::SameService {
        type_changes(&world, "ClusterIP").await;
    } else {
        goes(&world).await;
    }
    let before = kept(&world);
    match namesake {
        Namesake::SameService => {
            let change = json!({"metadata": {"annotations": {LB_ID: other, format!("{ANNOTATION}reclaim-policy"): null}}});
            world.patch("web", &change);
            type_changes(&world, "LoadBalancer").await;
        }
        Namesake::Guest => world.create(&annotated(&[(LB_ID, other.as_str())])),
        Namesake::Refused => world.create(&annotated(&[("proxy-protocol", "perhaps")])),
    }
    world.quiet().await;
    let served = namesake != Namesake::Refused && octavia_api.is_none();
    assert_eq!(world.ingress("web").is_empty(), !served, "{:?}", world.events("web"));
    assert_eq!(kept(&world), before);
    goes(&world).await;
    assert_eq!(kept(&world), before);
    world.serve(&service("web", json!({}))).await;
    goes(&world).await;
    assert_eq!(world.cloud.load_balancers().len(), 1, "it went with the Service that it served");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_moves_leaves_its_load_balancer_to_who_comes_back() {
    let world = World::started().await;
    let other = serve_other(&world).await;
    world.serve(&annotated(&[("reclaim-policy", "retain")])).await;
    let before = kept(&world);
    world.annotate("web", LB_ID, Some(&other));
    world.until("it is marked", |world| load_balancer(world)["description"] == RETAINED).await;
    world.quiet().await;
    assert_eq!(kept(&world), before);
    goes(&world).await;
    assert_eq!(kept(&world), before);
}

/// Octavia refuses every change of a load balancer in ERROR.
#[tokio::test(start_paused = true)]
async fn a_broken_load_balancer_is_retained_when_it_is_whole_again() {
    let world = World::serving(&annotated(&[("reclaim-policy", "retain")])).await;
    let before = kept(&world);
    breaks(&world, "web");
    world.delete("web");
    world.until_warned("web", "it cannot be marked as retained").await;
    assert!(!world.service("web").is_null());
    let failover = format!("/v2.0/lbaas/loadbalancers/{}/failover", id(&load_balancer(&world)));
    assert_eq!(world.cloud.admin().put("load-balancer", &failover, &json!({})).0, 202);
    world.until_gone("web").await;
    assert_eq!(kept(&world), before);
    assert_eq!(load_balancer(&world)["description"], RETAINED);
}

#[tokio::test(start_paused = true)]
async fn a_broken_load_balancer_that_was_retained_is_not_replaced() {
    let world = World::serving(&annotated(&[("reclaim-policy", "retain")])).await;
    goes(&world).await;
    let before = kept(&world);
    breaks(&world, "web");
    world.create(&service("web", json!({})));
    world.until_warned("web", "was retained when its previous Service was deleted").await;
    goes(&world).await;
    assert_eq!(kept(&world), before);
}

#[tokio::test(start_paused = true)]
async fn the_security_group_of_a_service_goes_though_its_load_balancer_stays() {
    let world = World::configured("manage-security-groups = true\n").await;
    let groups = |world: &World| {
        let groups = world.cloud.security_groups();
        groups.iter().filter(|group| group["name"].as_str().unwrap().starts_with("lb-sg-")).count()
    };
    world.serve(&annotated(&[("reclaim-policy", "retain")])).await;
    assert_eq!(groups(&world), 1);
    goes(&world).await;
    assert_eq!((groups(&world), world.cloud.load_balancers().len()), (0, 1));
}

/// Killed beside any write of a Service's end and of the return of another of its name.
#[tokio::test(start_paused = true)]
async fn what_is_to_be_retained_stays_wherever_the_program_is_killed() {
    let calls = retained_and_taken_over(None).await;
    assert!(calls.len() > 12, "only {} calls", calls.len());
    for stop in Stop::beside(&calls) {
        retained_and_taken_over(Some(stop)).await;
        if let Stop::After(number) = stop {
            retained_and_taken_over(Some(Stop::OnItsWay(number))).await;
        }
    }
}

/// A Service ends and another of its name comes; the program is killed once at most. Answers the calls of the programs.
async fn retained_and_taken_over(stop: Option<Stop>) -> Vec<Call> {
    let mut world = World::serving(&annotated(&[("reclaim-policy", "retain")])).await;
    let (before, address) = (kept(&world), world.ingress("web"));
    world.take_calls();
    if let Some(stop) = stop {
        world.stop_at(stop);
    }
    world.delete("web");
    started_again(&mut world).await;
    world.until_gone("web").await;
    assert_eq!(kept(&world), before, "{stop:?}");
    assert_eq!(load_balancer(&world)["description"], RETAINED);
    world.create(&service("web", json!({})));
    started_again(&mut world).await;
    world.until_published("web").await;
    assert_eq!((world.ingress("web"), kept(&world).0), (address, before.0), "{stop:?}");
    world.take_calls()
}

/// Waits until everything is done, and starts the program anew when it was killed.
async fn started_again(world: &mut World) {
    if !world.survives().await {
        world.kill().await;
        world.start_to_rest().await;
    }
}

/// Who leaves addresses behind without end is for the operator to say.
#[rstest]
#[case::of_this_namespace("default", true)]
#[case::of_all("*", true)]
#[case::of_another("elsewhere", false)]
#[tokio::test(start_paused = true)]
async fn a_namespace_retains_only_what_the_operator_allows(
    #[case] namespace: &str,
    #[case] is_refused: bool,
) {
    let conf = format!("[LoadBalancerNamespace \"{namespace}\"]\nallow-retain=false\n");
    let world = configured(|_| conf).await;
    world.serve(&service("web", json!({}))).await;
    world.annotate_to_rest("web", "reclaim-policy", Some("retain")).await;
    let warnings = world.warnings("web");
    assert_eq!(warnings.concat().contains("allow-retain"), is_refused, "{warnings:?}");
    // Whatever that says, it serves on.
    world.third_node_joins().await;
    assert_eq!(member_names(&world).len(), 3);
    goes(&world).await;
    assert_eq!(world.cloud.load_balancers().is_empty(), is_refused);
}

/// The operator sees who leaves how many behind.
#[tokio::test(start_paused = true)]
async fn retained_load_balancers_are_counted_by_namespace() {
    let world = World::serving(&annotated(&[("reclaim-policy", "retain")])).await;
    let counted = "openstack_ccm_retained_load_balancers{namespace=\"default\"} 1";
    goes(&world).await;
    world.pass(2 * 3600).await;
    assert!(world.metrics().contains(counted), "{}", world.metrics());
    world.serve(&service("web", json!({}))).await;
    world.pass(2 * 3600).await;
    assert!(!world.metrics().contains(counted), "{}", world.metrics());
}

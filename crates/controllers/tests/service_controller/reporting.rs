//! What users and operators read.

use std::time::Duration;

use openstack_ccm_core::advertise::{Needs, Path, Preference};
use openstack_ccm_core::failure::{Failure, FailureClass, Hold};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::Reconciliation;
use openstack_ccm_kube_sim::ApiVersion;
use serde_json::json;

use crate::world::{World, settle};

const PROXY: Path = Path::ThroughLoadBalancer(Needs::ProxyProtocol);

#[tokio::test(start_paused = true)]
async fn a_life_without_trouble_has_four_events() {
    let world = World::started(ApiVersion::V1_36).await;
    world.serve("app").await;
    world.patch("app", json!({"metadata": {"annotations": {"no": "difference"}}})).await;
    settle().await;
    world.delete("app").await;
    settle().await;
    assert_eq!(
        world.events("app"),
        [
            "service-controller Normal EnsuringLoadBalancer: Ensuring load balancer (1)",
            "service-controller Normal EnsuredLoadBalancer: Ensured load balancer (1)",
            "service-controller Normal DeletingLoadBalancer: Deleting load balancer (1)",
            "service-controller Normal DeletedLoadBalancer: Deleted load balancer (1)",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_repeats_is_one_event_with_a_count() {
    let world = World::started(ApiVersion::V1_36).await;
    for _ in 0..3 {
        world.cloud.script(Reconciliation::failed(Failure::new(
            FailureClass::Unavailable,
            "the cloud answered 503",
        )));
    }
    world.create_published("app").await;
    settle().await;
    assert_eq!(
        world.events("app"),
        [
            "service-controller Normal EnsuringLoadBalancer: Ensuring load balancer (1)",
            "service-controller Warning SyncLoadBalancerFailed: Error syncing load balancer: the cloud answered 503 (3)",
            "service-controller Normal EnsuredLoadBalancer: Ensured load balancer (1)",
        ]
    );
    assert_eq!(world.metric("openstack_ccm_service_failures_total{class=\"unavailable\"}"), "3");
    assert_eq!(
        world.metric("cloudprovider_example_reconcile_errors_total{operation=\"loadbalancer_ensure\"}"),
        "3"
    );
    assert_eq!(world.metric("workqueue_retries_total{name=\"service\"}"), "3");
    assert_eq!(world.metric("workqueue_depth{name=\"service\"}"), "0");
}

#[tokio::test(start_paused = true)]
async fn notices_of_the_provider_keep_their_component() {
    let world = World::started(ApiVersion::V1_36).await;
    world.cloud.say(vec![Notice::normal("LoadBalancerSourceRangesIgnored", "not supported")]);
    world.serve("app").await;
    let events = world.events("app");
    assert!(
        events.contains(
            &"cloud-provider-example Normal LoadBalancerSourceRangesIgnored: not supported (1)".to_owned()
        ),
        "{events:?}"
    );
}

const HALF_AN_HOUR: Duration = Duration::from_secs(1800);

/// The texts of the Events about changed modes, with their counts.
async fn changes(world: &World) -> Vec<String> {
    let text =
        |event: String| event.split_once("LoadBalancerIPModeChanged: ").map(|(_, text)| text.to_owned());
    world.events("app").into_iter().filter_map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn a_changed_mode_is_an_event_and_counted() {
    let world = World::started(ApiVersion::V1_28).await;
    world.cloud.publish_by(
        PROXY,
        Preference { hostname_suffix: Some("example.org".into()), ..Preference::default() },
    );
    world.serve("app").await;
    assert_eq!(changes(&world).await, [""; 0], "the first publication changes nothing");
    world.kube.set_version(ApiVersion::V1_36);
    world.until_ingress("app", "203.0.113.10(Proxy)").await;
    settle().await;
    assert_eq!(
        changes(&world).await,
        ["The load balancer is now published by address with ipMode Proxy: the load balancer adds the \
            PROXY protocol \
             header (1)",]
    );
    let published = |mode: &str, reason: &str| {
        world.metric(&format!("openstack_ccm_services_published{{mode=\"{mode}\",reason=\"{reason}\"}}"))
    };
    assert_eq!(published("proxy", "proxy_protocol"), "1");
    assert_eq!(published("hostname", "server_drops_ip_mode"), "0");
    assert_eq!(world.metric("openstack_ccm_ip_mode_server_support{support=\"keeps\"}"), "1");
    world.delete("app").await;
    settle().await;
    assert_eq!(published("proxy", "proxy_protocol"), "0");
}

#[tokio::test(start_paused = true)]
async fn where_neither_mode_nor_hostname_is_possible_the_ways_out_are_named() {
    let world = World::started(ApiVersion::V1_28).await;
    world.cloud.publish_by(PROXY, Preference::default());
    world.serve("app").await;
    assert_eq!(world.ingress("app").await, ["203.0.113.10"]);
    let events = world.events("app");
    let warning =
        events.iter().find(|event| event.contains("Warning LoadBalancerIPModeNotHonoured")).unwrap();
    assert!(warning.contains("lb.example.org/hostname"), "{warning}");
    assert!(warning.contains("Upgrade the API server"), "{warning}");
}

/// An Event is gone after an hour, and what is held stays so until somebody acts on it.
#[tokio::test(start_paused = true)]
async fn what_is_held_is_reported_again_at_the_pace_of_the_check_for_drift() {
    let mut world = World::new(ApiVersion::V1_36);
    world.options.resync = Some(HALF_AN_HOUR);
    world.start().await;
    for _ in 0..500 {
        world.cloud.script(Reconciliation::failed(Failure::held(Hold::LoadBalancerMissing, "it is missing")));
    }
    world.create("app").await;
    // It is tried again every five minutes.
    tokio::time::sleep(HALF_AN_HOUR * 5 / 2 + HALF_AN_HOUR / 3).await;
    let mut events = world.events("app");
    events.retain(|event| event.contains("it is missing"));
    let expected =
        "service-controller Warning SyncLoadBalancerFailed: Error syncing load balancer: it is missing (3)";
    assert_eq!(events, [expected]);
    assert_eq!(world.metric("openstack_ccm_services_held{reason=\"load_balancer_missing\"}"), "1");
}

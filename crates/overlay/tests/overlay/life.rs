//! Services from their first address to their last.

use std::time::Duration;

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_overlay::cleanup::cleanup;
use rstest::rstest;
use serde_json::{Value, json};

use crate::world::{MODE, PROXY_PROTOCOL, World, settle};

#[tokio::test(start_paused = true)]
async fn a_service_with_the_proxy_protocol_gets_the_mode_once_and_then_there_is_quiet() {
    let world = World::started(ApiVersion::V1_36).await;
    world.serve("app").await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]));
    assert_eq!(world.writes().len(), 1);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.writes().len(), 1);
    let metadata = &world.kube.get("services", "default", "app").unwrap()["metadata"];
    assert_eq!(
        metadata["annotations"],
        json!({PROXY_PROTOCOL: "true"}),
        "an annotation would start a reconciliation of the owner"
    );
    assert_eq!(metadata["finalizers"], Value::Null);
    let labels = "ip_mode_overlay_services_published{mode=\"proxy\",reason=\"proxy_protocol\"}";
    assert_eq!(world.metric(labels), "1");
    assert_eq!(
        world.events("app"),
        ["Normal LoadBalancerIPModeChanged: The load balancer is now published by address with ipMode \
            Proxy: the load balancer \
          adds the PROXY protocol header"]
    );
}

/// What stands beside an address is the owner's, and stays.
#[rstest]
#[case::linode(
    json!([{"hostname": "lb.example.net", "ip": "203.0.113.10"}]),
    json!([{"hostname": "lb.example.net", "ip": "203.0.113.10", "ipMode": "Proxy"}])
)]
#[case::dual_stack(
    json!([{"ip": "203.0.113.10"}, {"ip": "2001:db8::5"}]),
    json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}, {"ip": "2001:db8::5", "ipMode": "Proxy"}])
)]
#[case::ports(
    json!([{"ip": "203.0.113.10", "ports": [{"port": 443, "protocol": "TCP"}]}]),
    json!([{"ip": "203.0.113.10", "ipMode": "Proxy", "ports": [{"port": 443, "protocol": "TCP"}]}])
)]
#[case::hostname_beside(
    json!([{"ip": "203.0.113.10"}, {"hostname": "lb.example.net"}]),
    json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}, {"hostname": "lb.example.net"}])
)]
#[tokio::test(start_paused = true)]
async fn entries_keep_what_their_owner_put_there(#[case] published: Value, #[case] expected: Value) {
    let world = World::started(ApiVersion::V1_36).await;
    world.create("app");
    world.owner_publishes("app", published).await;
    settle().await;
    assert_eq!(world.ingress("app"), expected);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_writes_again_is_followed_and_never_overruled_in_its_address() {
    let world = World::started(ApiVersion::V1_36).await;
    world.serve("app").await;
    world.owner_publishes("app", json!([{"ip": "203.0.113.10"}])).await;
    settle().await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]));
    world.owner_publishes("app", json!([{"ip": "203.0.113.99"}])).await;
    settle().await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.99", "ipMode": "Proxy"}]));
    world.owner_publishes("app", Value::Null).await;
    settle().await;
    assert_eq!(world.ingress("app"), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_asked_for_it_goes_and_the_mode_goes_with_it() {
    let world = World::started(ApiVersion::V1_36).await;
    world.serve("app").await;
    world.annotate("app", json!({PROXY_PROTOCOL: "false"})).await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "VIP"}]));
    assert_eq!(world.writes().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_decides_for_itself() {
    let world = World::started(ApiVersion::V1_36).await;
    world.serve("app").await;
    world.annotate("app", json!({MODE: "vip"})).await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "VIP"}]));
    world.annotate("app", json!({MODE: "prxy"})).await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "VIP"}]), "what is there stays");
    let events = world.events("app");
    assert!(
        events.iter().any(|event| event.contains("IPModeNotUnderstood") && event.contains("\"prxy\"")),
        "{events:?}"
    );
    world.annotate("app", json!({MODE: "proxy", PROXY_PROTOCOL: null})).await;
    assert_eq!(world.ingress("app"), json!([{"ip": "203.0.113.10", "ipMode": "Proxy"}]));
}

#[rstest]
#[case::not_chosen(json!({"metadata": {"annotations": {"a": "b"}}}), "203.0.113.10", None)]
#[case::metallb(json!({"metadata": {"annotations": {MODE: "proxy", "metallb.io/ip-allocated-from-pool": "p"}}}), "203.0.113.10", Some("MetalLB"))]
#[case::cilium(json!({"metadata": {"annotations": {MODE: "proxy"}}, "spec": {"loadBalancerClass": "io.cilium/l2-announcer"}}), "203.0.113.10", Some("Cilium"))]
#[case::service_lb(json!({"metadata": {"annotations": {MODE: "proxy"}}}), "10.0.0.11", Some("10.0.0.11 is the address of a node"))]
#[tokio::test(start_paused = true)]
async fn some_services_are_never_touched(
    #[case] service: Value,
    #[case] address: &str,
    #[case] refusal: Option<&str>,
) {
    let world = World::started(ApiVersion::V1_36).await;
    world.create_with("app", &service);
    world.owner_publishes("app", json!([{"ip": address}])).await;
    settle().await;
    assert_eq!(world.ingress("app")[0]["ipMode"], "VIP");
    assert_eq!(world.writes().len(), 0);
    let events = world.events("app");
    assert_eq!(events.len(), usize::from(refusal.is_some()), "{events:?}");
    assert!(
        refusal.is_none_or(|text| events[0].contains("IPModeRefused") && events[0].contains(text)),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_restricts_the_sources_reads_who_enforces_that_now() {
    let world = World::started(ApiVersion::V1_36).await;
    world.create_with(
        "app",
        &json!({"metadata": {"annotations": {MODE: "proxy"}}, "spec": {"loadBalancerSourceRanges": ["198.51.100.0/24"]}}),
    );
    world.owner_publishes("app", json!([{"ip": "203.0.113.10"}])).await;
    settle().await;
    let events = world.events("app");
    assert!(events.iter().any(|event| event.starts_with("Warning IPModeSourceRanges")), "{events:?}");
    assert_eq!(world.ingress("app")[0]["ipMode"], "Proxy");
}

#[tokio::test(start_paused = true)]
async fn cleanup_gives_back_what_the_overlay_set_and_nothing_else() {
    let mut world = World::started(ApiVersion::V1_36).await;
    world.serve("ours").await;
    world.create_with("owners", &json!({}));
    world.owner_publishes("owners", json!([{"ip": "203.0.113.20", "ipMode": "Proxy"}])).await;
    world.create_with("plain", &json!({}));
    world.owner_publishes("plain", json!([{"ip": "203.0.113.30"}])).await;
    settle().await;
    world.stop().await;
    let done = cleanup(&world.user, None).await.unwrap();
    assert_eq!(done.given_back.iter().map(ToString::to_string).collect::<Vec<_>>(), ["default/ours"]);
    assert_eq!(done.failed, []);
    assert_eq!(world.ingress("ours"), json!([{"ip": "203.0.113.10", "ipMode": "VIP"}]));
    assert_eq!(world.ingress("owners"), json!([{"ip": "203.0.113.20", "ipMode": "Proxy"}]));
    assert_eq!(cleanup(&world.user, None).await.unwrap().given_back, []);
}

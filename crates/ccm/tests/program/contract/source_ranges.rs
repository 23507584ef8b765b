//! Source ranges, and the provider ovn.

use openstack_ccm_kube_sim::ApiVersion;
use openstack_ccm_openstack_sim::Fault;
use rstest::rstest;
use serde_json::{Value, json};

use super::setup::{allowed_cidrs, annotated, configured, load_balancer};
use crate::support::{World, lb_name, service};

const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// The ranges of the field are those that may connect, without the bits of hosts.
///
/// Contract: S1, same.
#[tokio::test(start_paused = true)]
async fn s1_the_ranges_of_the_field_may_connect() {
    let ranges = json!({"spec": {"loadBalancerSourceRanges": ["192.168.32.1/24", "10.0.0.0/8"]}});
    let world = World::serving(&service("web", ranges)).await;
    assert_eq!(allowed_cidrs(&world), [["10.0.0.0/8", "192.168.32.0/24"]]);
    world.patch_to_rest("web", &json!({"spec": {"loadBalancerSourceRanges": null}})).await;
    assert_eq!(world.take_cloud_writes(), ["PUT listeners/ID"]);
    assert_eq!(allowed_cidrs(&world), [["0.0.0.0/0"]], "everybody again");
}

/// The annotation speaks where the field is empty, and only there.
///
/// Contract: S2, same.
#[rstest]
#[case::field_empty(Value::Null, &["10.0.0.0/8", "192.0.2.0/24"])]
#[case::field_set(json!(["203.0.113.0/24"]), &["203.0.113.0/24"])]
#[tokio::test(start_paused = true)]
async fn s2_the_annotation_speaks_where_the_field_is_empty(#[case] field: Value, #[case] expected: &[&str]) {
    let mut object = annotated(&[(RANGES, "10.0.0.0/8, 192.0.2.0/24")]);
    object["spec"]["loadBalancerSourceRanges"] = field;
    let world = World::serving(&object).await;
    assert_eq!(allowed_cidrs(&world), [expected]);
}

/// What is no range stops a new Service with an event before anything is made. One that serves keeps the ranges that it has,
/// and follows its nodes.
///
/// Contract: S3, better: OCCM does not follow the nodes of such a Service either.
#[tokio::test(start_paused = true)]
async fn s3_what_is_no_range_is_an_error() {
    let world = World::started().await;
    world.create(&annotated(&[(RANGES, "foo")]));
    world.until_warned("web", "\"foo\" is not a CIDR").await;
    assert!(world.cloud.load_balancers().is_empty());
    world.annotate("web", RANGES, Some("10.0.0.0/8"));
    world.until_published("web").await;
    world.annotate_to_rest("web", RANGES, Some("foo")).await;
    world.take_calls();
    world.third_node_joins().await;
    assert_eq!(world.take_cloud_writes(), ["PUT pools/ID/members"]);
    assert_eq!(allowed_cidrs(&world), [["10.0.0.0/8"]]);
}

/// An Octavia without `allowed_cidrs` admits everybody, and a Service that restricts access gets an Event.
///
/// Contract: S4, better: only a Service that asked for ranges gets an Event.
#[rstest]
#[case::asked(true)]
#[case::not_asked(false)]
#[tokio::test(start_paused = true)]
async fn s4_ranges_that_octavia_cannot_hold_are_named(#[case] asked: bool) {
    let world = World::started().await;
    world.cloud.set_octavia_api(11);
    let ranges = if asked { json!(["10.0.0.0/8"]) } else { Value::Null };
    world.create(&service("web", json!({"spec": {"loadBalancerSourceRanges": ranges}})));
    world.until_served("web").await;
    let warnings = world.warnings("web");
    assert_eq!(
        warnings.iter().any(|one| one.contains("LoadBalancerSourceRangesIgnored")),
        asked,
        "{warnings:?}"
    );
    assert!(allowed_cidrs(&world)[0].is_empty());
}

/// The provider ovn gets neither timeouts nor ranges, flavor or zone, and its own method; tags it does get. Ranges that
/// were asked for are named.
///
/// Contract: S5, better: `SOURCE_IP_PORT`, the only method of ovn, need not be configured.
#[rstest]
#[case::method_configured("lb-method=SOURCE_IP_PORT\n")]
#[case::method_by_itself("")]
#[tokio::test(start_paused = true)]
async fn s5_ovn_gets_what_it_can_do(#[case] method: &str) {
    let world = configured(|world| {
        world.cloud.add_octavia_provider("ovn");
        format!("lb-provider=ovn\n{method}")
    })
    .await;
    let flavor = world.cloud.add_octavia_flavor("big");
    let mut object = annotated(&[
        ("flavor-id", &flavor),
        ("availability-zone", "zone-1"),
        ("timeout-client-data", "60000"),
    ]);
    object["spec"]["loadBalancerSourceRanges"] = json!(["10.0.0.0/8"]);
    world.create(&object);
    world.until_served("web").await;
    let (lb, listener, pool) = (load_balancer(&world), &world.cloud.listeners()[0], &world.cloud.pools()[0]);
    assert_eq!(
        (&lb["provider"], &lb["flavor_id"], &lb["availability_zone"]),
        (&json!("ovn"), &Value::Null, &Value::Null)
    );
    assert!(lb["tags"].as_array().unwrap().contains(&json!(lb_name("web"))));
    assert_eq!(listener["timeout_client_data"], 50_000, "Octavia's default: not sent");
    assert!(allowed_cidrs(&world)[0].is_empty());
    assert_eq!(pool["lb_algorithm"], "SOURCE_IP_PORT");
    let warnings = world.warnings("web").join("\n");
    assert!(warnings.contains("LoadBalancerSourceRangesIgnored"), "{warnings}");
    assert!(warnings.contains("LoadBalancerAvailabilityZonesIgnored"), "{warnings}");
}

/// The PROXY protocol, TLS and HTTP headers are beyond ovn: the Service is refused before anything is made.
#[rstest]
#[case::proxy_protocol(&[("proxy-protocol", "v2")])]
#[case::x_forwarded_for(&[("x-forwarded-for", "true")])]
#[tokio::test(start_paused = true)]
async fn s5_what_ovn_cannot_do_is_refused(#[case] annotations: &[(&str, &str)]) {
    let world = configured(|world| {
        world.cloud.add_octavia_provider("ovn");
        "lb-provider=ovn\n".to_owned()
    })
    .await;
    world.create(&annotated(annotations));
    world.until_warned("web", "provider ovn only forwards packets").await;
    assert!(world.cloud.load_balancers().is_empty());
}

/// An API version list that cannot be had is no answer: nothing is made until it is there.
///
/// Contract: S7, better: OCCM takes it for a cloud without any feature, and makes a load balancer without tags, open to
/// everybody.
/// Defect: 10, better: a failed discovery is tried again, and takes no feature away.
#[tokio::test(start_paused = true)]
async fn s7_a_failed_version_list_never_means_that_octavia_can_do_nothing() {
    let mut world = World::new(ApiVersion::V1_36);
    let broken = world.cloud.faults().add(
        Fault::new()
            .service("load-balancer")
            .path("^/$")
            .answer(503, json!({"title": "Service Unavailable"})),
    );
    world.start().await;
    world.create(&service("web", json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}})));
    world.until_warned("web", "asking for Octavia's API versions").await;
    world.pass(300).await;
    assert!(world.take_cloud_writes().is_empty(), "nothing is made");
    world.cloud.faults().remove(broken);
    world.until_served("web").await;
    assert_eq!(allowed_cidrs(&world), [["10.0.0.0/8"]]);
    assert!(load_balancer(&world)["tags"].as_array().is_some_and(|tags| !tags.is_empty()));
}

/// An Octavia that is upgraded while the program runs is used as what it is by then, without a restart.
#[tokio::test(start_paused = true)]
async fn an_upgrade_of_octavia_is_noticed() {
    let world = World::started().await;
    world.cloud.set_octavia_api(11);
    let ranges = json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}});
    world.serve(&service("web", ranges)).await;
    assert_eq!(allowed_cidrs(&world), [Vec::<String>::new()]);
    assert!(world.warnings("web").concat().contains("any client can connect"));
    world.cloud.set_octavia_api(30);
    // The version list is good for seven hours at most; the next check for drift goes by the new one.
    world.pass(8 * 3600).await;
    assert_eq!(allowed_cidrs(&world), [["192.0.2.0/24"]]);
}

/// A version list that cannot be had any more takes nothing away.
#[tokio::test(start_paused = true)]
async fn a_version_list_that_fails_later_takes_nothing_away() {
    let world =
        World::serving(&service("web", json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}})))
            .await;
    world.cloud.faults().add(Fault::new().service("load-balancer").path("^/$").answer(503, json!({})));
    world.pass(8 * 3600).await;
    world.annotate_to_rest("web", "loadbalancer.openstack.org/connection-limit", Some("100")).await;
    assert_eq!(world.cloud.listeners()[0]["connection_limit"], 100);
    assert_eq!(allowed_cidrs(&world), [["192.0.2.0/24"]]);
    assert!(world.warnings("web").is_empty(), "{:?}", world.warnings("web"));
}

/// A provider that the cloud does not have is named together with those that it has.
#[tokio::test(start_paused = true)]
async fn a_provider_that_is_not_there_is_named_with_those_that_are() {
    let world = configured(|_| "lb-provider=vendor\n".to_owned()).await;
    world.create(&annotated(&[]));
    world.until_warned("web", "this cloud has the providers amphora, octavia: correct lb-provider").await;
    world.cloud.add_octavia_provider("vendor");
    world.until_published("web").await;
}

/// A provider that says that it has no flavors gets none; one that may not be asked is taken to have them.
#[rstest]
#[case::none(Some(501), false)]
#[case::not_allowed(None, true)]
#[tokio::test(start_paused = true)]
async fn a_provider_is_asked_for_flavors(#[case] answer: Option<u16>, #[case] sent: bool) {
    let world = configured(|_| "lb-provider=vendor\n".to_owned()).await;
    world.cloud.add_octavia_provider("vendor");
    let body = json!({"faultcode": "Server", "debuginfo": null, "faultstring":
        "Provider 'vendor' does not support a requested action: This provider does not support getting the supported \
         flavor metadata."});
    if let Some(status) = answer {
        let question = Fault::new().service("load-balancer").path("vendor/flavor_capabilities");
        world.cloud.faults().add(question.answer(status, body));
    }
    let flavor = world.cloud.add_octavia_flavor("large");
    world.serve(&annotated(&[("flavor-id", &flavor)])).await;
    let expected = if sent { json!(flavor) } else { Value::Null };
    assert_eq!(load_balancer(&world)["flavor_id"], expected);
    assert_eq!(world.warnings("web").concat().contains("LoadBalancerFlavorIgnored"), !sent);
}

/// An Octavia of version 2.0 gets nothing that came later.
///
/// Contract: S8, same.
#[tokio::test(start_paused = true)]
async fn s8_the_first_octavia_gets_nothing_that_came_later() {
    let world = World::started().await;
    world.cloud.set_octavia_api(0);
    world.create(&annotated(&[("timeout-client-data", "60000"), ("availability-zone", "zone-1")]));
    world.until_served("web").await;
    let (lb, listener) = (load_balancer(&world), &world.cloud.listeners()[0]);
    assert!(lb["tags"].as_array().is_none_or(Vec::is_empty), "{lb}");
    assert!(listener["timeout_client_data"] != 60_000 && allowed_cidrs(&world)[0].is_empty());
    assert_eq!(world.ingress("web"), ["198.19.0.11(VIP)"]);
}

/// Ranges of a family that the load balancer has no address of are left out and named; Octavia would refuse them all.
#[tokio::test(start_paused = true)]
async fn ranges_of_the_other_family_are_left_out_and_named() {
    let ranges = json!({"spec": {"loadBalancerSourceRanges": ["2001:db8::/32", "10.0.0.0/8"]}});
    let world = World::serving(&service("web", ranges)).await;
    assert_eq!(allowed_cidrs(&world), [["10.0.0.0/8"]]);
    world.assert_warned_once("web", "2001:db8::/32");
}

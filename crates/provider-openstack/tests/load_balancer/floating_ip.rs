//! Floating IPs, internal Services and addresses.

use std::net::IpAddr;

use openstack_ccm_core::failure::FailureClass;
use rstest::rstest;
use serde_json::json;

use crate::cloud::{Cloud, FIRST_FLOATING_IP, FIRST_VIP};
use crate::cluster::{Cluster, Settled, annotate, web};
use crate::line::Fault;

const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

fn address(settled: &Settled) -> IpAddr {
    settled.as_ref().expect("served").addresses[0]
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn f6_an_address_that_nobody_has_is_asked_for_and_may_be_refused() {
    let cloud = Cloud::new();
    let body = r#"{"NeutronError":{"type":"PolicyNotAuthorized","message":"rule:create_floatingip:floating_ip_address","detail":""}}"#;
    cloud.line.fail(Fault::answer("POST floatingips", 403, body));
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    service.load_balancer_ip = Some("198.19.0.77".into());
    let failure = cluster.settle(&mut service).await.expect_err("refused");
    assert_eq!(failure.class, FailureClass::Auth);
    assert!(failure.message.contains("remove spec.loadBalancerIP"), "{failure}");
    let log = cloud.line.take_log();
    let post = log.iter().find(|call| call.name() == "POST floatingips").expect("a POST");
    assert_eq!(post.body["floatingip"]["floating_ip_address"], "198.19.0.77");
    service.load_balancer_ip = None;
    assert_eq!(address(&cluster.settle(&mut service).await), ip(FIRST_FLOATING_IP), "good input heals");
}

#[rstest]
#[case::not_configured(false)]
#[case::f9_empty_annotation_hides_cloud_conf(true)]
#[tokio::test(start_paused = true)]
async fn f8_the_only_external_network_is_found(#[case] by_annotation: bool) {
    let cloud = Cloud::new();
    let mut config = cloud.config();
    let mut service = web();
    if by_annotation {
        config.load_balancer.floating_network_id = Some("00000000-0000-4000-8000-000000000000".into());
        annotate(&mut service, "floating-network-id", "");
    } else {
        config.load_balancer.floating_network_id = None;
    }
    let settled = Cluster::with_config(&cloud, config).settle(&mut service).await;
    assert_eq!(address(&settled), ip(FIRST_FLOATING_IP));
}

#[tokio::test(start_paused = true)]
async fn f8_several_external_networks_are_named_and_the_service_is_internal() {
    let cloud = Cloud::new();
    cloud.new_external_network("ext2", "198.51.100.0/24");
    let mut config = cloud.config();
    config.load_balancer.floating_network_id = None;
    let mut cluster = Cluster::with_config(&cloud, config);
    let settled = cluster.settle(&mut web()).await;
    assert_eq!(address(&settled), ip(FIRST_VIP));
    let names: Vec<_> = cluster.notices.iter().filter(|notice| notice.message.contains("ext2")).collect();
    assert_eq!(names.len(), 1, "the candidates are named: {:?}", cluster.notices);
    let reasons = cluster.take_reasons();
    assert!(reasons.contains(&"LoadBalancerExternalNetworkSearchFailed"), "{reasons:?}");
    assert!(reasons.contains(&"LoadBalancerForcedInternal"), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn f10_a_floating_subnet_must_belong_to_the_floating_network() {
    let cloud = Cloud::new();
    let mut service = web();
    annotate(&mut service, "floating-subnet-id", &cloud.sub1);
    let mut cluster = Cluster::new(&cloud);
    let failure = cluster.settle(&mut service).await.expect_err("refused");
    assert_eq!(failure.class, FailureClass::UserInput);
    assert!(failure.message.contains("floating-subnet-id"), "{failure}");
    assert!(cloud.load_balancers().is_empty(), "before anything is made");

    annotate(&mut service, "floating-subnet-id", &cloud.ext1_subnet);
    cluster.settle(&mut service).await.expect("served");
    let log = cloud.line.take_log();
    let post = log.iter().find(|call| call.name() == "POST floatingips").expect("a POST");
    assert_eq!(post.body["floatingip"]["subnet_id"], json!(cloud.ext1_subnet));
}

#[tokio::test(start_paused = true)]
async fn f12_a_pattern_that_fits_nothing_is_refused() {
    let cloud = Cloud::new();
    let mut service = web();
    annotate(&mut service, "floating-subnet", "nothing-*");
    let failure = Cluster::new(&cloud).settle(&mut service).await.expect_err("refused");
    assert_eq!(failure.class, FailureClass::UserInput);
    assert!(failure.message.contains("nothing-*"), "{failure}");
}

/// Defect: 78, better: a floating IP is taken off with an explicit `null`, not by Neutron's reading of an empty request.
#[rstest]
#[case::made_here(false, false, 0)]
#[case::to_be_kept(true, false, 1)]
#[case::described_otherwise(false, true, 1)]
#[tokio::test(start_paused = true)]
async fn f17_f18_a_service_turns_internal_and_back(
    #[case] keep: bool,
    #[case] described: bool,
    #[case] left: usize,
) {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    if keep {
        annotate(&mut service, "keep-floatingip", "true");
    }
    if described {
        cloud.describe_floating_ip("mine");
    }
    annotate(&mut service, INTERNAL, "true");
    assert_eq!(address(&cluster.settle(&mut service).await), ip(FIRST_VIP));
    let floating_ips = cloud.floating_ips();
    assert_eq!(floating_ips.len(), left);
    assert!(floating_ips.iter().all(|floating_ip| floating_ip["port_id"].is_null()));
    let log = cloud.line.take_log();
    let detached: Vec<_> = log.iter().filter(|call| call.name() == "PUT floatingips/ID").collect();
    // The one that somebody described is off already: that is what Neutron makes of a request without a port.
    assert_eq!(detached.len(), usize::from(keep));
    assert!(detached.iter().all(|call| call.body == json!({"floatingip": {"port_id": null}})));

    service.annotations.remove(INTERNAL);
    let settled = cluster.settle(&mut service).await;
    assert!(address(&settled).to_string().starts_with("198.19.0."));
}

#[tokio::test(start_paused = true)]
async fn f23_nothing_is_written_when_nothing_changes() {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    assert!(cluster.settle(&mut service).await.expect("served").changed);
    let annotations = service.annotations.clone();
    for restart in [false, true] {
        if restart {
            cluster.restart();
        }
        cloud.line.take_log();
        assert!(!cluster.settle(&mut service).await.expect("served").changed);
        let log = cloud.line.take_log();
        assert!(log.iter().all(|call| !call.is_write()), "{log:?}");
        assert_eq!(service.annotations, annotations);
    }
}

//! The cloud is slow, refuses, fails, or loses answers.

use std::time::Duration;

use openstack_ccm_core::failure::FailureClass;
use openstack_ccm_core::provider::{LoadBalancers, Outcome};
use openstack_ccm_openstack_sim::OperationKind;
use openstack_ccm_provider_openstack::config::ErrorRecovery;
use rstest::rstest;

use crate::cloud::{Cloud, FIRST_FLOATING_IP, NODE_3};
use crate::cluster::{Cluster, NAME, annotate, node, service, web};
use crate::line::{Exchange, Fault};

#[tokio::test(start_paused = true)]
async fn an_overloaded_cloud_is_left_alone_as_long_as_it_asks() {
    let cloud = Cloud::new();
    let mut fault = Fault::answer("POST loadbalancers", 503, "busy");
    fault.retry_after = Some(90);
    cloud.line.fail(fault);
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    let failure = cluster.settle(&mut service).await.expect_err("busy");
    assert_eq!(failure.class, FailureClass::Unavailable);
    assert_eq!(failure.delay(0), Duration::from_secs(90));
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.load_balancers().len(), 1);
}

#[rstest]
#[case::unknown_network("network-id", "network 00000000-0000-4000-8000-000000000000 does not exist")]
#[case::unknown_subnet("subnet-id", "subnet 00000000-0000-4000-8000-000000000000 does not exist")]
#[case::unknown_member_subnet(
    "member-subnet-id",
    "subnet 00000000-0000-4000-8000-000000000000 does not exist"
)]
#[case::unknown_port("port-id", "port 00000000-0000-4000-8000-000000000000 does not exist")]
#[case::unknown_floating_network(
    "floating-network-id",
    "network 00000000-0000-4000-8000-000000000000 does not exist"
)]
#[tokio::test(start_paused = true)]
async fn an_unknown_id_is_named_before_anything_is_made(#[case] key: &str, #[case] message: &str) {
    let cloud = Cloud::new();
    let mut config = cloud.config();
    if key == "network-id" {
        config.load_balancer.subnet_id = None;
    }
    let mut cluster = Cluster::with_config(&cloud, config);
    let mut service = web();
    annotate(&mut service, key, "00000000-0000-4000-8000-000000000000");
    let failure = cluster.settle(&mut service).await.expect_err("refused");
    assert_eq!(failure.class, FailureClass::UserInput);
    assert!(failure.message.contains(message) && failure.message.contains(key), "{failure}");
    assert!(cloud.line.take_log().iter().all(|call| !call.is_write()));
    service.annotations.clear();
    annotate(&mut service, "subnet-id", &cloud.sub1);
    cluster.settle(&mut service).await.expect("good input heals without a restart");
}

#[tokio::test(start_paused = true)]
async fn a_missing_role_is_named() {
    let cloud = Cloud::new();
    let body = r#"{"faultcode":"Client","faultstring":"Policy does not allow this request to be performed.","debuginfo":null}"#;
    cloud.line.fail(Fault::answer("POST loadbalancers", 403, body));
    let failure = Cluster::new(&cloud).settle(&mut web()).await.expect_err("refused");
    assert_eq!(failure.class, FailureClass::Auth);
    assert!(failure.message.contains("load-balancer_member"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_quota_of_floating_ips_keeps_the_load_balancer_and_heals() {
    let cloud = Cloud::new();
    let body = r#"{"NeutronError":{"type":"OverQuota","message":"Quota exceeded for resources: ['floatingip'].","detail":""}}"#;
    cloud.line.fail(Fault::answer("POST floatingips", 409, body));
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    let failure = cluster.settle(&mut service).await.expect_err("refused");
    assert_eq!(failure.class, FailureClass::Quota);
    assert!(failure.message.contains("quota of \"floatingip\""), "{failure}");
    assert_eq!(cloud.load_balancers().len(), 1);
    cluster.settle(&mut service).await.expect("served after the quota was raised");
}

#[tokio::test(start_paused = true)]
async fn s7_an_octavia_that_cannot_be_asked_makes_no_crippled_load_balancer() {
    let cloud = Cloud::new();
    cloud.line.fail(Fault::answer("GET /", 503, "down").times(3));
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    let failure = cluster.settle(&mut service).await.expect_err("down");
    assert_eq!(failure.class, FailureClass::Unavailable);
    assert!(cloud.load_balancers().is_empty());
    cluster.settle(&mut service).await.expect("served");
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_inside_octavia_is_sent_again_with_pauses() {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    cloud.fail(OperationKind::MemberBatch, 3);
    cluster.nodes.push(node("n3", NODE_3, None));
    let failure = cluster.settle(&mut service).await.expect_err("the second repair has to rest");
    assert_eq!(failure.class, FailureClass::Unavailable);
    cluster.settle_through_failures(&mut service, 4).await.expect("served in the end");
    assert_eq!(cloud.member_names(NAME), ["n1", "n2", "n3"]);
    assert!(cloud.members(NAME).iter().all(|member| member["provisioning_status"] == "ACTIVE"));
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_breaks_is_replaced_on_the_same_addresses_where_the_operator_wants_that() {
    let cloud = Cloud::new();
    let mut config = cloud.config();
    config.load_balancer.error_recovery = ErrorRecovery::Replace;
    let mut cluster = Cluster::with_config(&cloud, config);
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    let before = cloud.load_balancer(NAME);
    tokio::time::sleep(Duration::from_secs(300)).await;
    cloud.break_load_balancer(NAME);
    let ready = cluster.settle(&mut service).await.expect("served");
    let after = cloud.load_balancer(NAME);
    assert_ne!(after["id"], before["id"]);
    assert_eq!(after["vip_address"], before["vip_address"]);
    assert_eq!(ready.addresses[0].to_string(), FIRST_FLOATING_IP);
    assert_eq!((cloud.floating_ips().len(), cloud.vip_ports().len()), (1, 1));
    assert!(cluster.take_reasons().contains(&"LoadBalancerReplaced"));
}

/// Defect: 22, better: no worker waits for a locked load balancer.
#[tokio::test(start_paused = true)]
async fn a_stuck_load_balancer_delays_no_other_and_is_reported() {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut stuck = web();
    cloud.hold(OperationKind::LoadBalancerCreate, NAME);
    let first = cluster.pass(&mut stuck).await.expect("posted");
    assert!(matches!(first, Outcome::Waiting(_)));
    let mut other = service("web2", "99999999-2222-3333-4444-555555555555", web().ports);
    cluster.settle(&mut other).await.expect("served");

    tokio::time::sleep(Duration::from_secs(700)).await;
    let later = cluster.pass(&mut stuck).await.expect("still pending");
    assert!(matches!(later, Outcome::Waiting(_)));
    assert!(cluster.take_reasons().contains(&"LoadBalancerStuck"));
}

#[tokio::test(start_paused = true)]
async fn a_lock_by_somebody_else_is_waited_for() {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    let body = r#"{"faultcode":"Client","faultstring":"Load Balancer x is immutable and cannot be updated.","debuginfo":null}"#;
    cloud.line.fail(Fault::answer("PUT pools", 409, body));
    cluster.nodes.push(node("n3", NODE_3, None));
    cluster.settle(&mut service).await.expect("no failure");
    assert_eq!(cloud.member_names(NAME), ["n1", "n2", "n3"]);
}

/// Defect: 61, better: changes of one load balancer are made one after another.
#[tokio::test(start_paused = true)]
async fn services_on_one_load_balancer_take_turns() {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut owner = web();
    cluster.settle(&mut owner).await.expect("served");
    cloud.line.take_log();
    owner.ports[0].node_port = Some(30081);
    let mut guest = service("web2", "99999999-2222-3333-4444-555555555555", web().ports);
    guest.ports[0].port = 8080;
    annotate(&mut guest, "load-balancer-id", &cloud.load_balancer_id(NAME));
    let goals = [cluster.serve(&owner), cluster.serve(&guest)];
    let provider = std::sync::Arc::clone(&cluster.program.provider);
    let passes = goals.iter().map(|goal| provider.reconcile(goal));
    for pass in futures::future::join_all(passes).await {
        assert!(matches!(pass.result, Ok(Outcome::Waiting(_))), "{pass:?}");
    }
    let log = cloud.line.take_log();
    let refused = log.iter().filter(|call| call.status == 409).count();
    assert_eq!(
        refused,
        0,
        "the second saw that the first had locked it: {:?}",
        log.iter().map(Exchange::name)
    );
}

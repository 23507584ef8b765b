//! A Service goes.

use std::time::Duration;

use openstack_ccm_core::provider::Outcome;
use openstack_ccm_core::service::{Protocol, Service};
use openstack_ccm_openstack_sim::OperationKind;
use rstest::rstest;
use serde_json::json;

use crate::cloud::{Cloud, FIRST_FLOATING_IP};
use crate::cluster::{Cluster, NAME, annotate, annotation, port, service, web};
use crate::line::{Exchange, Fault};

async fn served(cloud: &Cloud) -> (Cluster, Service) {
    let mut cluster = Cluster::new(cloud);
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    cloud.line.take_log();
    (cluster, service)
}

#[tokio::test(start_paused = true)]
async fn k1_nothing_is_left() {
    let cloud = Cloud::new();
    let before = cloud.snapshot();
    let (mut cluster, mut service) = served(&cloud).await;
    cluster.release(&mut service).await.expect("gone");
    assert_eq!(cloud.snapshot(), before);
    let writes: Vec<_> = cloud.line.take_log().into_iter().filter(Exchange::is_write).collect();
    let names: Vec<_> = writes.iter().map(Exchange::name).collect();
    assert_eq!(names, ["DELETE loadbalancers/ID", "DELETE floatingips/ID"], "the address goes last");
    assert!(writes[0].target.ends_with("?cascade=true"));
    assert!(service.annotations.is_empty(), "own annotations go too: {:?}", service.annotations);
}

#[rstest]
#[case::k2_kept_by_annotation(true, "")]
#[case::k3_described_otherwise(false, "mine")]
#[tokio::test(start_paused = true)]
async fn a_floating_ip_stays(#[case] keep: bool, #[case] description: &str) {
    let cloud = Cloud::new();
    let (mut cluster, mut service) = served(&cloud).await;
    if keep {
        annotate(&mut service, "keep-floatingip", "true");
    } else {
        cloud.describe_floating_ip(description);
    }
    cluster.release(&mut service).await.expect("gone");
    cloud.only_floating_ip();
    assert!(cloud.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn k4_without_cascade_the_children_go_one_by_one() {
    let cloud = Cloud::new();
    let before = cloud.snapshot();
    let mut config = cloud.config();
    config.load_balancer.cascade_delete = false;
    let mut cluster = Cluster::with_config(&cloud, config);
    let mut service = web();
    annotate(&mut service, "enable-health-monitor", "true");
    cluster.settle(&mut service).await.expect("served");
    cloud.line.take_log();
    cluster.release(&mut service).await.expect("gone");
    let log = cloud.line.take_log();
    assert!(log.iter().all(|call| !call.target.contains("cascade")), "{log:?}");
    assert_eq!(cloud.snapshot(), before);
}

#[tokio::test(start_paused = true)]
async fn k5_a_pending_load_balancer_is_waited_for() {
    let cloud = Cloud::new();
    let (mut cluster, mut service) = served(&cloud).await;
    cloud.sim.set_delays(Duration::from_secs(20));
    cloud.start_to_update_listener(&json!({"connection_limit": 7}));
    cluster.release(&mut service).await.expect("gone");
    assert!(cloud.load_balancers().is_empty());
    let refused = cloud.line.take_log().into_iter().filter(|call| call.status == 409).count();
    assert_eq!(refused, 0, "nothing is tried while it is locked");
}

#[tokio::test(start_paused = true)]
async fn k6_a_broken_load_balancer_goes_too() {
    let cloud = Cloud::new();
    let before = cloud.snapshot();
    cloud.fail(OperationKind::LoadBalancerCreate, 1);
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    let first = cluster.pass(&mut service).await.expect("posted");
    assert!(matches!(first, Outcome::Waiting(_)));
    cluster.release(&mut service).await.expect("gone");
    assert_eq!(cloud.snapshot(), before);
}

#[tokio::test(start_paused = true)]
async fn k7_k12_a_service_that_has_nothing_is_released_by_reads_alone() {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    cluster.release(&mut web()).await.expect("nothing there");
    let (mut cluster, mut service) = served(&cloud).await;
    cloud.delete_load_balancer(&cloud.load_balancer_id(NAME));
    cloud.sim.settle();
    cloud.line.take_log();
    cluster.release(&mut service).await.expect("gone already");
    let writes: Vec<_> =
        cloud.line.take_log().into_iter().filter(Exchange::is_write).map(|call| call.name()).collect();
    assert_eq!(writes, ["DELETE floatingips/ID"], "and its floating IP does not stay behind");
}

#[tokio::test(start_paused = true)]
async fn k8_a_lock_is_waited_for_and_gone_is_fine() {
    let cloud = Cloud::new();
    let (mut cluster, mut service) = served(&cloud).await;
    let body = r#"{"faultcode":"Client","faultstring":"Invalid state PENDING_UPDATE of loadbalancer resource x","debuginfo":null}"#;
    cloud.line.fail(Fault::answer("DELETE loadbalancers", 409, body));
    cluster.release(&mut service).await.expect("gone");

    let (mut cluster, mut service) = served(&cloud).await;
    cloud.line.fail(Fault::lost_answer("DELETE loadbalancers"));
    cluster.release(&mut service).await.expect_err("the answer is lost");
    cluster.release(&mut service).await.expect("gone");
    assert!(cloud.load_balancers().is_empty());
    assert!(cloud.floating_ips().is_empty());
}

#[tokio::test(start_paused = true)]
async fn h9_h10_h11_a_shared_load_balancer_goes_with_the_last_that_owns_it() {
    let cloud = Cloud::new();
    let (mut cluster, mut owner) = served(&cloud).await;
    let id = cloud.load_balancer_id(NAME);
    let ports = vec![port(Protocol::Tcp, 8080, 31080)];
    let mut guest = service("web2", "99999999-2222-3333-4444-555555555555", ports);
    annotate(&mut guest, "load-balancer-id", &id);
    let ready = cluster.settle(&mut guest).await.expect("served");
    assert_eq!(ready.addresses[0].to_string(), FIRST_FLOATING_IP, "h1: the same floating IP");
    assert_eq!(cloud.listener_ports(&id), [80, 8080]);

    let mut third =
        service("web3", "88888888-2222-3333-4444-555555555555", vec![port(Protocol::Tcp, 8081, 31081)]);
    annotate(&mut third, "load-balancer-id", &id);
    let failure = cluster.settle(&mut third).await.expect_err("h2: two is the limit");
    assert!(failure.message.contains("max-shared-lb"), "{failure}");

    let mut greedy = guest.clone();
    greedy.ports[0].port = 80;
    let failure = cluster.settle(&mut greedy).await.expect_err("h3: the port is taken");
    assert!(failure.message.contains("TCP:80"), "{failure}");

    cluster.release(&mut owner).await.expect("gone");
    assert_eq!(cloud.listener_ports(&id), [8080], "h10: the owner's part is gone");
    cluster.settle(&mut guest).await.expect("still served");
    cluster.release(&mut guest).await.expect("gone");
    assert_eq!(cloud.listener_ports(&id), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn h6_h11_a_load_balancer_of_the_user_only_lends_its_ports() {
    let cloud = Cloud::new();
    let id = cloud.new_load_balancer("mylb", json!({}));
    cloud.new_listener(&id, "mine", 9000, json!({}));
    let floating_ip = cloud.new_floating_ip("198.19.0.66", "mine");
    cloud.attach_floating_ip(&floating_ip, cloud.vip_port().as_str());
    let before = cloud.snapshot();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    annotate(&mut service, "load-balancer-id", &id);
    let ready = cluster.settle(&mut service).await.expect("served");
    assert_eq!(ready.addresses[0].to_string(), "198.19.0.66");
    assert_eq!(cloud.listener_ports(&id), [80, 9000]);
    cluster.release(&mut service).await.expect("gone");
    assert_eq!(cloud.snapshot(), before);
    assert_eq!(annotation(&service, "load-balancer-id"), Some(id.as_str()), "what the user wrote stays");
}

#[tokio::test(start_paused = true)]
async fn h13_an_id_that_the_user_made_up_is_an_error_and_blocks_no_deletion() {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    annotate(&mut service, "load-balancer-id", "00000000-0000-4000-8000-000000000000");
    let failure = cluster.settle(&mut service).await.expect_err("refused");
    assert!(failure.message.contains("does not exist"), "{failure}");
    assert!(cloud.load_balancers().is_empty());
    cluster.release(&mut service).await.expect("nothing there");
}

#[rstest]
#[case::same_process(false)]
#[case::after_a_restart(true)]
#[tokio::test(start_paused = true)]
async fn h14_a_load_balancer_deleted_by_hand_is_recreated(#[case] restart: bool) {
    let cloud = Cloud::new();
    let (mut cluster, mut service) = served(&cloud).await;
    let old = cloud.load_balancer_id(NAME);
    cloud.delete_load_balancer(&old);
    cloud.sim.settle();
    if restart {
        cluster.restart();
    }
    let ready = cluster.settle(&mut service).await.expect("served");
    assert_eq!(ready.addresses[0].to_string(), FIRST_FLOATING_IP, "the floating IP is the same");
    assert_ne!(annotation(&service, "load-balancer-id"), Some(old.as_str()));
    assert_eq!(cloud.floating_ips().len(), 1);
    assert!(cluster.take_reasons().contains(&"LoadBalancerGone"));
}

#[tokio::test(start_paused = true)]
async fn h15_a_service_that_changes_its_type_and_back_is_served_again() {
    let cloud = Cloud::new();
    let (mut cluster, mut service) = served(&cloud).await;
    cluster.release(&mut service).await.expect("gone");
    cluster.settle(&mut service).await.expect("served again");
    assert_eq!(cloud.load_balancers().len(), 1);
}

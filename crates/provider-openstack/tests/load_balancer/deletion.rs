//! A Service goes.

use openstack_ccm_core::service::{Protocol, Service};
use rstest::rstest;

use crate::cloud::{Cloud, FIRST_FLOATING_IP};
use crate::cluster::{Cluster, NAME, annotate, port, service, web};
use crate::line::{Exchange, Fault};

async fn served(cloud: &Cloud) -> (Cluster, Service) {
    let mut cluster = Cluster::new(cloud);
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    cloud.line.take_log();
    (cluster, service)
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

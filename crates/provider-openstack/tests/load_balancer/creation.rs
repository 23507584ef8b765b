//! A Service gets its load balancer.

use std::time::Duration;

use openstack_ccm_core::failure::FailureClass;
use openstack_ccm_core::provider::Outcome;
use openstack_ccm_core::service::Protocol;
use openstack_ccm_openstack_sim::OperationKind;
use serde_json::{Value, json};

use crate::cloud::{Cloud, FIRST_FLOATING_IP, NODE_1, NODE_2};
use crate::cluster::{Cluster, NAME, UID, annotate, annotation, node, port, web};
use crate::line::Fault;

const TAGS: [&str; 3] = [
    NAME,
    "openstack-ccm-cluster=c1c1c1c1-0000-4000-8000-000000000001",
    "openstack-ccm-service=11111111-2222-3333-4444-555555555555",
];

/// The tree that was posted.
fn posted(cloud: &Cloud) -> Value {
    let log = cloud.line.take_log();
    let mut posts = log.into_iter().filter(|exchange| exchange.name() == "POST loadbalancers");
    let post = posts.next().expect("a POST");
    assert!(posts.next().is_none(), "one POST makes the whole tree");
    post.body["loadbalancer"].clone()
}

#[tokio::test(start_paused = true)]
async fn c1_the_base_is_what_occm_makes() {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    let ready = cluster.settle(&mut service).await.expect("served");
    assert_eq!(ready.addresses, [FIRST_FLOATING_IP.parse::<std::net::IpAddr>().unwrap()]);

    let log = cloud.line.take_log();
    let post = log.iter().find(|exchange| exchange.name() == "POST loadbalancers").expect("a POST");
    let member = |name: &str, address: &str| json!({"name": name, "address": address, "protocol_port": 30080, "subnet_id": cloud.sub1});
    let expected = json!({"loadbalancer": {
        "name": NAME,
        "description": "Kubernetes external service default/web from cluster c1",
        "provider": "amphora",
        "tags": TAGS,
        "vip_subnet_id": cloud.sub1,
        "listeners": [{
            "name": format!("listener_0_{NAME}"),
            "protocol": "TCP",
            "protocol_port": 80,
            "connection_limit": -1,
            "timeout_client_data": 50000,
            "timeout_member_connect": 5000,
            "timeout_member_data": 50000,
            "timeout_tcp_inspect": 0,
            "allowed_cidrs": ["0.0.0.0/0"],
            "tags": TAGS,
            "default_pool": {
                "name": format!("pool_0_{NAME}"),
                "protocol": "TCP",
                "lb_algorithm": "ROUND_ROBIN",
                "tags": TAGS,
                "members": [member("n1", NODE_1), member("n2", NODE_2)],
            },
        }],
    }});
    assert_eq!(post.body, expected);

    let load_balancer = cloud.load_balancer(NAME);
    let floating_ip = cloud.only_floating_ip();
    assert_eq!(floating_ip["floating_network_id"], json!(cloud.ext1));
    assert_eq!(floating_ip["port_id"], load_balancer["vip_port_id"]);
    assert_eq!(
        floating_ip["description"],
        "Floating IP for Kubernetes external service default/web from cluster c1"
    );
    assert_eq!(floating_ip["tags"], json!(TAGS[1..]));
    assert_eq!(annotation(&service, "load-balancer-id"), load_balancer["id"].as_str());
    assert_eq!(annotation(&service, "load-balancer-address"), Some(FIRST_FLOATING_IP));
    assert_eq!(cluster.take_reasons(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn c3_sctp_is_served_and_checked() {
    let cloud = Cloud::new();
    let mut service = web();
    service.ports = vec![port(Protocol::Sctp, 3868, 30868)];
    annotate(&mut service, "enable-health-monitor", "true");
    Cluster::new(&cloud).settle(&mut service).await.expect("served");
    let listener = &posted(&cloud)["listeners"][0];
    assert_eq!(listener["protocol"], "SCTP");
    assert_eq!(listener["default_pool"]["protocol"], "SCTP");
    assert_eq!(listener["default_pool"]["healthmonitor"]["type"], "SCTP");
}

/// Names that are too long are cut with a hash, and found again, also in the form that OCCM cuts.
///
/// Contract: C5, better: two long names never become one.
#[tokio::test(start_paused = true)]
async fn c5_long_names_fit_and_are_found_again() {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    cluster.identity.name = "c".repeat(250);
    cluster.restart();
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    let load_balancers = cloud.load_balancers();
    assert_eq!(load_balancers[0]["name"].as_str().map(str::len), Some(255));
    service.annotations.clear();
    cluster.settle(&mut service).await.expect("found again");
    assert_eq!(cloud.load_balancers().len(), 1);
}

/// The port of the user is the VIP, without subnet and network.
///
/// Contract: C8, same.
#[tokio::test(start_paused = true)]
async fn c8_a_port_of_the_user_is_the_vip() {
    let cloud = Cloud::new();
    let vip = cloud.new_port("198.18.0.177");
    let mut service = web();
    annotate(&mut service, "port-id", &vip);
    Cluster::new(&cloud).settle(&mut service).await.expect("served");
    let tree = posted(&cloud);
    assert_eq!(tree["vip_port_id"], json!(vip));
    assert_eq!((&tree["vip_subnet_id"], &tree["vip_network_id"]), (&Value::Null, &Value::Null));
    assert_eq!(tree["listeners"][0]["default_pool"]["members"][0]["subnet_id"], json!(cloud.sub1));
}

/// With a network alone Octavia chooses the subnet, and members follow the VIP.
///
/// Contract: C9, same.
#[tokio::test(start_paused = true)]
async fn c9_with_a_network_alone_members_follow_the_vip() {
    let cloud = Cloud::new();
    let mut config = cloud.config();
    config.load_balancer.subnet_id = None;
    let mut service = web();
    annotate(&mut service, "network-id", &cloud.net1);
    Cluster::with_config(&cloud, config).settle(&mut service).await.expect("served");
    let tree = posted(&cloud);
    assert_eq!((&tree["vip_network_id"], &tree["vip_subnet_id"]), (&json!(cloud.net1), &Value::Null));
    assert_eq!(tree["listeners"][0]["default_pool"]["members"][0]["subnet_id"], Value::Null);
}

/// Without a subnet anywhere, that of most nodes is taken.
///
/// Contract: C12, better: not that of a node that happens to be first.
#[tokio::test(start_paused = true)]
async fn c12_without_a_subnet_that_of_most_nodes_is_taken() {
    let cloud = Cloud::new();
    let mut config = cloud.config();
    config.load_balancer.subnet_id = None;
    let mut cluster = Cluster::with_config(&cloud, config);
    // c13: OCCM would fail over this one.
    cluster.nodes.insert(0, node("hybrid", "192.168.9.9", None));
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    let tree = posted(&cloud);
    assert_eq!(tree["vip_subnet_id"], json!(cloud.sub1));
    assert_eq!(tree["listeners"][0]["default_pool"]["members"][0]["subnet_id"], json!(cloud.sub1));
    assert_eq!(cluster.take_reasons(), ["LoadBalancerNodesSkipped"]);

    service.annotations.clear();
    cluster.settle(&mut service).await.expect("served");
    let asked: Vec<_> =
        cloud.line.take_log().into_iter().filter(|call| call.target.contains("/ports")).collect();
    assert!(asked.is_empty(), "an existing load balancer tells its subnet: {asked:?}");
}

/// If no subnet can be found, nothing is created, and an Event says what to set.
///
/// Contract: C13, better: one node without provider id does no harm, only all of them.
#[tokio::test(start_paused = true)]
async fn c13_no_subnet_and_no_server_is_refused_before_anything_is_made() {
    let cloud = Cloud::new();
    let mut config = cloud.config();
    config.load_balancer.subnet_id = None;
    let mut cluster = Cluster::with_config(&cloud, config);
    cluster.nodes = vec![node("hybrid", "192.168.9.9", None)];
    let failure = cluster.settle(&mut web()).await.expect_err("refused");
    assert_eq!(failure.class, FailureClass::UserInput);
    assert!(failure.message.contains("set subnet-id"), "{failure}");
    assert!(cloud.line.take_log().iter().all(|call| !call.is_write()));
}

/// A load balancer of the legacy name is adopted.
///
/// Contract: C19, same.
#[tokio::test(start_paused = true)]
async fn c19_a_load_balancer_of_the_legacy_name_is_adopted() {
    let cloud = Cloud::new();
    let legacy = cloud.new_load_balancer("a1111111122223333444455555555555", json!({}));
    let mut service = web();
    // Whoever made it published it. A Service that nobody served before is not looked for by this name.
    service.is_published = true;
    Cluster::new(&cloud).settle(&mut service).await.expect("served");
    assert_eq!(cloud.load_balancers().len(), 1);
    assert_eq!(annotation(&service, "load-balancer-id"), Some(legacy.as_str()));
    assert_eq!(cloud.listener_ports(&legacy), [80]);
}

/// A load balancer that is being deleted does not count.
///
/// Contract: C21, same.
#[tokio::test(start_paused = true)]
async fn c21_one_that_is_being_deleted_does_not_count() {
    let cloud = Cloud::new();
    let description = json!({"description": "Kubernetes external service default/web from cluster c1"});
    let old = cloud.new_load_balancer(NAME, description);
    cloud.hold(OperationKind::LoadBalancerDelete, &old);
    cloud.delete_load_balancer(&old);
    let mut service = web();
    Cluster::new(&cloud).settle(&mut service).await.expect("served");
    assert_ne!(annotation(&service, "load-balancer-id"), Some(old.as_str()));
}

/// One that is still PENDING is waited for and completed.
///
/// Contract: C22, better: without an error in between.
#[tokio::test(start_paused = true)]
async fn c22_one_of_occm_that_is_still_pending_is_waited_for_and_completed() {
    let cloud = Cloud::new();
    cloud.sim.set_delays(Duration::from_secs(30));
    let description = "Kubernetes external service default/web from cluster c1";
    let body = json!({"description": description, "tags": [NAME]});
    let id = cloud.start_load_balancer(NAME, body);
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    let first = cluster.pass(&mut service).await.expect("no failure");
    assert!(matches!(first, Outcome::Waiting(_)), "{first:?}");
    assert_eq!(annotation(&service, "load-balancer-id"), Some(id.as_str()));
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(cloud.listener_ports(&id), [80]);
    assert_eq!(cloud.member_names(NAME), ["n1", "n2"]);
    cloud.only_floating_ip();
    cluster.follow_to_the_end(&mut service).await.expect("served");
    assert_eq!(cloud.load_balancer(NAME)["tags"], json!(TAGS), "adopted and tagged");
}

#[tokio::test(start_paused = true)]
async fn c24_a_load_balancer_that_fails_in_the_making_is_recreated_with_a_pause() {
    let cloud = Cloud::new();
    cloud.fail(OperationKind::LoadBalancerCreate, 2);
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    let failure = cluster.settle(&mut service).await.expect_err("the second repair has to rest");
    assert_eq!(failure.class, FailureClass::Unavailable);
    assert!(failure.rests.is_some());
    cluster.settle_through_failures(&mut service, 3).await.expect("served in the end");
    assert_eq!(cloud.load_balancers().len(), 1);
    assert_eq!(cloud.vip_ports().len(), 1, "nothing leaked");
    assert!(cluster.take_reasons().contains(&"LoadBalancerReplaced"));
}

/// Two clusters of one name in one project never share a load balancer by accident.
///
/// Contract: C29, better: the second is refused with an Event, instead of taking the members over.
#[tokio::test(start_paused = true)]
async fn c29_two_clusters_of_one_name_never_share_by_accident() {
    let cloud = Cloud::new();
    let mut first = Cluster::new(&cloud);
    let mut service = web();
    first.settle(&mut service).await.expect("served");
    let before = cloud.snapshot();

    let mut second = Cluster::new(&cloud);
    second.identity.uid = "c2c2c2c2-0000-4000-8000-000000000002".into();
    second.restart();
    let mut twin = web();
    twin.uid = UID.replace('1', "9");
    cloud.line.take_log();
    let failure = second.settle(&mut twin).await.expect_err("refused");
    assert_eq!(failure.class, FailureClass::UserInput);
    assert!(failure.message.contains("belongs to another cluster"), "{failure}");
    assert_eq!(cloud.snapshot(), before);

    second.release(&mut twin).await.expect("nothing to do");
    assert_eq!(cloud.snapshot(), before, "who goes takes nothing of the other");
    assert!(cloud.line.take_log().iter().all(|call| !call.is_write()));

    annotate(&mut twin, "allow-foreign-cluster", "true");
    second.settle(&mut twin).await.expect_err("that is not the user's to say");
    assert_eq!(cloud.snapshot(), before);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_the_creation_makes_no_second_one() {
    let cloud = Cloud::new();
    cloud.line.fail(Fault::lost_answer("POST loadbalancers"));
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    let failure = cluster.settle(&mut service).await.expect_err("the answer is lost");
    assert_eq!(failure.class, FailureClass::Unavailable);
    cluster.settle(&mut service).await.expect("found by its name");
    assert_eq!(cloud.load_balancers().len(), 1);
    assert_eq!(cloud.vip_ports().len(), 1);
}

//! What each change costs in calls to OpenStack. The rounds of the poller are shared by all Services and not counted.

use std::collections::BTreeMap;

use openstack_ccm_core::service::{Protocol, Service};

use crate::cloud::{Cloud, NODE_3};
use crate::cluster::{Cluster, NAME, annotate, node, port, web};

/// Calls since the last time: number and name, reads first.
fn calls(cloud: &Cloud) -> Vec<String> {
    let log = cloud.line.take_log();
    let counted = log.iter().filter(|call| !call.target.contains("loadbalancers?id="));
    let mut counts: BTreeMap<(bool, String), usize> = BTreeMap::new();
    for call in counted {
        *counts.entry((call.is_write(), call.name())).or_default() += 1;
    }
    counts.into_iter().map(|((_, name), count)| format!("{count} {name}")).collect()
}

async fn served() -> (Cloud, Cluster, Service) {
    let cloud = Cloud::new();
    let mut cluster = Cluster::new(&cloud);
    let mut service = web();
    cluster.settle(&mut service).await.expect("served");
    (cloud, cluster, service)
}

#[tokio::test(start_paused = true)]
async fn create() {
    let (cloud, ..) = served().await;
    // The last list shows whether a request of an earlier process has made another one meanwhile.
    let expected = [
        "1 GET /",
        "1 GET floatingips",
        "2 GET loadbalancers",
        "1 GET loadbalancers/ID/status",
        "1 GET networks/ID",
        "1 GET security-groups",
        "1 GET subnets",
        "1 POST floatingips",
        "1 POST loadbalancers",
        "1 PUT floatingips/ID/tags",
    ];
    assert_eq!(calls(&cloud), expected);
}

#[tokio::test(start_paused = true)]
async fn a_second_service_asks_for_nothing_that_is_known() {
    let (cloud, mut cluster, _) = served().await;
    cloud.line.take_log();
    let mut second = web();
    second.key.name = "web2".into();
    second.uid = second.uid.replace('1', "2");
    cluster.settle(&mut second).await.expect("served");
    let calls = calls(&cloud);
    let known = ["GET /", "networks", "subnets"];
    assert!(calls.iter().all(|call| known.iter().all(|known| !call.ends_with(known))), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_look_for_drift_where_there_is_none() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.line.take_log();
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), ["1 GET floatingips", "1 GET loadbalancers"]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_many_services() {
    let (cloud, mut cluster, service) = served().await;
    let mut services = vec![service];
    for number in 2..=5 {
        let mut another = web();
        another.key.name = format!("web{number}");
        another.uid = another.uid.replace('1', &number.to_string());
        cluster.settle(&mut another).await.expect("served");
        services.push(another);
    }
    cluster.restart();
    cloud.line.take_log();
    for service in &mut services {
        cluster.follow(service).await.expect("served");
    }
    // What Octavia can do, and whether any Service has a security group from the time when they were managed, are asked
    // for once too.
    let expected = ["1 GET /", "1 GET floatingips", "1 GET loadbalancers", "1 GET security-groups"];
    assert_eq!(calls(&cloud), expected);
}

#[tokio::test(start_paused = true)]
async fn no_change() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.line.take_log();
    cluster.follow(&mut service).await.expect("served");
    assert!(calls(&cloud).is_empty());
}

#[tokio::test(start_paused = true)]
async fn node_added() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.line.take_log();
    cluster.nodes.push(node("n3", NODE_3, None));
    cluster.follow(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), ["1 PUT pools/ID/members"], "nothing is read");
    assert_eq!(cloud.member_names(NAME), ["n1", "n2", "n3"]);
    cluster.follow_to_the_end(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), ["1 GET loadbalancers/ID/status"], "what was touched is confirmed once, later");
    cluster.follow_to_the_end(&mut service).await.expect("served");
    assert!(calls(&cloud).is_empty());
}

#[tokio::test(start_paused = true)]
async fn nodes_replaced_and_gone_with_three_ports() {
    let (cloud, mut cluster, mut service) = served().await;
    service.ports.push(port(Protocol::Tcp, 443, 30443));
    service.ports.push(port(Protocol::Udp, 53, 30053));
    cluster.follow(&mut service).await.expect("served");
    cloud.line.take_log();
    cluster.nodes = vec![node("n3", NODE_3, None)];
    cluster.follow(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), ["3 PUT pools/ID/members"]);
    assert_eq!(cloud.member_names(NAME), ["n3", "n3", "n3"]);
    cluster.nodes.clear();
    cluster.follow(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), ["3 PUT pools/ID/members"]);
    assert!(cloud.member_names(NAME).is_empty());
    cluster.follow_to_the_end(&mut service).await.expect("served");
    assert_eq!(
        calls(&cloud),
        ["1 GET loadbalancers/ID/status"],
        "one tree tells of both changes of all pools"
    );
}

/// However many ports a Service has, its load balancer is read once, and one status tree confirms what was done.
///
/// Defect: 23, better: nothing is read that an answer told.
#[tokio::test(start_paused = true)]
async fn port_added() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.line.take_log();
    service.ports.push(port(Protocol::Tcp, 443, 30443));
    cluster.follow(&mut service).await.expect("served");
    let expected = [
        "1 GET floatingips",
        "1 GET loadbalancers/ID",
        "1 GET loadbalancers/ID/status",
        "1 POST listeners",
        "1 POST pools",
        "1 PUT pools/ID/members",
    ];
    assert_eq!(calls(&cloud), expected);
}

#[tokio::test(start_paused = true)]
async fn proxy_protocol_switched() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.line.take_log();
    annotate(&mut service, "proxy-protocol", "true");
    cluster.follow(&mut service).await.expect("served");
    // No listener has the new pool before it is complete, so that the tree cannot show its members.
    let expected = [
        "1 GET floatingips",
        "1 GET loadbalancers/ID",
        "1 GET loadbalancers/ID/status",
        "1 GET pools/ID/members",
        "1 DELETE pools/ID",
        "1 POST pools",
        "1 PUT listeners/ID",
        "1 PUT pools/ID/members",
    ];
    assert_eq!(calls(&cloud), expected);
}

#[tokio::test(start_paused = true)]
async fn delete() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.line.take_log();
    cluster.release(&mut service).await.expect("gone");
    let expected = [
        "2 GET floatingips",
        "2 GET loadbalancers",
        "1 GET loadbalancers/ID",
        "1 GET security-groups",
        "1 DELETE floatingips/ID",
        "1 DELETE loadbalancers/ID",
    ];
    assert_eq!(calls(&cloud), expected);
}

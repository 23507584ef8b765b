//! What each change costs in calls to OpenStack. The rounds of the poller are shared by all Services and not counted.

use std::collections::BTreeMap;

use openstack_ccm_core::service::{Protocol, Service};

use crate::cloud::{Cloud, NODE_3};
use crate::cluster::{Cluster, annotate, node, port, web};

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

/// One look at all that a Service with one port has.
const LOOK: [&str; 5] =
    ["GET floatingips", "GET listeners", "GET loadbalancers/ID", "GET pools", "GET pools/ID/members"];

fn looks(times: usize) -> Vec<String> {
    LOOK.iter().map(|name| format!("{times} {name}")).collect()
}

#[tokio::test(start_paused = true)]
async fn create() {
    let (cloud, ..) = served().await;
    let expected = [
        "1 GET /",
        "3 GET floatingips",
        "1 GET listeners",
        "2 GET loadbalancers",
        "1 GET loadbalancers/ID",
        "1 GET networks/ID",
        "1 GET pools",
        "1 GET pools/ID/members",
        "1 GET subnets/ID",
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
async fn no_change() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.line.take_log();
    cluster.settle(&mut service).await.expect("served");
    assert_eq!(calls(&cloud), looks(1));
}

#[tokio::test(start_paused = true)]
async fn node_added() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.line.take_log();
    cluster.nodes.push(node("n3", NODE_3, None));
    cluster.settle(&mut service).await.expect("served");
    let mut expected = looks(2);
    expected.push("1 PUT pools/ID/members".into());
    assert_eq!(calls(&cloud), expected);
}

#[tokio::test(start_paused = true)]
async fn port_added() {
    let (cloud, mut cluster, mut service) = served().await;
    cloud.line.take_log();
    service.ports.push(port(Protocol::Tcp, 443, 30443));
    cluster.settle(&mut service).await.expect("served");
    let expected = [
        "4 GET floatingips",
        "4 GET listeners",
        "4 GET loadbalancers/ID",
        "4 GET pools",
        "7 GET pools/ID/members",
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
    cluster.settle(&mut service).await.expect("served");
    let expected = [
        "5 GET floatingips",
        "5 GET listeners",
        "5 GET loadbalancers/ID",
        "5 GET pools",
        "8 GET pools/ID/members",
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
        "1 GET listeners",
        "2 GET loadbalancers",
        "2 GET loadbalancers/ID",
        "1 GET pools",
        "1 DELETE floatingips/ID",
        "1 DELETE loadbalancers/ID",
    ];
    assert_eq!(calls(&cloud), expected);
}

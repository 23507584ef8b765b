//! Two instances in one cluster.

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::Fault;
use serde_json::json;

use crate::process::Process;
use crate::stage::{Stage, until};

/// Two instances, the first of which leads.
async fn pair(stage: &Stage) -> (Process, Process) {
    let first = Process::start(stage, "first", &[]);
    first.until_says("became leader").await;
    let second = Process::start(stage, "second", &[]);
    second.until_answers("/livez").await;
    stage.serve("one").await;
    assert!(!second.output().contains("became leader"), "{}", second.output());
    (first, second)
}

async fn follows(stage: &Stage, second: &Process) {
    second.until_says("became leader").await;
    stage.serve("two").await;
    stage.kube.delete("services", "default", "one").unwrap();
    stage.until_gone("one").await;
    let names: Vec<_> = stage.cloud.load_balancers().iter().map(|lb| lb["name"].clone()).collect();
    assert_eq!(names, ["kube_service_c1_default_two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_goes_on_when_the_first_is_stopped() {
    let stage = Stage::new().await;
    let (mut first, second) = pair(&stage).await;
    let leader = stage.holder();
    first.stops().await;
    until("another one leads", || !["", leader.as_str()].contains(&stage.holder().as_str())).await;
    follows(&stage, &second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_goes_on_when_the_first_is_killed() {
    let stage = Stage::new().await;
    let (mut first, second) = pair(&stage).await;
    first.kill();
    follows(&stage, &second).await;
}

/// It is stopped in the middle of a reconciliation and goes on when another one leads and the Service asks for something else.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_frozen_while_another_led_writes_nothing() {
    let stage = Stage::new().await;
    let (mut first, second) = pair(&stage).await;
    let limit = |value: &str| {
        let annotations = json!({"loadbalancer.openstack.org/connection-limit": value});
        stage
            .kube
            .patch("services", "default", "one", &json!({"metadata": {"annotations": annotations}}))
            .unwrap();
    };
    let reads = Fault::new().service("load-balancer").method(Method::GET).latency(Duration::from_millis(500));
    let slow = stage.cloud.faults().add(reads);
    limit("7");
    until("the first one reads", || stage.cloud.faults().matched(slow) > 0).await;
    first.freeze();
    stage.cloud.faults().remove(slow);
    second.until_says("became leader").await;
    limit("9");
    let is_limited = || stage.cloud.listeners().iter().all(|one| one["connection_limit"] == 9);
    until("the second one has changed it", is_limited).await;
    let (cloud, cluster) = (stage.cloud.log().calls().len(), stage.kube.requests().len());
    first.thaw();
    assert_eq!(first.end().await.code(), Some(1), "{}", first.output());
    let calls = stage.cloud.log().calls().split_off(cloud);
    let written: Vec<String> =
        calls.iter().filter(|call| call.is_write()).map(|call| call.path.clone()).collect();
    assert!(written.iter().all(|path| path.contains("auth/tokens")), "{written:?}");
    let requests = stage.kube.requests().split_off(cluster);
    let about_services =
        requests.iter().filter(|one| one.is_write() && !one.is_dry_run() && one.path.contains("/services/"));
    assert_eq!(about_services.map(|one| &one.path).collect::<Vec<_>>(), [""; 0]);
    assert!(is_limited());
}

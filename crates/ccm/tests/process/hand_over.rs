//! Two instances in one cluster.

use crate::process::Process;
use crate::stage::{Stage, until};

/// Two instances, the first of which leads.
async fn pair(stage: &Stage) -> (Process, Process) {
    let first = Process::start(stage, "first", &[]);
    first.until_says("became leader").await;
    let second = Process::start(stage, "second", &[]);
    second.until_answers("/livez").await;
    stage.create_service("one");
    stage.until_published("one").await;
    assert!(!second.output().contains("became leader"), "{}", second.output());
    (first, second)
}

async fn follows(stage: &Stage, second: &Process) {
    second.until_says("became leader").await;
    stage.create_service("two");
    stage.until_published("two").await;
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
    first.terminate();
    assert_eq!(first.end().await.code(), Some(0));
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

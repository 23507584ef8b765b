//! Starting when not everything is there.

use rstest::rstest;

use crate::process::Process;
use crate::stage::{Stage, until};

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_while_openstack_is_down_says_why_it_is_not_ready_and_becomes_ready() {
    let mut stage = Stage::without_cloud().await;
    let mut process = Process::start(&stage, "ccm", &[]);
    process.until_says("OpenStack cannot be used yet").await;
    let (status, body) = process.until_answers("/readyz").await;
    assert_eq!(status, 500);
    assert!(body.contains("[-]openstack failed: OpenStack cannot be used yet"), "{body}");
    assert_eq!(process.until_answers("/livez").await.0, 200, "it is alive: a restart would not help");
    assert_eq!(stage.holder(), "", "the lease is left to an instance that can work");
    assert!(process.runs());
    stage.start_cloud().await;
    process.until_ready().await;
    stage.serve("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_named_and_tried_again_without_a_crash() {
    let stage = Stage::new().await;
    stage.set_cloud_conf(
        &stage.cloud_conf().replace("password=\"lab\"", "password=\"correct-horse-battery\""),
    );
    let mut process = Process::start(&stage, "ccm", &[]);
    until("it has tried twice", || process.output().matches("refused the login (401)").count() >= 2).await;
    let (status, body) = process.until_answers("/readyz").await;
    assert_eq!(status, 500);
    assert!(body.contains("Check user, password, project and domains"), "{body}");
    assert!(process.runs());
    for text in [process.output(), body] {
        assert!(!text.contains("correct-horse-battery"), "{text}");
    }
}

/// Controllers that were asked for and cannot start are no reason to look healthy: another instance, or nobody, is to
/// lead, and an operator is to see why.
#[rstest]
#[case::no_such_region("Nowhere", &["cloud-node-controller", "load-balancer", "\"Nowhere\"", "RegionOne, RegionTwo"])]
#[case::no_compute("RegionTwo", &["cloud-node-controller cannot start", "of type compute", "--controllers=*,-NAME"])]
#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_start_its_controllers_stays_unready_off_the_lease_and_tries_again(
    #[case] region: &str,
    #[case] named: &[&str],
) {
    let stage = Stage::new().await;
    stage.set_cloud_conf(&stage.cloud_conf().replace("RegionOne", region));
    stage.create_service("web");
    let mut process = Process::start(&stage, "ccm", &[]);
    let tries = || process.output().matches("cannot start: the catalog has no").count();
    until("it has tried twice", || tries() >= 2).await;
    let (status, body) = process.until_answers("/readyz?verbose").await;
    assert_eq!(status, 500);
    let line = body.lines().find(|line| line.starts_with("[-]openstack failed: ")).unwrap_or_default();
    for text in named {
        assert!(line.contains(text), "{text} in {body}");
    }
    assert_eq!(process.until_answers("/livez").await.0, 200, "a restart would not help");
    let (_, metrics) = process.until_answers("/metrics").await;
    let leads = metrics.lines().filter(|line| line.starts_with("leader_election_master_status{"));
    assert!(leads.clone().all(|line| line.ends_with(" 0")), "{metrics}");
    assert_eq!(stage.holder(), "", "the lease is left to an instance that can work");
    assert!(process.runs());
}

/// What the cloud lacks can be left out, and then the rest works.
#[tokio::test(flavor = "multi_thread")]
async fn controllers_that_the_cloud_has_no_service_for_can_be_left_out() {
    let stage = Stage::new().await;
    stage.set_cloud_conf(&stage.cloud_conf().replace("RegionOne", "RegionTwo"));
    let process = Process::start(&stage, "ccm", &["--controllers=service"]);
    process.until_ready().await;
    process.until_says("became leader").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_leader_election_it_works_at_once_and_leaves_no_lease() {
    let stage = Stage::new().await;
    let process = Process::start(&stage, "ccm", &["--leader-elect=false"]);
    process.until_ready().await;
    stage.serve("web").await;
    assert_eq!(stage.holder(), "");
    let (status, metrics) = process.until_answers("/metrics").await;
    assert_eq!(status, 200);
    assert!(metrics.contains("openstack_api_requests_total{request=\"loadbalancer_create\"} 1"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_revoked_is_replaced_without_anybody_noticing() {
    let stage = Stage::new().await;
    let process = Process::start(&stage, "ccm", &[]);
    process.until_ready().await;
    stage.serve("one").await;
    stage.cloud.revoke_tokens();
    stage.serve("two").await;
    let events = stage.kube.list("events", "default").unwrap();
    assert!(events.iter().all(|event| event["type"] != "Warning"), "{events:#?}");
    assert_eq!(stage.cloud.load_balancers().len(), 2);
}

//! A server that is away, and a process that waits or ends.

use std::time::Duration;

use http::Method;
use openstack_ccm_openstack_sim::{Fault, Service};
use serde_json::json;

use crate::process::Process;
use crate::stage::{Stage, until};

/// One that waits for the lease answers probes, and has nothing to do with the cloud beyond its login.
///
/// Framework: M10, better: the login is tried before the lease is asked for, so that an instance with a wrong password
/// never leads.
#[tokio::test(flavor = "multi_thread")]
async fn framework_m10_one_that_waits_is_healthy_and_leaves_the_cloud_alone() {
    let stage = Stage::new().await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system"},
        "spec": {"holderIdentity": "occm-0_5f0c", "leaseDurationSeconds": 3600,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 3},
    });
    stage.kube.create(&lease).unwrap();
    stage.create_service("web");
    let process = Process::start(&stage, "ccm", &["--v=4"]);
    process.until_says("another instance leads").await;
    assert_eq!(process.until_answers("/healthz").await, (200, "ok".to_owned()));
    process.until_ready().await;
    let calls = stage.cloud.log().calls();
    let beyond_the_login: Vec<_> = calls.iter().filter(|call| call.service != Service::Identity).collect();
    assert!(beyond_the_login.is_empty(), "{beyond_the_login:?}");
    assert_eq!(stage.holder(), "occm-0_5f0c");
}

/// A leader that cannot reach the API server for the renew deadline ends with an error.
///
/// Framework: M11, same.
#[tokio::test(flavor = "multi_thread")]
async fn framework_m11_a_leader_without_an_api_server_ends() {
    let mut stage = Stage::new().await;
    let mut process = Process::start(&stage, "ccm", &[]);
    process.until_says("became leader").await;
    stage.stop_kubernetes();
    assert_eq!(process.end().await.code(), Some(1));
    assert!(process.output().contains("leadership was lost"), "{}", process.output());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_has_expired_is_named_and_no_reason_to_crash() {
    let stage = Stage::new().await;
    let kubeconfig = std::fs::read_to_string(stage.file("kubeconfig")).unwrap();
    assert!(kubeconfig.contains("user: {}"), "{kubeconfig}");
    let expired = kubeconfig.replace("user: {}", "user: {token: no-longer-valid}");
    std::fs::write(stage.file("kubeconfig"), expired).unwrap();
    let mut process = Process::start(&stage, "ccm", &[]);
    process.until_says("Unauthorized").await;
    assert_eq!(process.until_answers("/livez").await.0, 200);
    assert!(process.runs());
    assert!(!process.output().contains("no-longer-valid"), "{}", process.output());
    stage.kube.add_token("no-longer-valid", openstack_ccm_kube_sim::User::named("ccm"));
    stage.kube.set_authorizer(|_, _| true);
    process.until_says("became leader").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_says_who_it_is() {
    let stage = Stage::new().await;
    let mut process = Process::start(&stage, "ccm", &[]);
    stage.serve("web").await;
    let (_, metrics) = process.until_answers("/metrics").await;
    for line in [
        "leader_election_master_status{name=\"cloud-controller-manager\"} 1",
        "running_managed_controllers{name=\"service\",manager=\"cloud-controller-manager\"} 1",
        "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"127.0.0.1:",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    let leader = stage.holder();
    process.stops().await;
    let has_event = |text: String| {
        let events = stage.kube.list("events", "kube-system").unwrap();
        events.iter().any(|event| event["reason"] == "LeaderElection" && event["message"] == text)
    };
    until("the events are there", || {
        has_event(format!("{leader} became leader")) && has_event(format!("{leader} stopped leading"))
    })
    .await;
}

/// Nobody runs these controllers beside the program since Kubernetes 1.26, so there is no second Lease to wait for.
#[tokio::test(flavor = "multi_thread")]
async fn leader_migration_has_no_effect_and_is_said_once() {
    let stage = Stage::new().await;
    stage.create_service("web");
    let process = Process::start(&stage, "ccm", &["--enable-leader-migration"]);
    process.until_says("--enable-leader-migration has no effect").await;
    stage.until_published("web").await;
}

/// `enabled=false` leaves Services alone; the program goes on for the other controllers.
///
/// Contract: X5, same.
#[tokio::test(flavor = "multi_thread")]
async fn x5_services_are_left_alone_when_load_balancers_are_switched_off() {
    let stage = Stage::new().await;
    stage.set_cloud_conf(&format!("{}\n[LoadBalancer]\nenabled=false\n", stage.cloud_conf()));
    stage.create_service("web");
    let mut process = Process::start(&stage, "ccm", &[]);
    process.until_ready().await;
    process.until_says("the service controller is disabled").await;
    process.until_says("became leader").await;
    assert!(process.runs());
    let service = stage.kube.get("services", "default", "web").unwrap();
    assert!(service["metadata"]["finalizers"].is_null(), "{service}");
    assert!(stage.cloud.load_balancers().is_empty());
}

/// A call that the cloud does not answer within `request-timeout` fails, and the reconciliation is retried.
///
/// Contract: X10, same.
#[tokio::test(flavor = "multi_thread")]
async fn x10_a_call_that_hangs_is_given_up_and_the_pass_is_tried_again() {
    let stage = Stage::new().await;
    stage.set_cloud_conf(&format!("{}\n[Metadata]\nrequest-timeout=1s\n", stage.cloud_conf()));
    let hangs = Fault::new().service("load-balancer").method(Method::POST).latency(Duration::from_secs(3600));
    stage.cloud.faults().add(hangs.once());
    let process = Process::start(&stage, "ccm", &[]);
    stage.create_service("web");
    process.until_says("sent no complete answer in time").await;
    assert!(!stage.cloud.faults().can_strike(), "a call hung");
    stage.until_published("web").await;
    assert_eq!(stage.cloud.load_balancers().len(), 1);
}

/// Credentials that are no longer accepted show in readiness and metrics, not only in the Events of Services.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_in_that_is_refused_makes_unready_and_says_since_when() {
    let stage = Stage::new().await;
    let process = Process::start(&stage, "ccm", &[]);
    process.until_says("became leader").await;
    process.until_ready().await;
    let refusal = json!({"error": {"code": 401, "title": "Unauthorized", "message": "no longer"}});
    let login = Fault::new().service("identity").method(Method::POST).path("/v3/auth/tokens");
    stage.cloud.faults().add(login.answer(401, refusal));
    stage.cloud.revoke_tokens();
    stage.create_service("web");
    process.until_says("no longer").await;
    let (status, body) = process.until_answers("/readyz?verbose").await;
    assert!(status >= 500 && body.contains("Keystone has refused the login since 20"), "{status} {body}");
    let (_, metrics) = process.until_answers("/metrics").await;
    for name in ["timestamp", "since"] {
        assert!(metrics.contains(&format!("openstack_ccm_log_in_refused_{name}_seconds 1")), "{metrics}");
    }
    assert_eq!(process.until_answers("/livez").await.0, 200, "a restart would not help");
    stage.cloud.faults().clear();
    stage.until_published("web").await;
    process.until_ready().await;
}

//! `ip-mode-overlay`, from outside: who uses it runs another cloud.

use serde_json::json;

use crate::process::Process;
use crate::stage::{Stage, until};

const NAMESPACE: &str = "default";
const CHOSEN: &str = "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol";

/// A Service that its owner has published by address.
fn publish(stage: &Stage, name: &str) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "annotations": {CHOSEN: "true"}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 443}], "loadBalancerSourceRanges": ["203.0.113.0/24"]},
    });
    stage.kube.create(&service).unwrap();
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}}});
    stage.kube.patch_status("services", NAMESPACE, name, &status).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_mode_is_named_with_its_value_and_what_was_undone_is_listed() {
    let stage = Stage::without_cloud().await;
    publish(&stage, "web");
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let mode = |text: &str| {
        let annotation = json!({"metadata": {"annotations": {"ip-mode-overlay/mode": text}}});
        stage.kube.patch("services", NAMESPACE, "web", &annotation).unwrap();
        Process::run(&stage, &["overlay", "check", &kubeconfig])
    };
    let (status, output) = mode("Proxyy");
    assert_eq!(status.code(), Some(2), "{output}");
    assert!(output.contains("Proxyy"), "{output}");
    let (status, output) = Process::run(&stage, &["overlay", "cleanup", &kubeconfig]);
    assert!(status.success() && !output.trim().is_empty(), "{output:?}");
}

/// What reaches the cluster from it, and stays there, is in the overlay's own name: a cluster's audit log and the managers of
/// fields are its output too.
#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_hears_of_no_other_program() {
    let stage = Stage::without_cloud().await;
    publish(&stage, "web");
    stage.kube.clear_requests();
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let run = ["overlay", "run", &kubeconfig, "--listen=127.0.0.1:0", "--secure-port=0"];
    let running = Process::command(&stage, "overlay", &run);
    until("web has the mode, and an Event says what that means", || {
        let service = stage.kube.get("services", NAMESPACE, "web").unwrap();
        let is_reported = !stage.kube.list("events", NAMESPACE).unwrap().is_empty();
        service["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "Proxy" && is_reported
    })
    .await;
    let (status, _) = Process::run(&stage, &["overlay", "check", &kubeconfig]);
    assert!(status.success());
    let agents: Vec<String> = stage.kube.requests().into_iter().map(|request| request.user_agent).collect();
    let own = concat!("ip-mode-overlay/", env!("CARGO_PKG_VERSION"), "/");
    assert!(agents.iter().all(|agent| agent.starts_with(own)), "{agents:?}");
    for purpose in ["controller", "leader-election", "cli"] {
        assert!(agents.contains(&format!("{own}{purpose}")), "nothing of {purpose}: {agents:?}");
    }
    let kept: Vec<String> = ["services", "events", "leases"]
        .into_iter()
        .flat_map(|kind| stage.kube.list(kind, "").unwrap())
        .map(|object| object.to_string())
        .collect();
    assert!(kept.iter().all(|object| !object.contains("openstack")), "{kept:#?}");
    assert!(!running.output().to_lowercase().contains("openstack"), "{}", running.output());
}

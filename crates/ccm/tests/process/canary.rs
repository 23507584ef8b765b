//! `canary --once`, from outside: the pods are played, as a kubelet would report them.

use serde_json::{Value, json};

use crate::process::Process;
use crate::stage::{Stage, until};

const NAMESPACE: &str = "openstack-ccm-canary-once";

fn pods(stage: &Stage) -> Vec<Value> {
    stage.kube.list("pods", NAMESPACE).unwrap_or_default()
}

/// What a kubelet reports of a pod: readiness of `conclusive` and of `fit`.
fn report(stage: &Stage, pod: &Value, conclusive: bool, fit: bool) {
    let container = |name: &str, ready: bool| json!({"name": name, "ready": ready, "restartCount": 0, "image": "", "imageID": "", "state": {"running": {}}});
    let status = json!({"status": {
        "phase": "Running",
        "containerStatuses": [container("conclusive", conclusive), container("fit", fit)],
    }});
    stage.kube.patch_status("pods", NAMESPACE, pod["metadata"]["name"].as_str().unwrap(), &status).unwrap();
}

fn start(stage: &Stage, arguments: &[&str]) -> Process {
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let mut all = vec!["canary", "--once", "--image=registry.example.org/openstack-ccm:1", &kubeconfig];
    all.extend(arguments);
    Process::command(stage, "canary", &all)
}

/// Plays the kubelets: one pod is fit, the other as said. Then waits for the end.
async fn play(stage: &Stage, process: &mut Process, second: Option<(bool, bool)>) -> (i32, String) {
    until("there are two pods", || pods(stage).len() == 2).await;
    let subject = stage.kube.get("services", NAMESPACE, "subject").unwrap();
    let first = &subject["status"]["loadBalancer"]["ingress"][0];
    assert_eq!(*first, json!({"ip": "198.51.100.2", "ipMode": "Proxy"}));
    let mut all = pods(stage);
    all.sort_by_key(|pod| pod["spec"]["nodeName"].to_string());
    assert!(all.iter().all(|pod| pod["spec"]["automountServiceAccountToken"] == false));
    report(stage, &all[0], true, true);
    if let Some((conclusive, fit)) = second {
        report(stage, &all[1], conclusive, fit);
    }
    let code = process.end().await.code().unwrap();
    assert!(stage.kube.get("namespaces", "", NAMESPACE).is_err(), "nothing is left");
    (code, process.output())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfit_node_is_named_and_the_exit_code_is_2() {
    let stage = Stage::without_cloud().await;
    let mut process = start(&stage, &[]);
    let (code, output) = play(&stage, &mut process, Some((true, false))).await;
    assert_eq!(code, 2, "{output}");
    assert!(output.contains("NODE "), "{output}");
    assert!(
        output.contains("   unfit     its service proxy short-circuits addresses with ipMode Proxy"),
        "{output}"
    );
    assert_eq!(output.matches("   fit       ").count(), 1, "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_nodes_are_fit_the_exit_code_is_0_and_machines_can_read_it() {
    let stage = Stage::without_cloud().await;
    let mut process = start(&stage, &["--output=json"]);
    let (code, output) = play(&stage, &mut process, Some((true, true))).await;
    assert_eq!(code, 0, "{output}");
    let json = &output[output.find("{\n").unwrap_or_default()..];
    let report: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {output}"));
    assert_eq!(report["verdict"], "fit");
    assert_eq!(report["nodes"][0]["kubelet"], "v1.36.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_says_nothing_is_not_known_and_the_exit_code_is_1() {
    let stage = Stage::without_cloud().await;
    let mut process = start(&stage, &["--timeout=2s"]);
    let (code, output) = play(&stage, &mut process, None).await;
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("unknown   its pod does not run"), "{output}");
}

/// An interrupted look leaves nothing behind, and does not touch what another one made.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_look_cleans_up_and_a_second_one_beside_it_is_refused() {
    let stage = Stage::without_cloud().await;
    let mut process = start(&stage, &[]);
    until("there are two pods", || pods(&stage).len() == 2).await;
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let (status, output) = Process::run(&stage, &["canary", "--once", "--image=a/b", &kubeconfig]);
    assert!(status.code() == Some(1) && output.contains("kubectl delete namespace"), "{output}");
    assert_eq!(pods(&stage).len(), 2);
    process.terminate();
    assert_eq!(process.end().await.code(), Some(1));
    assert!(stage.kube.get("namespaces", "", NAMESPACE).is_err(), "nothing is left");
}

//! The worst objects that an API server accepts, and the memory that the charts give.

use serde_json::{Map, Value, json};

use crate::process::Process;
use crate::stage::Stage;

/// `resources.limits.memory` of the charts, in KiB.
const CONTROLLERS: u64 = 512 << 10;
const OVERLAY: u64 = 64 << 10;
/// Objects of this kind that fill the limits if they are decoded whole: a page of each kind, and more.
const FOR_CONTROLLERS: usize = 42;
const FOR_OVERLAY: usize = 5;
const NODES: usize = 3;

/// 60,000 annotations with names of three letters: 180 KB of the 256 KiB that an object may have, and with `managedFields` 1.2 MB of the
/// 1.5 MiB that etcd takes. Decoded whole it is 15 MiB.
fn annotations() -> Map<String, Value> {
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    let letter = |number: usize| letters[number % letters.len()];
    let name = |number: usize| [letter(number), letter(number / 62), letter(number / (62 * 62))];
    (0..60_000).map(|number| (name(number).iter().collect(), json!(""))).collect()
}

/// Creates the first of them.
fn create_worst(stage: &Stage) {
    let metadata = json!({"name": "worst-0", "annotations": annotations()});
    let spec = json!({"type": "ClusterIP", "ports": [{"port": 80}]});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec});
    let stored = stage.kube.create(&service).unwrap();
    assert!(stored["metadata"]["managedFields"].to_string().len() > 600_000, "the server notes each name");
    stage.kube.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})).unwrap();
}

fn copy(stage: &Stage, resource: &str, namespace: &str, count: usize) {
    let names = (1..count).map(|number| format!("worst-{number}"));
    stage.kube.copy(resource, namespace, "worst-0", names).unwrap();
}

fn has_mode(stage: &Stage, name: &str) -> bool {
    let service = stage.kube.get("services", "default", name).unwrap();
    service["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "Proxy"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_worst_objects_fit_into_the_memory_that_the_overlays_chart_gives() {
    let stage = Stage::without_cloud().await;
    create_worst(&stage);
    copy(&stage, "nodes", "", NODES);
    copy(&stage, "services", "default", FOR_OVERLAY);
    stage.create_service("web");
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}}});
    stage.kube.patch_status("services", "default", "web", &status).unwrap();
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let annotation = "--annotation=loadbalancer.openstack.org/proxy-protocol";
    let arguments = ["overlay", "run", &kubeconfig, "--listen=127.0.0.1:0", annotation];
    let overlay = Process::command(&stage, "overlay", &arguments);
    overlay.until("it has seen all Services and nodes", || has_mode(&stage, "web")).await;
    let most = overlay.most_memory();
    println!("the overlay: {most} KiB");
    assert!(most < OVERLAY, "it needs {most} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_worst_objects_fit_into_the_memory_that_the_controllers_chart_gives() {
    let stage = Stage::new().await;
    create_worst(&stage);
    copy(&stage, "nodes", "", NODES);
    copy(&stage, "services", "default", FOR_CONTROLLERS);
    stage.create_service("web");
    let controllers = Process::start(&stage, "controllers", &["--leader-elect=false"]);
    controllers.until("it has seen all Services and nodes", || has_mode(&stage, "web")).await;
    let most = controllers.most_memory();
    println!("the controllers: {most} KiB");
    assert!(most < CONTROLLERS, "they need {most} KiB");
}

//! The worst objects that an API server accepts, and the memory that the charts give.

use std::ops::Range;

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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_worst_objects_fit_into_the_memory_that_the_charts_give() {
    let stage = Stage::new().await;
    create_worst(&stage);
    let copy = |resource: &str, namespace: &str, numbers: Range<usize>| {
        let names = numbers.map(|number| format!("worst-{number}"));
        stage.kube.copy(resource, namespace, "worst-0", names).unwrap();
    };
    copy("nodes", "", 1..NODES);
    copy("services", "default", 1..FOR_OVERLAY);
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());

    stage.create_service("by-another");
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}}});
    stage.kube.patch_status("services", "default", "by-another", &status).unwrap();
    let arguments = [
        "overlay",
        "run",
        &kubeconfig,
        "--listen=127.0.0.1:0",
        "--annotation=loadbalancer.openstack.org/proxy-protocol",
    ];
    let overlay = Process::command(&stage, "overlay", &arguments);
    let has_mode = |name: &str| {
        let service = stage.kube.get("services", "default", name).unwrap();
        service["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "Proxy"
    };
    overlay.until("it has seen all Services and nodes", || has_mode("by-another")).await;
    let of_overlay = overlay.most_memory();
    drop(overlay);
    stage.kube.delete("services", "default", "by-another").unwrap();

    copy("services", "default", FOR_OVERLAY..FOR_CONTROLLERS);
    let controllers = Process::start(&stage, "controllers", &["--leader-elect=false"]);
    stage.create_service("web");
    controllers.until("it has seen all Services and nodes", || has_mode("web")).await;
    let of_controllers = controllers.most_memory();
    println!("most memory: overlay {of_overlay} KiB, controllers {of_controllers} KiB");
    assert!(of_overlay < OVERLAY, "the overlay needs {of_overlay} KiB");
    assert!(of_controllers < CONTROLLERS, "the controllers need {of_controllers} KiB");
}

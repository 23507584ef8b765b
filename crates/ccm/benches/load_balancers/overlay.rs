//! The overlay beside the owner of a thousand Services. The owner is played: it writes what it writes after a restart.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use openstack_ccm_kube_sim::{ApiVersion, Server, Sim};
use serde_json::json;

use crate::program::{self, Program, Usage, free_port, until};
use crate::tls::Authority;

const SERVICES: usize = 1000;
/// How long it is watched while nothing happens.
const IDLE: Duration = Duration::from_secs(60);

/// A first start, then a restart of the owner, then rest.
pub(crate) async fn run() -> Vec<(String, Usage)> {
    tokio::time::resume();
    let kube = cluster();
    owner_writes(&kube);
    let server = Server::bind(&kube, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, program::kubeconfig(&server, &Authority::new()).await).unwrap();
    kube.clear_requests();
    let arguments = [
        "overlay".to_owned(),
        "run".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--listen=127.0.0.1:{}", free_port()),
        "--secure-port=0".to_owned(),
    ];
    let start = Instant::now();
    let program = Program::spawn(folder.path(), arguments);
    let mut rows = vec![mended(&kube, &program, start, "started").await];
    kube.clear_requests();
    let start = Instant::now();
    owner_writes(&kube);
    rows.push(mended(&kube, &program, start, "its owner was restarted").await);
    kube.clear_requests();
    tokio::time::sleep(IDLE).await;
    let calls = kube.requests_where(|request| !request.path.contains("/leases/")).len();
    let title = format!("overlay, 1,000 Services, a minute of rest: {calls} calls beside the Lease");
    rows.push((title, program.usage()));
    rows
}

/// Waits until all Services have the mode.
async fn mended(kube: &Sim, program: &Program, start: Instant, what: &str) -> (String, Usage) {
    until("all Services have the mode", || with_mode(kube) == SERVICES).await;
    let time = start.elapsed().as_secs_f64();
    // Its Events follow.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let patches = kube.requests_where(|request| {
        request.parameter("fieldManager") == Some("ip-mode-overlay")
            && request.path.ends_with("/status")
            && !request.is_dry_run()
    });
    let refused = patches.iter().filter(|patch| patch.status != Some(200)).count();
    let title =
        format!("overlay, 1,000 Services, {what}: {} patches, {refused} of them refused", patches.len());
    (title, Usage { time: Some(time), ..program.usage() })
}

/// How many Services have the mode. The API server's own Service, which every cluster has, never gets it.
fn with_mode(kube: &Sim) -> usize {
    let services = kube.list("services", "default").unwrap();
    services
        .iter()
        .filter(|service| service["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "Proxy")
        .count()
}

fn cluster() -> Sim {
    let kube = Sim::new(ApiVersion::V1_36);
    for number in 1..=3 {
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{number}")},
            "status": {
                "nodeInfo": {
                    "kubeletVersion": "v1.36.0", "operatingSystem": "linux", "architecture": "amd64", "bootID": "b",
                    "containerRuntimeVersion": "c", "kernelVersion": "k", "kubeProxyVersion": "", "machineID": "m",
                    "osImage": "o", "systemUUID": "s",
                },
                "addresses": [{"type": "InternalIP", "address": format!("10.0.0.1{number}")}],
            },
        });
        kube.create(&node).unwrap();
    }
    for number in 0..SERVICES {
        let annotation = "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol";
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name(number), "namespace": "default", "annotations": {annotation: "true"}},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 443, "protocol": "TCP"}]},
        });
        kube.create(&service).unwrap();
    }
    kube
}

fn name(number: usize) -> String {
    format!("app-{number}")
}

fn owner_writes(kube: &Sim) {
    for number in 0..SERVICES {
        let address = format!("203.0.{}.{}", 100 + number / 250, 1 + number % 250);
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}});
        kube.patch_status("services", "default", &name(number), &status).unwrap();
    }
}

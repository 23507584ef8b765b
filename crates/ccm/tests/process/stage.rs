//! Two simulated servers, and the files that lead a program to them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use openstack_ccm_kube_sim::{Server as KubernetesServer, Sim as Kubernetes};
use openstack_ccm_openstack_sim::{Server as CloudServer, Sim as Cloud};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest real time that anything may take; what takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Stage {
    pub(crate) kube: Kubernetes,
    pub(crate) cloud: Cloud,
    files: TempDir,
    cloud_address: SocketAddr,
    cloud_server: Option<CloudServer>,
    kube_server: Option<KubernetesServer>,
}

impl Stage {
    /// A cluster with its cloud.
    pub(crate) async fn new() -> Self {
        let mut stage = Self::without_cloud().await;
        stage.start_cloud().await;
        stage
    }

    /// A cluster whose cloud does not answer yet.
    pub(crate) async fn without_cloud() -> Self {
        let files = tempfile::tempdir().unwrap();
        let kube = Kubernetes::default();
        let kube_server = KubernetesServer::bind(&kube, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let cloud = Cloud::builder().nodes(2).build();
        let cloud_address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        cloud.set_base_url(&format!("http://{cloud_address}"));
        for server in cloud.nodes() {
            let node = json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": server.name},
                "spec": {"providerID": format!("openstack:///{}", server.server_id)},
                "status": {
                    "addresses": [{"type": "InternalIP", "address": server.addresses[0]}],
                    "nodeInfo": {"kubeletVersion": "v1.36.0", "operatingSystem": "linux"},
                },
            });
            kube.create(&node).unwrap();
        }
        let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(files.path().join("tls.crt"), certificate.cert.pem()).unwrap();
        std::fs::write(files.path().join("tls.key"), certificate.signing_key.serialize_pem()).unwrap();
        std::fs::write(files.path().join("kubeconfig"), kube_server.kubeconfig()).unwrap();
        std::fs::write(files.path().join("cloud.conf"), cloud.cloud_conf()).unwrap();
        Self { kube, cloud, files, cloud_address, cloud_server: None, kube_server: Some(kube_server) }
    }

    /// Ends the API server, and the connections to it.
    pub(crate) fn stop_kubernetes(&mut self) {
        self.kube_server = None;
    }

    pub(crate) async fn start_cloud(&mut self) {
        self.cloud_server = Some(self.cloud.serve(self.cloud_address).await.unwrap());
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.files.path()
    }

    pub(crate) fn cloud_conf(&self) -> String {
        std::fs::read_to_string(self.file("cloud.conf")).unwrap()
    }

    pub(crate) fn set_cloud_conf(&self, text: &str) {
        std::fs::write(self.file("cloud.conf"), text).unwrap();
    }

    /// Creates a Service with the PROXY protocol.
    pub(crate) fn create_service(&self, name: &str) {
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "annotations": {"loadbalancer.openstack.org/proxy-protocol": "v2"}},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        });
        self.kube.create(&service).unwrap();
    }

    /// Creates a Service, and waits until it is published.
    pub(crate) async fn serve(&self, name: &str) {
        self.create_service(name);
        self.until_published(name).await;
    }

    pub(crate) async fn until_published(&self, name: &str) {
        until(&format!("{name} is published"), || {
            let service = self.kube.get("services", "default", name).unwrap();
            service["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "Proxy"
        })
        .await;
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        until(&format!("{name} is gone"), || self.kube.get("services", "default", name).is_err()).await;
    }

    /// Who leads; empty for nobody.
    pub(crate) fn holder(&self) -> String {
        let lease = self.kube.get("leases", "kube-system", "cloud-controller-manager").unwrap_or(Value::Null);
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Waits for something that happens in another process.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "did not happen: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

//! What it takes for a load balancer to answer somebody who follows a page: a cloud that forwards, nodes, an application on them,
//! the controllers in place of their pods, and a proxy through which programs outside reach the addresses of the cloud.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::PostParams;
use openstack_ccm_openstack_sim::{Server as CloudServer, Sim as Cloud};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::cluster::Cluster;

/// What nginx answers on a new installation, as far as a page shows it.
const PAGE: &str = "<title>Welcome to nginx!</title>\n";

/// All of it, while this exists.
pub(crate) struct Served {
    /// `http_proxy` of programs outside.
    pub(crate) proxy: String,
    controllers: Child,
    _cloud: CloudServer,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.controllers.kill();
        let _ = self.controllers.wait();
    }
}

impl Served {
    /// Starts it for a cluster of this name; the controllers find their cloud.conf in the folder.
    pub(crate) async fn start(cluster: &Cluster, cluster_name: &str, folder: &Path) -> Self {
        let cloud = Cloud::builder().nodes(2).build();
        let application = listen(|mut connection| async move {
            let mut request = [0; 1024];
            let _ = connection.read(&mut request).await?;
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", PAGE.len());
            connection.write_all(format!("{head}{PAGE}").as_bytes()).await
        })
        .await;
        cloud.set_member_resolver(move |_, _| Some(application));
        cloud.start_forwarding();

        let free = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        cloud.set_base_url(&format!("http://{free}"));
        let server = cloud.serve(free).await.unwrap();
        let conf = folder.join("of-the-controllers.conf");
        std::fs::write(&conf, cloud.cloud_conf()).unwrap();
        join(cluster, &cloud).await;
        let controllers = Command::new(env!("CARGO_BIN_EXE_openstack-ccm"))
            .arg(format!("--cloud-config={}", conf.display()))
            .arg(format!("--kubeconfig={}", cluster.kubeconfig().display()))
            .arg(format!("--cluster-name={cluster_name}"))
            .args(["--leader-elect=false", "--secure-port=0"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let proxy = listen(move |client| forward(cloud.clone(), client)).await;
        Self { proxy: format!("http://{proxy}"), controllers, _cloud: server }
    }
}

/// Kubelets register their nodes.
pub(crate) async fn join(cluster: &Cluster, cloud: &Cloud) {
    let nodes: Api<Node> = Api::all(cluster.client().await);
    for server in cloud.nodes() {
        let node = json!({
            "metadata": {"name": server.name},
            "spec": {"taints": [
                {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"},
            ]},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {
                    "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                    "kubeProxyVersion": "", "kubeletVersion": "v1.36.0", "machineID": "",
                    "operatingSystem": "linux", "osImage": "", "systemUUID": "",
                },
            },
        });
        nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    }
}

/// Answers connections to a new port.
async fn listen<F, A>(answer: F) -> SocketAddr
where
    F: Fn(TcpStream) -> A + Send + 'static,
    A: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection));
        }
    });
    address
}

/// Leads a request for `http://ADDRESS/` to the load balancer with this address.
async fn forward(cloud: Cloud, mut client: TcpStream) -> io::Result<()> {
    let mut request = [0; 1024];
    let length = client.peek(&mut request).await?;
    let text = String::from_utf8_lossy(&request[..length]);
    let address = text.split("http://").nth(1).and_then(|rest| rest.split(['/', ' ']).next());
    let Some(endpoint) = address.and_then(|address| cloud.endpoint(address, 80)) else { return Ok(()) };
    let mut load_balancer = TcpStream::connect(endpoint).await?;
    copy_bidirectional(&mut client, &mut load_balancer).await?;
    Ok(())
}

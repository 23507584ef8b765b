//! An embedded world: an OpenStack, a Kubernetes API, two nodes, an ingress pod, and `openstack-ccm` run as in a cluster, with a
//! cloud.conf, a kubeconfig and a lease.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use openstack_ccm_advertise::node::Version;
use openstack_ccm_kube_sim::{ApiVersion, Server, Sim as Kubernetes};
use openstack_ccm_manager::args::{PersonArgs, RunArgs};
use openstack_ccm_manager::run::run;
use openstack_ccm_openstack_sim::Sim as OpenStack;
use openstack_ccm_provider_openstack::cloud::ENTRY;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::backend::Backend;
use super::client::{Answer, FetchError, fetch};
use super::ingress::make_ingress;
use super::kube_proxy::{make_canary, short_circuits};

/// Name of the Service in every world.
pub(super) const SERVICE: &str = "ingress";
/// Port of the Service.
pub(super) const PORT: u16 = 80;
/// Node port of the Service.
const NODE_PORT: u16 = 30080;
/// The hostname suffix that the operator configured for clusters that cannot honour `ipMode`.
pub(super) const SUFFIX: &str = "lb.example.org";
/// Longest wait for one step; a longer one has failed.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long the API server is down when it is replaced.
const RESTART_TIME: Duration = Duration::from_secs(1);

/// A client: its logical address in the world, and the loopback address that stands for it on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// The name in the table.
    pub(super) name: &'static str,
    /// The address in the world: the load balancer sees it, and the PROXY header carries it.
    pub(super) address: IpAddr,
    /// The address of the socket on this machine.
    loopback: IpAddr,
    /// The index of the client's node; absent for a client outside the cluster.
    node: Option<usize>,
}

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

/// Packets of pods leave the node with the node's address, as with every overlay network.
pub(super) const POD_ON_NODE_1: Client =
    Client { name: "pod on node-1", address: v4(198, 18, 0, 50), loopback: v4(127, 0, 1, 11), node: Some(0) };
pub(super) const POD_ON_NODE_2: Client =
    Client { name: "pod on node-2", address: v4(198, 18, 0, 51), loopback: v4(127, 0, 1, 12), node: Some(1) };
/// A user of the application.
pub(super) const OUTSIDE: Client =
    Client { name: "user outside", address: v4(203, 0, 113, 7), loopback: v4(127, 0, 2, 7), node: None };

/// All clients.
pub(super) const CLIENTS: [Client; 3] = [POD_ON_NODE_1, POD_ON_NODE_2, OUTSIDE];
const NODES: [Client; 2] = [POD_ON_NODE_1, POD_ON_NODE_2];

/// A running world. Dropping it ends everything in it.
pub(super) struct World {
    pub(super) openstack: OpenStack,
    kubernetes: Kubernetes,
    /// The ingress pod.
    pub(super) backend: Backend,
    client: kube::Client,
    files: PathBuf,
    kubernetes_server: Option<Server>,
    /// The version of node-2's kube-proxy, where it differs from its kubelet's.
    old_proxy: Option<Version>,
    _openstack_server: openstack_ccm_openstack_sim::Server,
    _controller: AbortOnDropHandle<()>,
}

impl World {
    /// Starts a world with an API server of `version` and nodes with a `kubelet` of that version. With `old_proxy` the kube-proxy
    /// of node-2 has that version instead, and the world has a canary.
    pub(super) async fn start(
        files: &Path,
        version: ApiVersion,
        kubelet: &str,
        old_proxy: Option<Version>,
    ) -> anyhow::Result<Self> {
        let backend = Backend::start().await?;
        let openstack = OpenStack::builder().nodes(NODES.len()).build();
        let pod = backend.address;
        openstack.set_member_resolver(move |_address, _port| Some(pod));
        openstack.set_client_identity(logical_source);
        openstack.start_forwarding();
        let openstack_server = openstack.serve((Ipv4Addr::LOCALHOST, 0).into()).await?;
        let kubernetes = Kubernetes::new(version);
        let kubernetes_server = Server::bind(&kubernetes, (Ipv4Addr::LOCALHOST, 0).into()).await?;
        std::fs::create_dir_all(files)?;
        std::fs::write(files.join("kubeconfig"), kubernetes_server.kubeconfig())?;
        std::fs::write(files.join("clouds.yaml"), openstack.clouds_yaml())?;
        std::fs::write(files.join("cloud.conf"), openstack.cloud_conf())?;
        let suffix = format!("[LoadBalancer]\ningress-hostname-suffix = {SUFFIX}\n");
        std::fs::write(files.join("hostname.conf"), suffix)?;
        let person = PersonArgs {
            kubeconfig: Some(files.join("kubeconfig")),
            context: None,
            request_timeout: Duration::from_secs(30),
        };
        let client = person.client().await?;
        for server in openstack.nodes() {
            kubernetes.create(&node_object(&server, kubelet)).context("a node could not be made")?;
        }
        make_ingress(&kubernetes, &openstack, SERVICE, NODE_PORT)?;
        let mut flags = Vec::new();
        if let (Some(old), Some(new)) = (old_proxy, Version::parse(kubelet)) {
            make_canary(&kubernetes, &[(node_name(0), new), (node_name(1), old)])?;
            flags.push(format!("--canary-namespace={}", openstack_ccm_canary::NAMESPACE));
        }
        let controller = tokio::spawn(controller(files.to_path_buf(), flags));
        Ok(Self {
            openstack,
            kubernetes,
            backend,
            client,
            files: files.to_path_buf(),
            kubernetes_server: Some(kubernetes_server),
            old_proxy,
            _openstack_server: openstack_server,
            _controller: AbortOnDropHandle::new(controller),
        })
    }

    /// Lists the objects of a load balancer that are still in the cloud.
    pub(super) fn left_behind(&self) -> Vec<String> {
        let cloud = &self.openstack;
        [
            ("load balancer", cloud.load_balancers()),
            ("listener", cloud.listeners()),
            ("pool", cloud.pools()),
            ("floating IP", cloud.floating_ips()),
            ("VIP port", cloud.leaked_ports()),
        ]
        .into_iter()
        .flat_map(|(kind, objects)| objects.into_iter().map(move |object| format!("{kind} {}", object["id"])))
        .collect()
    }

    /// Returns the folder of kubeconfig, cloud.conf and clouds.yaml.
    pub(super) fn files(&self) -> &Path {
        &self.files
    }

    fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    pub(super) async fn create_service(&self, annotations: Value) -> anyhow::Result<()> {
        let service = serde_json::from_value(json!({
            "metadata": {"name": SERVICE, "annotations": annotations},
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": SERVICE},
                "ports": [{"name": "http", "port": PORT, "nodePort": NODE_PORT}],
            },
        }))?;
        let made = self.services().create(&PostParams::default(), &service).await;
        made.map(drop).context("the Service could not be made")
    }

    /// Sets or removes (null) annotations of the Service.
    pub(super) async fn annotate(&self, annotations: Value) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let patched = self.services().patch(SERVICE, &PatchParams::default(), &patch).await;
        patched.map(drop).context("no annotation")
    }

    /// Deletes the Service and waits until it is gone.
    pub(super) async fn delete_service(&self) -> anyhow::Result<()> {
        let deleted = self.services().delete(SERVICE, &Default::default()).await;
        deleted.context("the Service could not be deleted")?;
        self.wait_for("the Service is gone", |service| service.is_none()).await.map(drop)
    }

    /// Waits until the status of the Service has an entry that `wanted` accepts, and returns that entry as JSON.
    pub(super) async fn wait_for_entry(
        &self,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<(IpAddr, Value)> {
        let service = self
            .wait_for(what, |service| service.and_then(entry).is_some_and(|entry| wanted(&entry)))
            .await?
            .context("the Service is gone")?;
        let address = service
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get("loadbalancer.openstack.org/load-balancer-address"))
            .context("the Service has no annotation with its address")?
            .parse()?;
        Ok((address, entry(&service).unwrap_or_default()))
    }

    async fn wait_for(
        &self,
        what: &str,
        condition: impl Fn(Option<&Service>) -> bool,
    ) -> anyhow::Result<Option<Service>> {
        let waiting = async {
            loop {
                let wanted = |service: Option<&Service>| condition(service);
                match await_condition(self.services(), SERVICE, wanted).await {
                    Ok(service) => return service,
                    // The watch times out after a while without events, and ends when its server goes away.
                    Err(error) => tracing::debug!(%error, "watching again whether {what}"),
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(STEP_TIMEOUT, waiting)
            .await
            .with_context(|| format!("timed out after {} s waiting for: {what}", STEP_TIMEOUT.as_secs()))
    }

    /// Replaces the API server by a server of another version with the same objects; as in a real upgrade it is down for a moment.
    pub(super) async fn upgrade_api_server(&mut self, version: ApiVersion) -> anyhow::Result<()> {
        let server = self.kubernetes_server.take().context("the API server is not running")?;
        let address = server.address();
        drop(server);
        self.kubernetes.set_version(version);
        tokio::time::sleep(RESTART_TIME).await;
        self.kubernetes.clear_requests();
        self.kubernetes_server = Some(Server::bind(&self.kubernetes, address).await?);
        Ok(())
    }

    /// Waits until the controller has asked the new API server whether it keeps `ipMode`.
    pub(super) async fn wait_until_asked(&self) -> anyhow::Result<()> {
        let asked = async {
            while self
                .kubernetes
                .requests_where(|request| request.query.iter().any(|(key, _)| key == "dryRun"))
                .is_empty()
            {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(STEP_TIMEOUT, asked)
            .await
            .context("the controller did not query the new API server")
    }

    /// Replaces the kubelet, and with it kube-proxy, of the node with this index.
    pub(super) async fn upgrade_node(&self, index: usize, kubelet: &str) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"status": {"nodeInfo": {"kubeletVersion": kubelet}}}));
        let nodes = Api::<Node>::all(self.client.clone());
        let patched = nodes.patch_status(&node_name(index), &PatchParams::default(), &patch).await;
        patched.map(drop).context("a node could not be upgraded")
    }

    /// Sends a request to the address, on the path that packets of this client take.
    pub(super) async fn ask(
        &self,
        who: Client,
        address: IpAddr,
        host: &str,
    ) -> anyhow::Result<Result<Answer, FetchError>> {
        let mut destination = self.openstack.endpoint(&address.to_string(), PORT);
        if let Some(index) = who.node {
            let services = self.services().list(&ListParams::default()).await?.items;
            if short_circuits(self.node_version(index).await?, &services, address, PORT) {
                destination = Some(self.backend.address);
            }
        }
        let destination = destination.context("nothing listens on the address of the load balancer")?;
        Ok(fetch(Some(who.loopback), destination, host).await)
    }

    /// Returns the version of kube-proxy on a node: that of the kubelet, except with `old_proxy` on node-2.
    async fn node_version(&self, index: usize) -> anyhow::Result<Version> {
        if let Some(old) = self.old_proxy.filter(|_| index == 1) {
            return Ok(old);
        }
        let node = Api::<Node>::all(self.client.clone()).get(&node_name(index)).await?;
        let info = node.status.and_then(|status| status.node_info).context("the node has no versions")?;
        Version::parse(&info.kubelet_version).context("the node's version is not a version")
    }
}

/// Runs the program itself, with the arguments of its chart.
async fn controller(files: PathBuf, flags: Vec<String>) {
    let file = |name: &str| files.join(name).display().to_string();
    let arguments = [
        "openstack-ccm".to_owned(),
        format!("--cloud-config={}", file("cloud.conf")),
        format!("--cloud-config={}", file("hostname.conf")),
        format!("--kubeconfig={}", file("kubeconfig")),
        "--cluster-name=demo".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    let arguments = arguments.into_iter().chain(flags);
    let result = match RunArgs::try_parse(arguments) {
        Ok(arguments) => run(arguments, &[ENTRY]).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = result {
        tracing::error!("{error:#}");
    }
}

fn entry(service: &Service) -> Option<Value> {
    let entries = service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?;
    serde_json::to_value(entries.first()?).ok()
}

fn node_name(index: usize) -> String {
    format!("node-{}", index + 1)
}

fn node_object(server: &openstack_ccm_openstack_sim::Node, kubelet: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": server.name},
        "spec": {"providerID": format!("openstack:///{}", server.server_id)},
        "status": {
            "addresses": [{"type": "InternalIP", "address": server.addresses[0]}],
            "nodeInfo": {"kubeletVersion": kubelet, "operatingSystem": "linux"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    })
}

/// Returns the address in the world for a socket on this machine.
fn logical_source(peer: SocketAddr) -> SocketAddr {
    let client = CLIENTS.iter().find(|client| client.loopback == peer.ip());
    client.map_or(peer, |client| SocketAddr::new(client.address, peer.port()))
}

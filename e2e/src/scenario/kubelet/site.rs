//! What runs beside the API server, and who operates it.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::PLACES;
use super::front::{Front, INTERFACE};
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::audit::Audit;
use crate::kubernetes::manager::Manager;
use crate::kubernetes::manifests;
use crate::kubernetes::names::Names;
use crate::kubernetes::node::{Node, scheduler};
use crate::kubernetes::proxy::Mode;
use crate::kubernetes::registry::Registry;
use crate::machine::process::Daemon;
use crate::machine::wait::soon;
use crate::network::{API_SERVER, NodePlace};
use crate::openstack::api::OpenStack;
use crate::openstack::compute;
use crate::programs::operator::Operator;
use crate::scenario::CURRENT;
use crate::scenario::machines::{give_back, node_path, server_of};
use crate::stage::Stage;

/// The label that installers give nodes of the control plane. A kubelet may not give it to itself.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// The image as the pages call it.
const IMAGE: &str = "openstack-ccm";
/// Another tag of the same image, to which a release is upgraded.
pub(super) const NEXT: &str = "next";

/// The cluster with its machines.
pub(super) struct Site {
    pub api: Kubernetes,
    pub audit: Audit,
    pub operator: Operator,
    pub nodes: Vec<Node>,
    /// The server behind each node.
    pub servers: Vec<(NodePlace, String)>,
    /// The credential of cloud.conf.
    pub credential: Credential,
    pub front: Front,
    _registry: Registry,
    _names: Names,
    _daemons: [Daemon; 2],
}

impl Site {
    pub(super) fn build(stage: &mut Stage) -> Result<Self> {
        let folders = stage.cloud.folders.clone();
        compute::start(&mut stage.cloud.services, &folders)?;
        let mut servers = Vec::new();
        for place in PLACES {
            servers.push((place, server_of(&stage.cloud.user, place)?));
        }
        let audit = stage.start_audited_cluster("kubelet", CURRENT)?;
        let (api, artifacts, folder) = (stage.api()?, stage.artifacts.clone(), stage.folder().join("site"));
        // Those of the manifests, with which every cluster of a world begins, are Helm's here.
        manifests::all()?.iter().try_for_each(|object| manifests::remove(&api, object))?;
        let front = Front::start(&folder.join("front"))?;
        let registry = Registry::start(&folder.join("registry"))?;
        let image = artifacts.image()?;
        let (bundle, archive) = (folder.join("authorities.crt"), folder.join("openstack-ccm.tar"));
        front.write_bundle(&bundle)?;
        image.with_authorities(&bundle, &archive)?;
        for tag in [env!("CARGO_PKG_VERSION"), NEXT] {
            registry.push(&archive, IMAGE, tag)?;
        }
        let plane = &stage.cluster()?.plane;
        let manager = Manager::start(plane, &artifacts)?;
        let scheduler = scheduler::start(plane, &artifacts)?;
        let operator = Operator::prepare(
            &folder.join("clone"),
            &artifacts,
            &image,
            plane.pki.file("admin.kubeconfig"),
            bundle,
        )?;
        api.ensure("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &own_endpoints())?;
        let nodes = PLACES.map(|place| Node::start(plane, &artifacts, place, &registry));
        let nodes = nodes.into_iter().collect::<Result<Vec<_>>>()?;
        for place in PLACES {
            soon(&format!("{} registers", place.name()), || label(&api, place))?;
            stage.start_proxy(place, CURRENT, Mode::Iptables)?;
        }
        let credential = Credential::make(&stage.cloud.user, "k8s")?;
        operator.saves("cloud.conf", &credential.configuration(stage, &front))?;
        Ok(Self {
            _names: Names::serve(&api)?,
            credential,
            api,
            audit,
            operator,
            nodes,
            servers,
            front,
            _registry: registry,
            _daemons: [manager.daemon, scheduler],
        })
    }

    /// The pod that leads, and the node that it runs on.
    pub(super) fn leader(&self) -> Result<(String, NodePlace)> {
        soon("a pod leads", || {
            let claims = self.audit.claims()?;
            let last = claims.last().context("nobody has claimed the lease")?;
            ensure!(!last.holder.is_empty(), "the lease is free");
            let pod = self.api.get(&format!("/api/v1/namespaces/kube-system/pods/{}", last.pod))?;
            let place = PLACES.into_iter().find(|place| pod["spec"]["nodeName"] == place.name());
            Ok((last.pod.clone(), place.with_context(|| format!("{} runs nowhere", last.pod))?))
        })
    }

    /// The machine at a place.
    pub(super) fn node(&mut self, place: NodePlace) -> Result<&mut Node> {
        self.nodes.iter_mut().find(|node| node.place == place).context("there is no such node")
    }

    /// The cloud is again what it is for other groups.
    pub(super) fn end(self, stage: &mut Stage) -> Result<()> {
        let Self { nodes, servers, front, .. } = self;
        drop(nodes);
        stage.end_cluster()?;
        front.end()?;
        for (place, server) in servers {
            compute::remove_server(&stage.cloud.user, &server)?;
            give_back(&stage.cloud.user, place)?;
        }
        Ok(())
    }
}

/// Where pods find the API server: it does not write that by itself here.
fn own_endpoints() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
        "endpoints": [{"addresses": [API_SERVER], "conditions": {"ready": true}}],
    })
}

fn label(api: &Kubernetes, place: NodePlace) -> Result<()> {
    let labels: Value = [(CONTROL_PLANE.to_owned(), json!(""))].into_iter().collect();
    api.patch(&node_path(place), &json!({"metadata": {"labels": labels}})).map(drop)
}

/// An application credential, as `openstack application credential create` makes it.
pub(super) struct Credential {
    path: String,
    id: String,
    secret: String,
}

impl Credential {
    pub(super) fn make(user: &OpenStack, name: &str) -> Result<Self> {
        let about = user.about_token()?;
        let owner = about["token"]["user"]["id"].as_str().context("a token without a user")?;
        let path = format!("/users/{owner}/application_credentials");
        let body = json!({"application_credential": {"name": name}});
        let made = user.post("identity", &path, &body)?.success()?;
        let text = |key: &str| made["application_credential"][key].as_str().map(str::to_owned);
        let (id, secret) = text("id").zip(text("secret")).context("Keystone answers without a secret")?;
        Ok(Self { path: format!("{path}/{id}"), id, secret })
    }

    /// A cloud.conf as the quickstart shows it.
    pub(super) fn configuration(&self, stage: &Stage, front: &Front) -> String {
        let Self { id, secret, .. } = self;
        let networks = &stage.cloud.networks;
        format!(
            "[Global]\nauth-url = {}\napplication-credential-id = {id}\napplication-credential-secret = \"{secret}\"\n\
             region = RegionOne\nos-endpoint-type = {INTERFACE}\n\n[LoadBalancer]\nfloating-network-id = {}\nsubnet-id = {}\n",
            front.keystone(),
            networks.public,
            networks.cluster_subnet
        )
    }

    /// Nobody logs in with it any more.
    pub(super) fn revoke(&self, user: &OpenStack) -> Result<()> {
        user.delete("identity", &self.path)?.success().map(drop)
    }
}

//! A whole cluster with openstack-ccm as its only cloud-controller-manager: what the manifests of the repository make of it.
//! The DaemonSet is applied as it is; kube-controller-manager, started with an external cloud provider, makes its pods; the test is
//! the scheduler and the kubelets (`kubernetes/pod`), and starts what the pods say.

mod balance;
mod callers;
mod deployment;
mod hand_over;
mod lease;
mod servers;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::machines::{give_back, node_path, router, server_of};
use super::steps;
use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::audit::{Audit, LEASE};
use crate::kubernetes::kubelet::Kubelets;
use crate::kubernetes::manager::Manager;
use crate::kubernetes::pod::Pod;
use crate::kubernetes::server::ServerKind;
use crate::machine::wait::soon;
use crate::network::{NODES, NodePlace};
use crate::openstack::api::OpenStack;
use crate::openstack::compute;
use crate::stage::Stage;

const SCENARIO: &str = "15 cluster";
/// Nodes that run the control plane, and so a pod of the controller each.
const CONTROL_PLANE: [NodePlace; 2] = [NODES[0], NODES[1]];
/// The node whose server has a hard life.
const WORKER: NodePlace = NODES[2];

/// What runs beside the API server.
struct Deployment {
    api: Kubernetes,
    pods: Vec<Pod>,
    kubelets: Kubelets,
    audit: Audit,
    _manager: Manager,
}

/// The whole scenario, with a cluster of its own.
pub(crate) fn run(stage: &mut Stage, kind: ServerKind) -> Result<()> {
    let folders = stage.cloud.folders.clone();
    compute::start(&mut stage.cloud.services, &folders)?;
    let mut machines = Vec::new();
    for place in NODES {
        machines.push((place, server_of(&stage.cloud.user, place)?));
    }
    let audit = stage.start_audited_cluster("cluster", kind)?;
    let mut cluster = deployment::run(stage, audit)?;
    servers::run(stage, &cluster, &machines)?;
    balance::run(stage, &mut cluster)?;
    hand_over::run(stage, &mut cluster);
    callers::run(stage, &cluster);
    lease::run(stage, &mut cluster);
    stage.check(SCENARIO, "in the end: nobody wrote without the lease", |_| cluster.audit.one_at_a_time());
    stage.check(SCENARIO, "in the end: the rights of the manifests were enough", |_| {
        cluster.audit.nothing_forbidden()
    });
    stage.check(SCENARIO, "clean-up", |stage| steps::release(stage, &[balance::SERVICE, lease::SERVICE]));
    for pod in &mut cluster.pods {
        pod.stop()?;
    }
    drop(cluster);
    stage.end_cluster()?;
    give_all_back(&stage.cloud.user, &machines)
}

/// The cloud is again what it is for other groups.
fn give_all_back(cloud: &OpenStack, machines: &[(NodePlace, String)]) -> Result<()> {
    let id = router(cloud)?["id"].as_str().context("the router has no id")?.to_owned();
    let none = json!({"router": {"routes": []}});
    cloud.put("network", &format!("/v2.0/routers/{id}"), &none)?.success()?;
    for (place, server) in machines.iter().filter(|(place, _)| *place != WORKER) {
        compute::remove_server(cloud, server)?;
        give_back(cloud, *place)?;
    }
    Ok(())
}

impl Deployment {
    /// Whom the Lease names; empty for nobody.
    fn holder(&self) -> Result<String> {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}");
        let lease = self.api.get(&path)?;
        Ok(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the Lease names somebody else.
    fn until_followed(&self, holder: &str) -> Result<()> {
        soon("another one holds the lease", || {
            let present = self.holder()?;
            ensure!(!["", holder].contains(&present.as_str()), "it names {present:?}");
            Ok(())
        })
    }

    /// The pod that leads.
    fn leader(&self) -> Result<usize> {
        soon("a pod leads", || {
            let claims = self.audit.claims()?;
            let last = claims.last().context("nobody has claimed the lease")?;
            ensure!(!last.holder.is_empty(), "the lease is free");
            let found = self.pods.iter().position(|pod| pod.name == last.pod);
            found.with_context(|| format!("the lease is held by {}", last.holder))
        })
    }

    fn start(&mut self) -> Result<()> {
        self.pods.iter_mut().try_for_each(Pod::start)?;
        self.pods.iter_mut().try_for_each(Pod::ready)
    }

    /// Ends all pods as a kubelet does.
    fn stop(&mut self) -> Result<()> {
        // All at once, so that none takes over from another.
        self.pods.iter().try_for_each(Pod::terminate)?;
        self.pods.iter_mut().try_for_each(Pod::stop)
    }

    fn node(&self, place: NodePlace) -> Result<serde_json::Value> {
        self.api.get(&node_path(place))
    }
}

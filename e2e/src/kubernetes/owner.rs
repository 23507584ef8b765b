//! The load balancer controller of another cloud, which knows nothing of `ipMode`: the service controller of the real
//! `k8s.io/cloud-provider` in one of its versions, over the fake cloud of that module (`tools/owner`).

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::json;

use super::api::Kubernetes;
use super::authorization::token;
use super::server::ControlPlane;
use crate::artifacts::{Artifacts, Framework};
use crate::machine::process::Daemon;
use crate::machine::wait::soon;

/// The annotation that says what it publishes, with `{address}` for the address of the load balancer.
pub(crate) const INGRESS: &str = "owner.e2e.test/ingress";
/// The annotation with that address, which openstack-ccm leaves on the Services that it has made load balancers for.
const ADDRESS: &str = "loadbalancer.openstack.org/load-balancer-address";
/// Its ServiceAccount.
const ACCOUNT: &str = "owner";

/// A running one.
pub(crate) struct Owner {
    daemon: Daemon,
    log: PathBuf,
    /// Where the log of this process begins: former ones wrote into the same file.
    begins: usize,
}

impl Owner {
    /// Starts it with the rights that Kubernetes has for service controllers.
    pub(crate) fn start(plane: &ControlPlane, artifacts: &Artifacts, framework: Framework) -> Result<Self> {
        let kubeconfig = kubeconfig(plane)?;
        let name = format!("owner-{}", framework.text());
        let log = plane.folder().join(format!("{name}.log"));
        let begins = std::fs::read(&log).map_or(0, |text| text.len());
        let mut command = Command::new(artifacts.owner(framework)?);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(["--address-annotation", ADDRESS, "--ingress-annotation", INGRESS]);
        Ok(Self { daemon: Daemon::start(&name, plane.folder(), &mut command)?, log, begins })
    }

    /// Waits until it has looked at each of these Services so many times.
    pub(crate) fn looked(&mut self, services: &[&str], times: usize) -> Result<()> {
        for service in services {
            soon(&format!("the owner looks at {service}"), || {
                self.daemon.check()?;
                let passes = self.count(&format!("pass over {service}"))?;
                ensure!(passes >= times, "{passes} times so far");
                Ok(())
            })?;
        }
        Ok(())
    }

    /// How many times it has reported changed nodes to its cloud.
    pub(crate) fn node_updates(&self) -> Result<usize> {
        self.count("nodes of ")
    }

    fn count(&self, what: &str) -> Result<usize> {
        let text = std::fs::read(&self.log)?;
        let own = String::from_utf8_lossy(text.get(self.begins..).unwrap_or_default());
        Ok(own.lines().filter(|line| line.contains(what)).count())
    }

    /// Ends it as a cluster does.
    pub(crate) fn stop(self) -> Result<()> {
        self.daemon.stop()
    }
}

fn kubeconfig(plane: &ControlPlane) -> Result<PathBuf> {
    let api: &Kubernetes = &plane.api;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    api.ensure("/api/v1/namespaces/kube-system/serviceaccounts", &account)?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:controller:service-controller",
        },
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "kube-system"}],
    });
    api.ensure("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding)?;
    let token = token(api, "kube-system", ACCOUNT, &json!({"expirationSeconds": 86400}))?;
    plane.pki.kubeconfig(ACCOUNT, &format!("token: {token}"))
}

//! OCCM, the controller that the program under test replaces, built from its Go module.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::kubernetes::api::Kubernetes;
use crate::kubernetes::manifests;
use crate::machine::process::Daemon;
use crate::machine::wait::until;
use crate::programs::controller::ask;

/// Where it answers about its health.
const PORT: u16 = 10270;

/// Gives the ServiceAccount of the manifests what OCCM needs beyond it: it patches Services themselves.
pub(crate) fn allow(api: &Kubernetes) -> Result<()> {
    let account = &manifests::of_kind("ServiceAccount")?["metadata"];
    let group = "rbac.authorization.k8s.io";
    manifests::apply(
        api,
        &json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "occm"},
            "rules": [{"apiGroups": [""], "resources": ["services", "services/status"], "verbs": ["patch", "update"]}],
        }),
    )?;
    manifests::apply(
        api,
        &json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "occm"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "occm"},
            "subjects": [{"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}],
        }),
    )
}

/// Starts its load balancer controller as it is by default and waits until it works.
pub(crate) fn start(program: &Path, folder: &Path, kubeconfig: &Path, cloud_config: &Path) -> Result<Daemon> {
    let mut command = Command::new(program);
    command.args([
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--cloud-config={}", cloud_config.display()),
        "--cluster-name=e2e".to_owned(),
        "--controllers=service".to_owned(),
        "--cloud-provider=openstack".to_owned(),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={PORT}"),
        "--authentication-skip-lookup".to_owned(),
        "--v=4".to_owned(),
    ]);
    command.current_dir(folder);
    let mut occm = Daemon::start("occm", folder, &mut command)?;
    until("OCCM is healthy", Duration::from_secs(60), || {
        occm.check()?;
        let (status, text) = ask(PORT, "/healthz")?;
        ensure!(status == 200, "{status} {text}");
        Ok(())
    })?;
    Ok(occm)
}

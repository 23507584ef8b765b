//! The configuration of a kubelet.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use super::containerd::SOCKET;
use crate::kubernetes::names;
use crate::kubernetes::pki::Pki;
use crate::machine::world::in_network;
use crate::network::NodePlace;

/// Writes it, and returns its path.
pub(super) fn configure(folder: &Path, cgroup: &str, pki: &Pki) -> Result<PathBuf> {
    let resolver = folder.join("resolv.conf");
    std::fs::write(&resolver, format!("nameserver {}\n", names::SERVER))?;
    let configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupRoot": cgroup,
        "containerRuntimeEndpoint": format!("unix://{}", folder.join(SOCKET).display()),
        "authentication": {
            "anonymous": {"enabled": false}, "webhook": {"enabled": true}, "x509": {"clientCAFile": pki.file("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [names::SERVER], "clusterDomain": names::DOMAIN, "resolvConf": resolver,
        "failSwapOn": false, "podLogsDir": folder.join("pods"), "volumePluginDir": folder.join("plugins"),
        // The disk is that of the whole machine, which others fill.
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%"},
        "imageGCHighThresholdPercent": 100,
        // A node that falls silent is missed after less than the usual time.
        "nodeLeaseDurationSeconds": 20, "nodeStatusUpdateFrequency": "5s",
    });
    let file = folder.join("kubelet.yaml");
    std::fs::write(&file, configuration.to_string())?;
    Ok(file)
}

/// The command line without the file that says how the API server is reached.
pub(super) fn command(program: &Path, place: NodePlace, configuration: &Path, folder: &Path) -> Command {
    let mut command = in_network(&place.name(), program);
    command.arg("--config").arg(configuration);
    command.arg(format!("--hostname-override={}", place.name()));
    command.arg(format!("--node-ip={}", place.address()));
    command.args(["--cloud-provider=external", "--v=2"]);
    command.arg("--root-dir").arg(folder.join("kubelet")).arg("--cert-dir").arg(folder.join("kubelet-pki"));
    command
}

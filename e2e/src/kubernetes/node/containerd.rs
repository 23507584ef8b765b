//! containerd with runc and the plug-ins of Debian.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::kubernetes::registry::{PAUSE, Registry};
use crate::machine::process::{Daemon, run};
use crate::machine::wait::until;
use crate::machine::world::in_network;
use crate::network::NodePlace;

/// Its socket in the folder of the machine.
pub(super) const SOCKET: &str = "containerd.sock";

/// Starts it, and waits until it listens.
pub(super) fn start(folder: &Path, logs: &Path, place: NodePlace, registry: &Registry) -> Result<Daemon> {
    let hosts = folder.join("registries");
    registry.write_hosts(&hosts)?;
    std::fs::create_dir_all(folder.join("cni"))?;
    std::fs::write(folder.join("cni/10-pods.conflist"), network(folder, place))?;
    let file = folder.join("containerd.toml");
    std::fs::write(&file, configuration(folder, &hosts, snapshotter(folder)?))?;
    let mut command = in_network(&place.name(), "containerd");
    command.arg("--config").arg(&file);
    let mut daemon = Daemon::start(&format!("containerd-{}", place.name()), logs, &mut command)?;
    until("containerd listens", Duration::from_secs(60), || {
        daemon.check()?;
        ensure!(folder.join(SOCKET).exists(), "it has no socket");
        Ok(())
    })?;
    Ok(daemon)
}

/// How the file systems of containers are made: by copies where the kernel mounts no overlay over the folder, because that is one itself.
fn snapshotter(folder: &Path) -> Result<&'static str> {
    let kind = run(Command::new("stat").args(["--file-system", "--format=%T"]).arg(folder))?;
    Ok(if kind.trim() == "overlayfs" { "native" } else { "overlayfs" })
}

/// Without `CAP_SYS_RESOURCE` nobody may lower the OOM score of a process.
fn configuration(folder: &Path, hosts: &Path, snapshotter: &str) -> String {
    let (folder, hosts) = (folder.display(), hosts.display());
    format!(
        r#"version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
[grpc]
  address = "{folder}/{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{hosts}"
"#
    )
}

/// Routed, not bridged, as the world's other pods.
fn network(folder: &Path, place: NodePlace) -> String {
    let range = json!([[{"subnet": format!("10.244.{}.128/25", place.0)}]]);
    let addresses = json!({
        "type": "host-local", "ranges": range, "routes": [{"dst": "0.0.0.0/0"}], "dataDir": folder.join("addresses"),
    });
    let plugins = json!([{"type": "ptp", "ipMasq": false, "ipam": addresses}]);
    json!({"cniVersion": "0.4.0", "name": format!("pods-{}", place.name()), "plugins": plugins}).to_string()
}

/// Ends what holds the containers of a machine: it outlives containerd.
pub(super) fn kill_shims(folder: &Path) {
    let socket = folder.join(SOCKET).display().to_string();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        let process = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(process) = process
            && command.starts_with("/usr/bin/containerd-shim")
            && command.split('\0').any(|word| word == socket)
        {
            // It may have ended meanwhile.
            kill_process(process, Signal::KILL).ok();
        }
    }
}

//! kube-scheduler.

use std::process::Command;

use anyhow::Result;

use crate::artifacts::Artifacts;
use crate::kubernetes::server::ControlPlane;
use crate::machine::process::Daemon;

/// Starts it; it needs no election.
pub(crate) fn start(plane: &ControlPlane, artifacts: &Artifacts) -> Result<Daemon> {
    let mut command = Command::new(artifacts.of_node("kube-scheduler")?);
    let kubeconfig = plane.pki.file("kube-scheduler.kubeconfig");
    for flag in ["--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig"] {
        command.arg(flag).arg(&kubeconfig);
    }
    command.args(["--leader-elect=false", "--bind-address=127.0.0.1", "--v=2"]);
    Daemon::start("kube-scheduler", plane.folder(), &mut command)
}

//! kube-controller-manager, which leaves to the cloud what is the cloud's.

use std::process::Command;

use anyhow::Result;

use super::audit::LEASE;
use super::server::ControlPlane;
use crate::artifacts::Artifacts;
use crate::machine::process::Daemon;

/// How long a node may be silent, in place of 50 s.
const GRACE: &str = "20s";

/// A running kube-controller-manager.
pub(crate) struct Manager {
    /// Its process.
    pub daemon: Daemon,
}

impl Manager {
    /// The one of the cluster, with all its controllers.
    pub(crate) fn start(plane: &ControlPlane, artifacts: &Artifacts) -> Result<Self> {
        let mut command = command(plane, artifacts, "kube-controller-manager", 10257)?;
        command.args([
            "--cloud-provider=external",
            "--controllers=*",
            "--use-service-account-credentials=true",
        ]);
        command.args(["--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16"]);
        command.arg(format!("--node-monitor-grace-period={GRACE}"));
        command.arg("--root-ca-file").arg(plane.pki.file("ca.crt"));
        command.arg("--service-account-private-key-file").arg(plane.pki.file("service-account.key"));
        let daemon = Daemon::start("kube-controller-manager", plane.folder(), &mut command)?;
        Ok(Self { daemon })
    }

    /// One more that is configured to take part in the election of cloud-controller-managers: it has client-go's elector, as
    /// every other cloud-controller-manager has. As its work it gets what finds nothing to do here. On SIGTERM it gives
    /// the lease back, for which kube-controller-manager has a gate.
    pub(crate) fn peer(plane: &ControlPlane, artifacts: &Artifacts) -> Result<Self> {
        // The rights of system:kube-controller-manager end at its own lease.
        let mut command = command(plane, artifacts, "admin", 10267)?;
        command.args(["--controllers=ttl-after-finished-controller", "--leader-elect=true"]);
        command.arg(format!("--leader-elect-resource-name={LEASE}"));
        command
            .args(["--leader-elect-resource-namespace=kube-system", "--leader-elect-resource-lock=leases"]);
        command.arg("--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true");
        Ok(Self { daemon: Daemon::start("peer", plane.folder(), &mut command)? })
    }
}

fn command(plane: &ControlPlane, artifacts: &Artifacts, user: &str, port: u16) -> Result<Command> {
    let mut command = Command::new(artifacts.kubernetes(plane.kind.minor, "kube-controller-manager")?);
    let kubeconfig = plane.pki.file(&format!("{user}.kubeconfig"));
    for flag in ["--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig"] {
        command.arg(flag).arg(&kubeconfig);
    }
    command.args(["--bind-address=127.0.0.1", "--v=2"]).arg(format!("--secure-port={port}"));
    command.arg("--cert-dir").arg(plane.folder());
    Ok(command)
}

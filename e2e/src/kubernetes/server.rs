//! etcd and kube-apiserver. The server can be replaced by another version over the same data.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::api::Kubernetes;
use super::audit::Audit;
use super::pki::Pki;
use super::pulse::Pulse;
use crate::artifacts::{Artifacts, Minor};
use crate::machine::process::Daemon;
use crate::machine::wait::until;
use crate::network::API_SERVER;

/// Time that an API server has between SIGTERM and SIGKILL. It stops listening at once and answers what it was asked; then it waits
/// a minute for watches, which end only with it.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// A version of the API server and how its gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerKind {
    /// Minor version.
    pub minor: Minor,
    /// `LoadBalancerIPMode`; absent where it is not set (1.28 and 1.36 do not know it).
    pub gate: Option<bool>,
    /// Whether Services, nodes and pods have addresses of both families.
    pub dual_stack: bool,
}

impl ServerKind {
    /// Such as `1.29 gate on`.
    pub(crate) fn text(self) -> String {
        match self.gate {
            None => self.minor.text().to_owned(),
            Some(true) => format!("{} gate on", self.minor.text()),
            Some(false) => format!("{} gate off", self.minor.text()),
        }
    }

    /// The flag of Kubernetes components.
    pub(crate) fn gate_flag(self) -> Option<String> {
        self.gate.map(|on| format!("--feature-gates=LoadBalancerIPMode={on}"))
    }
}

/// The ports of a control plane: two clusters of a world differ in them.
#[derive(Clone, Copy, Debug)]
struct Ports {
    api: u16,
    etcd: u16,
    etcd_peers: u16,
}

/// Those of the cluster that a world always has.
const PORTS: Ports = Ports { api: 6443, etcd: 2379, etcd_peers: 2380 };
/// Those of a second one beside it.
const PORTS_BESIDE: Ports = Ports { api: 6444, etcd: 2389, etcd_peers: 2390 };

/// A running control plane.
pub(crate) struct ControlPlane {
    folder: PathBuf,
    ports: Ports,
    artifacts: Artifacts,
    server: Option<Daemon>,
    pulse: Option<Pulse>,
    etcd: Option<Daemon>,
    /// Further flags of the server.
    flags: Vec<String>,
    /// Keys and certificates.
    pub pki: Pki,
    /// The API as the administrator.
    pub api: Kubernetes,
    /// What runs.
    pub kind: ServerKind,
}

impl ControlPlane {
    /// Starts both with empty data, and waits until the API is ready.
    pub(crate) fn start(folder: &Path, artifacts: &Artifacts, kind: ServerKind) -> Result<Self> {
        Self::start_with(folder, artifacts, kind, PORTS, Vec::new())
    }

    /// A second one beside the one that runs.
    pub(crate) fn start_beside(folder: &Path, artifacts: &Artifacts, kind: ServerKind) -> Result<Self> {
        Self::start_with(folder, artifacts, kind, PORTS_BESIDE, Vec::new())
    }

    /// The same with an audit log.
    pub(crate) fn start_audited(
        folder: &Path,
        artifacts: &Artifacts,
        kind: ServerKind,
    ) -> Result<(Self, Audit)> {
        std::fs::create_dir_all(folder)?;
        let (audit, flags) = Audit::prepare(folder)?;
        Ok((Self::start_with(folder, artifacts, kind, PORTS, flags)?, audit))
    }

    fn start_with(
        folder: &Path,
        artifacts: &Artifacts,
        kind: ServerKind,
        ports: Ports,
        flags: Vec<String>,
    ) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let pki = Pki::create(&folder.join("pki"), ports.api)?;
        let api = Kubernetes::administrator(&pki)?;
        let mut plane = Self {
            folder: folder.to_owned(),
            ports,
            artifacts: artifacts.clone(),
            server: None,
            pulse: None,
            etcd: None,
            flags,
            pki,
            api,
            kind,
        };
        plane.start_etcd()?;
        plane.start_server(kind)?;
        Ok(plane)
    }

    fn start_etcd(&mut self) -> Result<()> {
        let mut command = Command::new(self.artifacts.etcd()?);
        command.arg("--data-dir").arg(self.folder.join("etcd"));
        command.args(["--name", "e2e", "--unsafe-no-fsync", "--log-level", "warn"]);
        let (clients, peers) = (url(self.ports.etcd), url(self.ports.etcd_peers));
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("e2e={peers}")]);
        self.etcd = Some(Daemon::start("etcd", &self.folder, &mut command)?.needed());
        Ok(())
    }

    fn start_server(&mut self, kind: ServerKind) -> Result<()> {
        let file = |name: &str| self.pki.file(name);
        let mut command = Command::new(self.artifacts.kubernetes(kind.minor, "kube-apiserver")?);
        command.arg(format!("--etcd-servers={}", url(self.ports.etcd)));
        command.args(["--bind-address=0.0.0.0", &format!("--secure-port={}", self.ports.api)]);
        command.args([&format!("--advertise-address={API_SERVER}"), "--endpoint-reconciler-type=none"]);
        command.arg("--tls-cert-file").arg(file("apiserver.crt"));
        command.arg("--tls-private-key-file").arg(file("apiserver.key"));
        command.arg("--client-ca-file").arg(file("ca.crt"));
        command.arg("--service-account-issuer=https://kubernetes.default.svc");
        command.arg("--service-account-key-file").arg(file("service-account.pub"));
        command.arg("--service-account-signing-key-file").arg(file("service-account.key"));
        let second = if kind.dual_stack { ",fd00:96::/112" } else { "" };
        command.arg(format!("--service-cluster-ip-range=10.96.0.0/16{second}"));
        command.arg("--authorization-mode=Node,RBAC");
        // Where a node has a kubelet, its name resolves nowhere.
        command.arg("--kubelet-preferred-address-types=InternalIP");
        command.arg("--kubelet-client-certificate").arg(file("admin.crt"));
        command.arg("--kubelet-client-key").arg(file("admin.key"));
        command.args(["--profiling=false", "--shutdown-delay-duration=0s"]);
        if kind.minor.has_mutating_policy() {
            // Off by default; what 1.34 and 1.35 have is tried on 1.36, too.
            command.arg("--runtime-config=admissionregistration.k8s.io/v1beta1=true");
        }
        if kind.minor == Minor::V1_35 {
            command.arg("--feature-gates=MutatingAdmissionPolicy=true");
        }
        command.arg("--cert-dir").arg(&self.folder).args(kind.gate_flag()).args(&self.flags);
        self.server = Some(Daemon::start("kube-apiserver", &self.folder, &mut command)?.needed());
        self.kind = kind;
        until("kube-apiserver is ready", Duration::from_secs(120), || {
            let answer = self.api.raw("/readyz")?;
            ensure!(answer.status == 200, "{} {}", answer.status, answer.body);
            Ok(())
        })?;
        self.pulse = Some(Pulse::feel(&self.api));
        Ok(())
    }

    /// Replaces the API server by another version or setting, over the same data.
    pub(crate) fn replace_server(&mut self, kind: ServerKind) -> Result<()> {
        self.pulse = None;
        if let Some(server) = self.server.take() {
            server.stop_within(LAST_REQUESTS)?;
        }
        self.start_server(kind)
    }

    /// The folder with data and logs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

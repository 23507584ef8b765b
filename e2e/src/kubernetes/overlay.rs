//! The overlay as a cluster runs it: under its own name, with the objects, rights and arguments of its manifests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::api::Kubernetes;
use super::authorization::token;
use super::manifests;
use super::server::ControlPlane;
use crate::machine::process::{Daemon, run};
use crate::machine::wait::until;

const NAME: &str = "ip-mode-overlay";
/// Ports of two replicas, which are on one machine here.
const PORTS: [u16; 2] = [18080, 18081];
/// The same for their metrics.
const METRICS_PORTS: [u16; 2] = [18443, 18444];

/// What is needed to start it, again and again.
pub(crate) struct OverlayLaunch {
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: PathBuf,
    arguments: Vec<String>,
}

impl OverlayLaunch {
    /// Makes the account and its rights.
    pub(crate) fn prepare(plane: &ControlPlane, binary: &Path) -> Result<Self> {
        let (mut workloads, objects): (Vec<Value>, Vec<Value>) =
            manifests::overlay()?.into_iter().partition(|object| object["kind"] == "Deployment");
        for object in &objects {
            manifests::apply(&plane.api, object)?;
        }
        let workload = workloads.pop().context("the manifests have no Deployment")?;
        let arguments = &workload["spec"]["template"]["spec"]["containers"][0]["args"];
        let arguments = serde_json::from_value(arguments.clone()).context("the arguments")?;
        let token = token(&plane.api, "kube-system", NAME, &json!({"expirationSeconds": 86400}))?;
        let kubeconfig = plane.pki.kubeconfig(NAME, &format!("token: {token}"))?;
        let program = plane.folder().join(NAME);
        if !program.exists() {
            std::os::unix::fs::symlink(binary, &program)?;
        }
        Ok(Self { program, kubeconfig, folder: plane.folder().to_owned(), arguments })
    }

    /// Starts a replica with further flags, and waits until it is ready.
    pub(crate) fn start(&self, replica: usize, flags: &[String]) -> Result<Replica> {
        let port = PORTS[replica];
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg("--kubeconfig").arg(&self.kubeconfig);
        command.args(["--lease-namespace=kube-system", &format!("--listen=127.0.0.1:{port}")]);
        command.args(["--bind-address=127.0.0.1", &format!("--secure-port={}", METRICS_PORTS[replica])]);
        command.arg("--authorization-always-allow-paths=/metrics").args(flags);
        let daemon = Daemon::start(&format!("{NAME}-{replica}"), &self.folder, &mut command)?;
        let mut replica = Replica { daemon, port, metrics_port: METRICS_PORTS[replica] };
        until("the overlay is ready", Duration::from_secs(60), || {
            replica.daemon.check()?;
            replica.page("readyz").map(drop)
        })?;
        Ok(replica)
    }

    /// One of its commands that end by themselves, and what it printed.
    pub(crate) fn command(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        run(command.args(arguments).arg("--kubeconfig").arg(&self.kubeconfig))
    }
}

/// The policy for these clouds and annotations, as the program prints it.
pub(crate) fn policy(binary: &Path, arguments: &[&str]) -> Result<Vec<Value>> {
    let text = run(Command::new(binary).args(["overlay", "policy"]).args(arguments))?;
    manifests::parse(&text).context("the policy")
}

/// Where the API server has the objects of the policy, in the order in which they can be removed.
pub(crate) fn policy_objects() -> [String; 2] {
    ["mutatingadmissionpolicybindings", "mutatingadmissionpolicies"]
        .map(|kind| format!("/apis/admissionregistration.k8s.io/v1/{kind}/{NAME}"))
}

/// Takes the policy out of force.
pub(crate) fn remove_policy(api: &Kubernetes) -> Result<()> {
    policy_objects().iter().try_for_each(|path| api.delete(path))
}

/// A running replica.
pub(crate) struct Replica {
    daemon: Daemon,
    port: u16,
    metrics_port: u16,
}

impl Replica {
    fn page(&self, path: &str) -> Result<String> {
        let answer = reqwest::blocking::get(format!("http://127.0.0.1:{}/{path}", self.port))?;
        let status = answer.status();
        let text = answer.text()?;
        ensure!(status.is_success(), "{status} {text}");
        Ok(text)
    }

    /// The lines of its metrics that begin so.
    pub(crate) fn metrics(&self, start: &str) -> Result<Vec<String>> {
        // Its certificate is its own.
        let client = reqwest::blocking::Client::builder().danger_accept_invalid_certs(true).build()?;
        let answer = client.get(format!("https://127.0.0.1:{}/metrics", self.metrics_port)).send()?;
        let text = answer.error_for_status()?.text()?;
        Ok(text.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect())
    }

    /// Ends it as a cluster does.
    pub(crate) fn stop(self) -> Result<()> {
        self.daemon.stop()
    }
}

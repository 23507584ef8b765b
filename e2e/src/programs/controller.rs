//! The program under test, as a cluster runs it: with a token of its ServiceAccount and a cloud.conf.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::kubernetes::authorization::controller_token;
use crate::kubernetes::server::ControlPlane;
use crate::machine::process::Daemon;
use crate::machine::wait::until;
use crate::network::Networks;
use crate::openstack::api::KEYSTONE;
use crate::programs::kept::Kept;

/// The name of the cluster, part of the name of every cloud object.
const CLUSTER_NAME: &str = "e2e";
/// Where it answers about its health and metrics, unless another one runs beside it.
const PORT: u16 = 10258;
/// Where a second replica on this machine does.
const REPLICA_PORT: u16 = 10261;

/// Like `-v 4`, and each request to the API server with its status, which shows a missing right.
const LOG_FILTER: &str =
    "debug,hyper=info,hyper_util=info,rustls=info,reqwest=info,h2=info,tower=info,kube_client=debug";

/// What is needed to start it, again and again.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    program: PathBuf,
    kubeconfig: PathBuf,
    cloud_config: PathBuf,
    folder: PathBuf,
    /// `--cluster-name`.
    pub cluster_name: &'static str,
    /// Where it answers about its health and metrics.
    pub port: u16,
    /// The controllers that run, as `--controllers` names them.
    pub controllers: &'static str,
    /// Further flags.
    pub flags: Vec<String>,
}

impl Launch {
    /// Makes ServiceAccount, rights and configuration for a cluster.
    pub(crate) fn prepare(plane: &ControlPlane, networks: &Networks, program: &Path) -> Result<Self> {
        let token = controller_token(&plane.api)?;
        let kubeconfig = plane.pki.kubeconfig("controller", &format!("token: {token}"))?;
        let cloud_config = plane.folder().join("cloud.conf");
        std::fs::write(&cloud_config, configuration(networks, ""))?;
        let folder = plane.folder().to_owned();
        Ok(Self {
            program: program.to_owned(),
            kubeconfig,
            cloud_config,
            folder,
            cluster_name: CLUSTER_NAME,
            port: PORT,
            controllers: "service",
            flags: Vec::new(),
        })
    }

    /// Adds lines to the section `[LoadBalancer]`.
    pub(crate) fn load_balancer_settings(&mut self, networks: &Networks, lines: &str) -> Result<()> {
        Ok(std::fs::write(&self.cloud_config, configuration(networks, lines))?)
    }

    /// Adds lines at the end of the cloud.conf.
    pub(crate) fn append(&self, lines: &str) -> Result<()> {
        let text = std::fs::read_to_string(&self.cloud_config)? + lines;
        Ok(std::fs::write(&self.cloud_config, text)?)
    }

    /// Starts the controller, which is kept running from now on as a kubelet does it, and waits until it works.
    pub(crate) fn start(&self) -> Result<Controller> {
        let launch = self.clone();
        let controller = Controller { process: Kept::start(move || launch.spawn())?, port: self.port };
        until("openstack-ccm is ready", Duration::from_secs(60), || {
            let answer = controller.ask("/readyz")?;
            ensure!(answer.0 == 200, "{} {}", answer.0, answer.1);
            Ok(())
        })?;
        Ok(controller)
    }

    /// Starts the controller, which a scenario will end, and does not wait.
    pub(crate) fn start_at_once(&self) -> Result<Controller> {
        Ok(Controller { process: Kept::alone(self.spawn()?), port: self.port })
    }

    fn spawn(&self) -> Result<Daemon> {
        let mut command = Command::new(&self.program);
        command.arg(format!("--kubeconfig={}", self.kubeconfig.display()));
        command.arg(format!("--cloud-config={}", self.cloud_config.display()));
        command.arg(format!("--cluster-name={}", self.cluster_name));
        command.arg(format!("--controllers={}", self.controllers));
        command.args(["--bind-address=127.0.0.1", &format!("--secure-port={}", self.port), "--v=4"]);
        command.arg("--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics");
        command.args(&self.flags).env("RUST_BACKTRACE", "1").env("RUST_LOG", LOG_FILTER);
        Daemon::start("openstack-ccm", &self.folder, &mut command)
    }

    /// The other replica of a deployment, of another program: with a token and a log of its own.
    pub(crate) fn replica(&self, plane: &ControlPlane, program: &Path) -> Result<Self> {
        let token = controller_token(&plane.api)?;
        let folder = self.folder.join("replica");
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            program: program.to_owned(),
            kubeconfig: plane.pki.kubeconfig("replica", &format!("token: {token}"))?,
            folder,
            port: REPLICA_PORT,
            ..self.clone()
        })
    }

    /// How it reaches its cluster.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Its cloud.conf.
    pub(crate) fn cloud_config(&self) -> &Path {
        &self.cloud_config
    }
}

/// A running controller.
pub(crate) struct Controller {
    process: Kept,
    port: u16,
}

impl Controller {
    fn ask(&self, path: &str) -> Result<(u16, String)> {
        ask(self.port, path)
    }

    /// Lines of the metrics that begin with a name.
    pub(crate) fn metrics(&self, name: &str) -> Result<Vec<String>> {
        let (_, text) = self.ask("/metrics")?;
        Ok(text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect())
    }

    /// Keeps it from doing anything. Without leader election it may go on after any time.
    pub(crate) fn hold(&self) {
        self.process.with(Daemon::hold);
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        self.process.with(Daemon::go_on);
    }

    /// Ends it as a cluster does.
    pub(crate) fn stop(self) -> Result<()> {
        self.process.take().map_or(Ok(()), Daemon::stop)
    }

    /// Ends it as a broken machine does.
    pub(crate) fn kill(self) -> Result<()> {
        self.process.take().map_or(Ok(()), Daemon::kill)
    }
}

/// What a program on this machine answers about itself, with the status.
pub(crate) fn ask(port: u16, path: &str) -> Result<(u16, String)> {
    let client = reqwest::blocking::Client::builder()
        .danger_accept_invalid_certs(true)
        .timeout(Duration::from_secs(10))
        .build()?;
    let response = client.get(format!("https://127.0.0.1:{port}{path}")).send()?;
    Ok((response.status().as_u16(), response.text()?))
}

/// The cloud.conf of a world, with further lines of its section `[LoadBalancer]`.
pub(crate) fn configuration(networks: &Networks, lines: &str) -> String {
    format!(
        "[Global]\nauth-url = {KEYSTONE}\nusername = demo\npassword = e2e\ntenant-name = demo\ndomain-name = Default\n\
         region = RegionOne\n\n[LoadBalancer]\nsubnet-id = {}\nfloating-network-id = {}\n{lines}\n",
        networks.cluster_subnet, networks.public
    )
}

/// The program that was built with this one.
pub(crate) fn program() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let program = this.parent().context("no folder of programs")?.join("openstack-ccm");
    ensure!(program.exists(), "{} is not built", program.display());
    Ok(program)
}

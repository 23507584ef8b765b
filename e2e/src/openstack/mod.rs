//! The OpenStack of a world: MariaDB, RabbitMQ, Keystone, Neutron, Octavia with local amphorae, Barbican.

pub(crate) mod access;
pub(crate) mod api;
pub(crate) mod compute;
pub(crate) mod database;
pub(crate) mod faults;
pub(crate) mod leaks;
pub(crate) mod ovn;
pub(crate) mod picture;
pub(crate) mod tree;
pub(crate) mod writes;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::artifacts::release::Release;
use crate::artifacts::source;
use crate::machine::process::Daemon;
use crate::machine::wait::until;

/// Longest time until a service answers, on a machine that compiles beside it.
const START: Duration = Duration::from_secs(300);
/// Addresses of the APIs.
const PORTS: [(&str, u16); 4] =
    [("keystone", 5000), ("neutron", 9696), ("octavia", 9876), ("barbican", 9311)];

/// Where an OpenStack lives.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    /// Which OpenStack it is.
    pub release: Release,
    /// Files of this run: configuration, databases, logs.
    pub state: PathBuf,
    /// The virtual environment.
    pub environment: PathBuf,
    /// The folder with the drivers; several as in `PYTHONPATH`.
    pub drivers: PathBuf,
}

impl Folders {
    /// Makes the folders and writes the configuration.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn prepare(&self) -> Result<()> {
        for name in [
            "log",
            "run",
            "keys",
            "rabbitmq/mnesia",
            "state/neutron/lock",
            "state/octavia",
            "state/nova/lock",
            "state/images",
        ] {
            std::fs::create_dir_all(self.state.join(name))?;
        }
        self.render(&source("openstack/etc"), &self.state.join("etc"))
    }

    fn render(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.render(&entry.path(), &target)?;
                continue;
            }
            let text = std::fs::read_to_string(entry.path())?
                .replace("@STATE@", &self.state.to_string_lossy())
                .replace("@VENV@", &self.environment.to_string_lossy())
                .replace("@SCOPES@", self.release.scopes());
            std::fs::write(&target, text)
                .with_context(|| format!("{} cannot be written", target.display()))?;
        }
        Ok(())
    }

    /// The folder of logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.state.join("log")
    }

    /// A program of the virtual environment, with the drivers in reach.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.environment.join("bin").join(name));
        command
            .current_dir(&self.state)
            .env("PYTHONPATH", &self.drivers)
            .env("LOCAL_AMPHORA_STATE", self.state.join("state/octavia"))
            .env("OS_CLIENT_CONFIG_FILE", self.state.join("etc/clouds.yaml"));
        command
    }
}

/// Running services. They end with this value.
pub(crate) struct Services {
    daemons: Vec<(String, Daemon)>,
}

impl Services {
    /// Starts everything over databases that are in place, and waits until all of it answers.
    ///
    /// # Errors
    /// A service ended or does not answer.
    pub(crate) fn start(folders: &Folders) -> Result<Self> {
        let mut services = Self { daemons: Vec::new() };
        services.add("rabbitmq", folders, &mut rabbitmq(folders))?;
        services.database(folders)?;
        for (name, _) in PORTS {
            services.api(folders, name)?;
        }
        services.wait_for_port("rabbitmq", 5672)?;
        let logs = folders.logs();
        let configuration = folders.state.join("etc/octavia/octavia.conf");
        for (program, log) in
            [("octavia-worker", "octavia-worker"), ("octavia-health-manager", "octavia-health")]
        {
            let mut command = folders.program(program);
            command
                .arg("--config-file")
                .arg(&configuration)
                .arg("--log-file")
                .arg(logs.join(format!("{log}.txt")));
            services.add(program, folders, &mut command)?;
        }
        let mut heartbeat = folders.program("python");
        heartbeat.args([
            "-c",
            "from local_amphora.heartbeat import main; main()",
            "127.0.0.1",
            "5555",
            "e2e-heartbeat",
            "2",
        ]);
        services.add("heartbeat", folders, &mut heartbeat)?;
        for (name, port) in PORTS {
            services.wait_for_port(name, port)?;
        }
        let mut fabric = folders.program("python");
        fabric.args(["-c", "from local_amphora.fabric import main; main()", "0.2"]);
        services.add("fabric", folders, &mut fabric)?;
        services.wait_for_consumer(&logs.join("octavia-worker.txt"))?;
        Ok(services)
    }

    fn add(&mut self, name: &str, folders: &Folders, command: &mut Command) -> Result<()> {
        self.daemons.push((name.to_owned(), Daemon::start(name, &folders.logs(), command)?.needed()));
        Ok(())
    }

    fn api(&mut self, folders: &Folders, name: &str) -> Result<()> {
        let mut command = folders.program("gunicorn");
        command.arg("-c").arg(folders.state.join("etc/gunicorn.py")).env("E2E_SERVICE", name);
        self.add(name, folders, &mut command)
    }

    /// Starts APIs that are not part of every world, and waits until they answer.
    fn start_apis(&mut self, folders: &Folders, apis: &[(&str, u16)]) -> Result<()> {
        for (name, _) in apis {
            self.api(folders, name)?;
        }
        apis.iter().try_for_each(|(name, port)| self.wait_for_port(name, *port))
    }

    /// Whether a service was started.
    fn runs(&self, name: &str) -> bool {
        self.daemons.iter().any(|(known, _)| known == name)
    }

    fn database(&mut self, folders: &Folders) -> Result<()> {
        let options = format!("--defaults-file={}/etc/mariadb.cnf", folders.state.display());
        self.add("mariadb", folders, Command::new("mariadbd").arg(options))?;
        self.wait_for_port("mariadb", 3306)
    }

    fn wait_for_port(&mut self, name: &str, port: u16) -> Result<()> {
        until(&format!("{name} answers on port {port}"), START, || {
            self.check()?;
            std::net::TcpStream::connect(("127.0.0.1", port)).map(drop).map_err(Into::into)
        })
    }

    /// The API hands work to a queue that exists from the moment the worker listens.
    fn wait_for_consumer(&mut self, log: &Path) -> Result<()> {
        until("octavia-worker listens", START, || {
            self.check()?;
            let text = std::fs::read_to_string(log).unwrap_or_default();
            ensure!(text.contains("Starting V2 consumer"), "it has not said so in {}", log.display());
            Ok(())
        })
    }

    fn check(&mut self) -> Result<()> {
        self.daemons.iter_mut().try_for_each(|(_, daemon)| daemon.check())
    }

    /// Stops a service, and starts it again later with [`Services::resume`].
    ///
    /// # Errors
    /// It does not run.
    pub(crate) fn stop(&mut self, name: &str) -> Result<()> {
        let index = self.daemons.iter().position(|(known, _)| known == name);
        let index = index.with_context(|| format!("{name} does not run"))?;
        self.daemons.remove(index).1.stop()
    }

    /// Starts an API again and waits until it answers.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) fn resume(&mut self, folders: &Folders, name: &str) -> Result<()> {
        self.api(folders, name)?;
        let port = PORTS.iter().find(|(known, _)| *known == name).map_or(0, |(_, port)| *port);
        self.wait_for_port(name, port)
    }
}

fn rabbitmq(folders: &Folders) -> Command {
    let state = folders.state.display();
    let mut command = Command::new("/usr/lib/rabbitmq/bin/rabbitmq-server");
    command.envs([
        ("HOME", format!("{state}/rabbitmq")),
        ("RABBITMQ_NODENAME", "e2e@localhost".to_owned()),
        ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".to_owned()),
        ("RABBITMQ_NODE_PORT", "5672".to_owned()),
        ("RABBITMQ_DIST_PORT", "25672".to_owned()),
        ("RABBITMQ_CONFIG_FILE", format!("{state}/etc/rabbitmq.conf")),
        ("RABBITMQ_CONF_ENV_FILE", format!("{state}/etc/none")),
        ("RABBITMQ_MNESIA_BASE", format!("{state}/rabbitmq/mnesia")),
        ("RABBITMQ_LOG_BASE", format!("{state}/log")),
        ("RABBITMQ_PID_FILE", format!("{state}/run/rabbitmq.pid")),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", format!("{state}/etc/rabbitmq-plugins")),
        // An idle broker must not spin on a machine with two cores.
        (
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"
                .to_owned(),
        ),
        ("ERL_EPMD_PORT", "4369".to_owned()),
        ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
    ]);
    command
}

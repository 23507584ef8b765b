//! The real binary as a process of its own, so that its memory is nobody else's. The simulators stay in this process
//! and are asked over HTTPS on the loopback device, in real time, and Octavia takes no time for its work.

use std::cell::Cell;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use openstack_ccm_kube_sim::{Server as KubernetesServer, Sim as Kubernetes};
use openstack_ccm_openstack_sim::{Server as CloudServer, Service, Sim as Cloud};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::support::World;
use crate::tls::Authority;

/// Longest real time that anything may take.
const PATIENCE: Duration = Duration::from_secs(1800);
/// After so long without work everything is done.
const CALM: Duration = Duration::from_secs(4);
/// What the program writes.
const LOG: &str = "log";
/// Clock ticks in a second of `/proc/<pid>/stat`.
const TICKS: f64 = 100.0;

/// What a process has used since it began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// Most memory that it ever had at once (`VmHWM`), in KiB.
    pub(crate) peak: u64,
    /// Memory that it has now (`VmRSS`), in KiB.
    pub(crate) rest: u64,
    /// Of this, what it made itself (`RssAnon`), in KiB.
    pub(crate) own: u64,
    /// Of this, what is read from the file of the program (`RssFile`), in KiB.
    pub(crate) file: u64,
    /// Time on a processor, in seconds.
    pub(crate) processor: f64,
    /// From the start of the operation until it was done, in seconds, where that was measured.
    pub(crate) time: Option<f64>,
    /// Calls to Octavia and Neutron, where they were counted.
    pub(crate) calls: Option<usize>,
    /// When the operation had reached its aim, where that was measured.
    pub(crate) reached: Option<Reached>,
}

/// An operation has reached its aim; reads that verify it may follow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reached {
    /// From its start, in seconds.
    pub(crate) time: f64,
    /// For how long the simulators, which share one thread, were on a processor meanwhile, in seconds: it could not take less time.
    pub(crate) simulators: f64,
}

/// Both simulators on their ports, and the files that lead a program to them.
pub(crate) struct Stage {
    kube: Kubernetes,
    cloud: Cloud,
    files: TempDir,
    asked: Cell<usize>,
    _servers: (KubernetesServer, Option<CloudServer>),
}

/// Serves a world over HTTPS and starts the program with these further arguments. The clock goes on from here.
pub(crate) async fn start(world: &World, arguments: &[&str]) -> (Stage, Program) {
    let stage = idle_stage(world).await;
    let program = Program::start(&stage, arguments);
    (stage, program)
}

/// Both simulators served over HTTPS, and nobody who asks them yet.
pub(crate) async fn idle_stage(world: &World) -> Stage {
    tokio::time::resume();
    world.cloud.set_delays(Duration::ZERO);
    let server = world.cloud.serve((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let address = server.address();
    let stage = Stage::new(world, address, Some(server)).await;
    world.cloud.log().clear();
    world.kube.clear_requests();
    stage
}

impl Stage {
    /// The cloud is served at this address: by `server`, or by somebody else.
    pub(crate) async fn new(world: &World, cloud: SocketAddr, server: Option<CloudServer>) -> Self {
        let kube_server = KubernetesServer::bind(&world.kube, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let files = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let certificate = files.path().join("ca.pem");
        std::fs::write(&certificate, &authority.certificate).unwrap();
        world.cloud.set_base_url(&authority.in_front_of(cloud).await);
        let conf = world.cloud.cloud_conf().replacen(
            "[Global]\n",
            &format!("[Global]\nca-file={}\n", certificate.display()),
            1,
        );
        let conf = format!("{conf}{}", world.settings.cloud_conf);
        std::fs::write(files.path().join("cloud.conf"), conf).unwrap();
        std::fs::write(files.path().join("kubeconfig"), kubeconfig(&kube_server, &authority).await).unwrap();
        let (kube, cloud) = (world.kube.clone(), world.cloud.clone());
        Self { kube, cloud, files, asked: Cell::new(0), _servers: (kube_server, server) }
    }

    /// The program once more; the one before has ended.
    pub(crate) async fn start_again(self, arguments: &[&str]) -> (Self, Program) {
        let program = Program::start(&self, arguments);
        (self, program)
    }

    /// Runs a subcommand of the program to its end, which has to be a good one.
    pub(crate) async fn asks(&self, subcommand: &[&str]) -> Usage {
        let mut program = Program::in_cloud(self, subcommand, &[]);
        let mut usage = None;
        loop {
            // Of a process that has ended nothing can be asked.
            usage = program.known_usage().or(usage);
            if let Some(status) = program.child.try_wait().unwrap() {
                assert!(status.success(), "{status}: {}", last_words(&program.log));
                return usage.expect("it was never seen");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until Octavia has been asked for something and everything that follows from it is done. Answers how long
    /// after the call of this function that was.
    pub(crate) async fn calm(&self) -> Duration {
        let start = Instant::now();
        let mut last = None;
        loop {
            if self.take_work() {
                last = Some(Instant::now());
            }
            if let Some(last) = last.filter(|last| last.elapsed() > CALM) {
                return last - start;
            }
            assert!(start.elapsed() < PATIENCE, "it does not calm down");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits for something in real time, and counts the calls meanwhile: the simulators remember only the last ones.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn() -> bool) {
        until(what, || {
            self.take_work();
            condition()
        })
        .await;
    }

    /// Calls to Octavia and Neutron since the last time.
    pub(crate) fn take_asked(&self) -> usize {
        self.take_work();
        self.asked.replace(0)
    }

    /// Whether anything was done since the last time: Octavia was asked for something, or Kubernetes for anything but the
    /// lease. Lists of thousands of Services take the simulator longer than everything else.
    fn take_work(&self) -> bool {
        let calls = self.cloud.log().calls();
        self.cloud.log().clear();
        let counted = [Service::LoadBalancer, Service::Network];
        self.asked
            .update(|asked| asked + calls.iter().filter(|call| counted.contains(&call.service)).count());
        let requests = self.kube.requests();
        self.kube.clear_requests();
        let octavia = |call: &openstack_ccm_openstack_sim::Call| {
            call.service == Service::LoadBalancer && call.path.contains("/lbaas/")
        };
        calls.iter().any(octavia) || requests.iter().any(|request| !request.path.contains("/leases/"))
    }
}

/// The process; it is killed when this is dropped.
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts the controllers.
    pub(crate) fn start(stage: &Stage, arguments: &[&str]) -> Self {
        // That of the program before, which was killed. The first one finds none.
        let _ = stage.kube.delete("leases", "kube-system", "cloud-controller-manager");
        let port = format!("--secure-port={}", free_port());
        let flags = [
            "--bind-address=127.0.0.1",
            &port,
            // The simulators share the processors with whatever else runs, and answer one after another.
            "--leader-elect-lease-duration=60s",
            "--leader-elect-renew-deadline=50s",
            "--leader-elect-retry-period=1s",
        ];
        Self::in_cloud(stage, &[], &[&flags, arguments].concat())
    }

    fn in_cloud(stage: &Stage, subcommand: &[&str], arguments: &[&str]) -> Self {
        let folder = stage.files.path();
        let file = |name: &str| folder.join(name).display().to_string();
        let own = [
            format!("--cloud-config={}", file("cloud.conf")),
            format!("--kubeconfig={}", file("kubeconfig")),
            "--cluster-name=c1".to_owned(),
        ];
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        Self::spawn(folder, [words(subcommand), own.to_vec(), words(arguments)].concat())
    }

    /// The program with these arguments and nothing else.
    pub(crate) fn spawn(folder: &Path, arguments: impl IntoIterator<Item = String>) -> Self {
        // Another build of the program can be measured, such as the one that is in the image.
        let binary =
            std::env::var_os("BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_openstack-ccm").into());
        let output = log(folder);
        let child = Command::new(binary)
            .args(arguments)
            .env_clear()
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Self { child, log: folder.join(LOG) }
    }

    /// What it has used so far.
    pub(crate) fn usage(&self) -> Usage {
        self.known_usage().unwrap_or_else(|| panic!("the program has ended: {}", last_words(&self.log)))
    }

    /// The same; absent of a program that has ended.
    fn known_usage(&self) -> Option<Usage> {
        let folder = format!("/proc/{}", self.child.id());
        let status = std::fs::read_to_string(format!("{folder}/status")).ok()?;
        let kibibytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse().ok()
        };
        Some(Usage {
            peak: kibibytes("VmHWM:")?,
            rest: kibibytes("VmRSS:")?,
            own: kibibytes("RssAnon:")?,
            file: kibibytes("RssFile:")?,
            processor: processor_time(&folder)?,
            time: None,
            calls: None,
            reached: None,
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Errors mean that it has ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Time that a process was on a processor, in seconds, from its folder in `/proc`.
pub(crate) fn processor_time(folder: &str) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("{folder}/stat")).ok()?;
    let fields: Vec<f64> =
        stat.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect();
    // Fields 14 and 15; the first here is the third.
    Some((fields[11] + fields[12]) / TICKS)
}

/// A port that nobody uses.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Leads a program to the API server over TLS.
pub(crate) async fn kubeconfig(server: &KubernetesServer, authority: &Authority) -> String {
    let url = authority.in_front_of(server.address()).await;
    let data = base64::engine::general_purpose::STANDARD.encode(&authority.certificate);
    let cluster = format!("  cluster:\n    certificate-authority-data: {data}\n");
    server.kubeconfig().replacen("  cluster:\n", &cluster, 1).replacen(&server.url(), &url, 1)
}

fn log(folder: &Path) -> File {
    File::options().append(true).create(true).open(folder.join(LOG)).unwrap()
}

/// The end of a log.
fn last_words(log: &Path) -> String {
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

/// Waits for something in real time. To look must not take time from the simulators, which are in this process.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    loop {
        let look = Instant::now();
        if condition() {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "not reached: {what}");
        tokio::time::sleep((look.elapsed() * 10).max(Duration::from_millis(100))).await;
    }
}

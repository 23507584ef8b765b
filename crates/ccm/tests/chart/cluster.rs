//! A real API server, where the end-to-end tests have built one: etcd and kube-apiserver from their cache.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tempfile::TempDir;

use crate::helm::{CLOUD, helm, repository, text};

/// Longest time that a start may take; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(300);

/// A control plane without nodes.
pub(crate) struct Cluster {
    /// The minor version of its API server: 36 of 1.36.
    pub(crate) minor: u32,
    files: TempDir,
    processes: Vec<Child>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Cluster {
    /// Starts one, or says in one line what is missing.
    pub(crate) fn start() -> Option<Self> {
        Self::start_each(|minor| minor == 36).next()
    }

    /// Starts one of each version that was built and is wanted, one after another; if there is none, says in one line what is missing.
    pub(crate) fn start_each(is_wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = Self> {
        let etcd = helm().and_then(|_| built("etcd-").pop());
        let mut servers = built("kube-apiserver-1.");
        servers.retain(|server| etcd.is_some() && is_wanted(minor(server)));
        servers.dedup_by_key(|server| minor(server));
        if servers.is_empty() {
            let _ = writeln!(
                std::io::stderr(),
                "left out: no API server to upgrade a release on; `make e2e` builds one"
            );
        }
        servers.into_iter().filter_map(move |server| Some(Self::of(etcd.as_deref()?, &server)))
    }

    fn of(etcd: &Path, server: &Path) -> Self {
        let mut cluster =
            Self { minor: minor(server), files: tempfile::tempdir().unwrap(), processes: Vec::new() };
        let (clients, peers, port) = (free_port(), free_port(), free_port());
        cluster.prepare(port);
        let clients = format!("http://127.0.0.1:{clients}");
        let mut store = Command::new(etcd.join("etcd"));
        store.args(["--data-dir", "etcd", "--listen-client-urls", &clients]);
        store.args(["--advertise-client-urls", &clients]);
        store.arg(format!("--listen-peer-urls=http://127.0.0.1:{peers}"));
        cluster.run(store);
        let mut api = Command::new(server.join("kube-apiserver"));
        api.arg(format!("--etcd-servers={clients}")).arg(format!("--secure-port={port}")).args([
            "--bind-address=127.0.0.1",
            "--cert-dir=certificates",
            "--service-account-key-file=account.pub",
            "--service-account-signing-key-file=account.key",
            "--service-account-issuer=https://cluster.test",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--token-auth-file=tokens.csv",
            "--authorization-mode=RBAC",
        ]);
        cluster.run(api);
        cluster.wait();
        cluster
    }

    /// Waits until anything can be made in it.
    fn wait(&self) {
        let wait = async {
            let began = Instant::now();
            while let Err(error) = self.is_ready().await {
                assert!(began.elapsed() < PATIENCE, "{error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let alone =
            || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(wait);
        // Who starts it may have a runtime already, and there is one for each thread.
        std::thread::scope(|scope| scope.spawn(alone).join().unwrap());
    }

    /// An API server answers before it has made its own namespaces and the range of the addresses of Services: what comes
    /// sooner is refused, on a busy machine for seconds.
    async fn is_ready(&self) -> Result<(), kube::Error> {
        let client = self.client().await;
        client.request_text(http::Request::get("/readyz").body(Vec::new()).unwrap()).await?;
        Api::<Namespace>::all(client.clone()).get("kube-system").await?;
        // Made in the way of all others, by the API server for itself.
        Api::<Service>::namespaced(client, "default").get("kubernetes").await?;
        Ok(())
    }

    fn prepare(&self, port: u16) {
        let key = rcgen::KeyPair::generate().unwrap();
        self.write("account.key", &key.serialize_pem());
        self.write("account.pub", &key.public_key_pem());
        self.write("tokens.csv", "administrator,admin,admin,system:masters\n");
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: \"https://127.0.0.1:{port}\", insecure-skip-tls-verify: true}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: a}}}}]\n\
             users: [{{name: a, user: {{token: administrator}}}}]\n"
        );
        self.write("kubeconfig", &kubeconfig);
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.files.path().join(name), text).unwrap();
    }

    fn run(&mut self, mut command: Command) {
        command.current_dir(self.files.path()).stdout(Stdio::null()).stderr(Stdio::null());
        self.processes.push(command.spawn().unwrap());
    }

    /// Runs Helm 3 in the namespace `kube-system`.
    pub(crate) fn helm(&self, arguments: &[&str]) -> Output {
        self.by(helm().unwrap(), arguments)
    }

    /// The same with a given Helm.
    pub(crate) fn by(&self, helm: &Path, arguments: &[&str]) -> Output {
        self.begun_by(helm, arguments).wait_with_output().unwrap()
    }

    /// The same with Helm 3, without waiting for its end.
    pub(crate) fn begun(&self, arguments: &[&str]) -> Child {
        self.begun_by(helm().unwrap(), arguments)
    }

    fn begun_by(&self, helm: &Path, arguments: &[&str]) -> Child {
        let mut command = Command::new(helm);
        command.args(arguments).args(["--namespace", "kube-system"]).env("KUBECONFIG", self.kubeconfig());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Installs OCCM's own chart as the release `occm`, with its default values.
    pub(crate) fn has_occm(&self) {
        let chart = repository("crates/ccm/tests/chart/occm_chart").display().to_string();
        let values = repository("crates/ccm/tests/chart/values/occm-defaults.yaml").display().to_string();
        let image =
            "image.repository=registry.example.org/openstack-cloud-controller-manager,image.tag=v1.36.0";
        let all = ["install", "occm", &chart, "--values", &values, "--set", image, "--set-json", CLOUD];
        let output = self.helm(&all);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.files.path().join("kubeconfig")
    }

    /// A client for the administrator.
    pub(crate) async fn client(&self) -> kube::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let file = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        kube::Client::try_from(config).unwrap()
    }
}

/// The folders of programs in the cache of the end-to-end tests.
fn built(prefix: &str) -> Vec<PathBuf> {
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).unwrap_or_default();
    let entries = std::fs::read_dir(cache.join("openstack-ccm-e2e"));
    let mut complete: Vec<PathBuf> =
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    complete.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(prefix) && name.ends_with(".complete")
    });
    complete.sort();
    complete.into_iter().map(|path| path.with_extension("")).collect()
}

/// The minor version in the name of such a folder: 36 of `kube-apiserver-1.36-…`.
fn minor(folder: &Path) -> u32 {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let version = name.split("-1.").nth(1).and_then(|rest| rest.split('-').next());
    version.and_then(|minor| minor.parse().ok()).unwrap_or_default()
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

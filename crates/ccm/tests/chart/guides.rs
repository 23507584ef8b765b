//! What the guides say to type, typed: every command that a page marks with `run`, in the order of the page, with the pinned Helm and
//! kubectl on a real API server. No pod runs; the quickstart has its controllers, nodes and application from `served`.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ListParams, PostParams};
use openstack_ccm_openstack_sim::{Server as CloudServer, Sim as Cloud};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::helm::{helm, program, repository, text};
use crate::pages::{Block, pages};
use crate::served::Served;
use crate::upgrade::{image_of, succeeds};

/// The pages that the stories below follow.
const FOLLOWED: [&str; 12] = [
    "docs/tutorials/quickstart.md",
    "docs/guides/install.md",
    "docs/guides/install-with-kustomize.md",
    "docs/guides/troubleshooting.md",
    "docs/guides/alerts.md",
    "docs/guides/production.md",
    "docs/guides/canary.md",
    "docs/guides/upgrade-and-uninstall.md",
    "docs/guides/distributions.md",
    "docs/guides/try-on-one-class.md",
    "docs/guides/migrate-from-occm.md",
    "docs/overlay/README.md",
];

/// Somebody with a clone of the repository, a terminal and a cluster.
struct Reader {
    cluster: Cluster,
    folder: TempDir,
    /// `http_proxy` of the commands.
    proxy: String,
}

impl Reader {
    fn start() -> Option<Self> {
        let cluster = Cluster::start()?;
        let folder = tempfile::tempdir().unwrap();
        for part in ["charts", "manifests"] {
            symlink(repository(part), folder.path().join(part)).unwrap();
        }
        let tools = folder.path().join("bin");
        std::fs::create_dir(&tools).unwrap();
        for (name, target) in [
            ("helm", helm()?),
            ("kubectl", kubectl()?),
            ("openstack-ccm", Path::new(env!("CARGO_BIN_EXE_openstack-ccm"))),
            ("ip-mode-overlay", Path::new(env!("CARGO_BIN_EXE_openstack-ccm"))),
        ] {
            symlink(target, tools.join(name)).unwrap();
        }
        Some(Self { cluster, folder, proxy: String::new() })
    }

    /// No pod runs, so somebody holds the lease in place of one.
    async fn sees_a_leader(&self) {
        let client = self.cluster.client().await;
        let leases: Api<Lease> = Api::namespaced(client, "kube-system");
        let lease: Lease = serde_json::from_value(json!({
            "metadata": {"name": "cloud-controller-manager"},
            "spec": {"holderIdentity": "cp-1_0", "leaseDurationSeconds": 3600,
                "renewTime": MicroTime(Timestamp::now())},
        }))
        .unwrap();
        leases.create(&PostParams::default(), &lease).await.unwrap();
    }

    /// Writes a file beside what the reader has.
    fn has(&self, name: &str, content: &str) {
        std::fs::write(self.folder.path().join(name), content).unwrap();
    }

    /// Follows a page from top to bottom.
    fn follows(&self, path: &str) {
        self.follows_up_to(path, None);
    }

    /// Follows a page up to the command that has the text `end` in it.
    fn follows_up_to(&self, path: &str, end: Option<&str>) {
        assert!(FOLLOWED.contains(&path), "{path} is not among FOLLOWED");
        let page = pages().into_iter().find(|page| page.path == path).unwrap();
        assert!(page.blocks.iter().any(|block| block.is("run")), "{path} has no command to run");
        for block in page.blocks.iter().take_while(|block| end.is_none_or(|end| !block.text.contains(end))) {
            if let Some(name) = block.file() {
                self.has(name, &block.text);
            }
            if block.is("run") {
                self.types(path, block);
            }
        }
    }

    fn types(&self, path: &str, block: &Block) {
        let known = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &block.text])
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{known}", self.folder.path().join("bin").display()))
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env("http_proxy", &self.proxy)
            .env("no_proxy", "127.0.0.1,localhost")
            .output()
            .unwrap();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{path}:\n{}\n{said}", block.text);
    }

    async fn daemon_sets(&self) -> Api<DaemonSet> {
        Api::namespaced(self.cluster.client().await, "kube-system")
    }
}

/// kubectl of the version of the API server.
fn kubectl() -> Option<&'static Path> {
    static KUBECTL: OnceLock<Option<PathBuf>> = OnceLock::new();
    KUBECTL.get_or_init(|| program("KUBECTL", "kubectl", "k8s.io/kubernetes/cmd/kubectl")).as_deref()
}

/// A cloud that listens here, and the values of somebody who runs OCCM with it.
struct OfOccm {
    values: String,
    _cloud: CloudServer,
}

impl OfOccm {
    async fn start() -> Self {
        let cloud = Cloud::builder().build();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        cloud.set_base_url(&format!("http://{address}"));
        let conf = cloud.cloud_conf();
        let (global, load_balancer) = conf.split_once("[LoadBalancer]").unwrap();
        let values = |section: &str| -> Map<String, Value> {
            let pairs = section.lines().filter_map(|line| line.split_once('='));
            pairs.map(|(key, value)| (key.to_owned(), json!(value.trim_matches('"')))).collect()
        };
        let values = json!({
            "image": {"repository": "registry.example.org/openstack-cloud-controller-manager", "tag": "v1.36.0"},
            "cloudConfig": {"global": values(global), "loadBalancer": values(load_balancer)},
        });
        Self { values: values.to_string(), _cloud: cloud.serve(address).await.unwrap() }
    }
}

const WORKLOAD: &str = "openstack-cloud-controller-manager";

/// The load balancer answers while the reader types.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_installs_operates_upgrades_and_uninstalls_by_the_pages() {
    let Some(mut reader) = Reader::start() else { return };
    reader.sees_a_leader().await;
    let served = Served::start(&reader.cluster, "my-cluster", reader.folder.path()).await;
    reader.proxy.clone_from(&served.proxy);
    reader.follows("docs/tutorials/quickstart.md");
    drop(served);
    reader.proxy.clear();
    let workloads = reader.daemon_sets().await;
    assert_eq!(
        image_of(&workloads.get(WORKLOAD).await.unwrap()),
        concat!("registry.example.org/openstack-ccm:", env!("CARGO_PKG_VERSION"))
    );
    reader.follows("docs/guides/install.md");
    reader.follows("docs/guides/troubleshooting.md");
    reader.follows("docs/guides/alerts.md");

    reader.has("ca.crt", "a certificate\n");
    reader.follows("docs/guides/production.md");
    let pod = workloads.get(WORKLOAD).await.unwrap().spec.template.spec.unwrap();
    let volumes: Vec<String> = pod.volumes.unwrap().into_iter().map(|volume| volume.name).collect();
    assert!(volumes.contains(&"ca".to_owned()), "{volumes:?}");
    let variables: Vec<String> =
        pod.containers[0].env.clone().unwrap().into_iter().map(|variable| variable.name).collect();
    assert!(variables.contains(&"HTTPS_PROXY".to_owned()), "{variables:?}");

    reader.follows("docs/guides/canary.md");
    let canaries: Api<DaemonSet> = Api::namespaced(reader.cluster.client().await, "openstack-ccm-canary");
    assert_eq!(canaries.list(&ListParams::default()).await.unwrap().items.len(), 1);

    reader.follows("docs/guides/upgrade-and-uninstall.md");
    assert!(workloads.get_opt(WORKLOAD).await.unwrap().is_none());

    reader.follows("docs/guides/distributions.md");
    let hosted: Api<Deployment> = Api::namespaced(reader.cluster.client().await, "my-cluster");
    assert!(hosted.get_opt("my-cluster-openstack-ccm").await.unwrap().is_some());
}

#[tokio::test]
async fn somebody_without_helm_installs_and_uninstalls_by_the_page() {
    let Some(reader) = Reader::start() else { return };
    reader.sees_a_leader().await;
    reader.has("cloud.conf", "[Global]\n");
    let client = reader.cluster.client().await;
    let secrets: Api<Secret> = Api::namespaced(client, "kube-system");
    let workloads = reader.daemon_sets().await;
    reader.follows_up_to("docs/guides/install-with-kustomize.md", Some("kubectl delete"));
    let pod = workloads.get(WORKLOAD).await.unwrap().spec.template.spec.unwrap();
    assert!(pod.containers[0].image.as_deref().unwrap().starts_with("registry.example.org/openstack-ccm"));
    let name = pod.volumes.unwrap().into_iter().find_map(|volume| volume.secret?.secret_name).unwrap();
    assert!(name.starts_with("cloud-config-"), "{name} changes with the file");
    assert!(secrets.get_opt(&name).await.unwrap().is_some());
    reader.follows("docs/guides/install-with-kustomize.md");
    assert!(workloads.get_opt(WORKLOAD).await.unwrap().is_none());
}

/// The cloud answers while the reader types.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_of_occm_tries_switches_and_goes_back_by_the_pages() {
    let Some(reader) = Reader::start() else { return };
    reader.sees_a_leader().await;
    let chart = repository("crates/ccm/tests/chart/occm_chart").display().to_string();
    let values = repository("crates/ccm/tests/chart/values/occm-defaults.yaml").display().to_string();
    // An image of its own, as people have it among their values, and a cloud.conf that can be checked.
    let occm = OfOccm::start().await;
    reader.has("of-occm.yaml", &occm.values);
    let of_occm = reader.folder.path().join("of-occm.yaml").display().to_string();
    let release = ["install", "occm", &chart, "--values", &values, "--values", &of_occm];
    succeeds(&reader.cluster.helm(&release));
    let workloads = reader.daemon_sets().await;
    let before = workloads.get(WORKLOAD).await.unwrap();

    reader.follows("docs/guides/try-on-one-class.md");
    let names: Vec<String> = workloads
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|workload| workload.metadata.name)
        .collect();
    assert_eq!(names, [WORKLOAD], "the trial has ended");

    reader.follows("docs/guides/migrate-from-occm.md");
    let history = text(&reader.cluster.helm(&["history", "occm", "--output", "json"]).stdout);
    assert!(history.contains(concat!("\"openstack-ccm-", env!("CARGO_PKG_VERSION"), "\"")), "{history}");
    let back = workloads.get(WORKLOAD).await.unwrap();
    assert_eq!(
        (back.metadata.uid.clone(), image_of(&back)),
        (before.metadata.uid.clone(), image_of(&before))
    );
}

/// A command with Helm that no test types would go stale unseen.
#[test]
fn every_command_with_the_chart_is_typed_by_a_test() {
    let pages = pages();
    for page in &pages {
        let marked = page.blocks.iter().any(|block| block.is("run"));
        assert!(!marked || FOLLOWED.contains(&page.path.as_str()), "no story follows {}", page.path);
    }
    let typed: Vec<&str> = pages
        .iter()
        .flat_map(|page| &page.blocks)
        .filter(|block| block.is("run"))
        .map(|block| block.text.as_str())
        .collect();
    for page in &pages {
        for block in page
            .blocks
            .iter()
            .filter(|block| block.language == "sh" && block.text.contains("charts/openstack-ccm"))
        {
            // The cluster of another kubeconfig is not there.
            let elsewhere = block.text.contains("--kubeconfig");
            assert!(
                elsewhere || typed.contains(&block.text.as_str()),
                "{}: add `run` to this block, or write it as a page that is typed has it:\n{}",
                page.path,
                block.text
            );
        }
    }
}

#[tokio::test]
async fn a_user_of_another_cloud_installs_the_overlay_by_its_page() {
    let Some(reader) = Reader::start() else { return };
    reader.follows("docs/overlay/README.md");
    let client = reader.cluster.client().await;
    let workloads: Api<Deployment> = Api::namespaced(client, "ip-mode-overlay");
    assert!(workloads.get_opt("ip-mode-overlay").await.unwrap().is_some());
}

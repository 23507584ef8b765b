//! The chart in a management cluster, and the cluster that its pods serve: two real API servers.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::PostParams;
use kube::{Api, Client};
use openstack_ccm_openstack_sim::Sim as Cloud;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::helm::{IMAGE, repository, strings};
use crate::served::join;
use crate::upgrade::succeeds;

/// Longest wait for something on a real API server; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(120);
/// The Lease of all cloud-controller-managers.
const LEASE: &str = "cloud-controller-manager";
/// The Secret with a kubeconfig, as Cluster API names and fills it.
const KUBECONFIG: &str = "shop-kubeconfig";

/// A pod of a Deployment, as far as it is a program with files from Secrets. It ends when this is dropped.
struct Pod {
    _files: TempDir,
    program: Child,
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Pod {
    /// What a kubelet of the management cluster does.
    async fn start(management: &Client, template: &Value) -> Self {
        let (files, spec) = (tempfile::tempdir().unwrap(), &template["spec"]);
        let container = &spec["containers"][0];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        // What a text of the pod stands for here: a path, or the name of a variable.
        let mut stands_for = Vec::new();
        for variable in container["env"].as_array().unwrap() {
            stands_for.push((format!("$({})", text(&variable["name"])), text(&variable["value"])));
        }
        for mount in container["volumeMounts"].as_array().unwrap() {
            let volumes = spec["volumes"].as_array().unwrap();
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
            let folder = files.path().join(text(&mount["name"]));
            mount_secret(management, &volume["secret"], &folder).await;
            stands_for.push((text(&mount["mountPath"]), folder.display().to_string()));
        }
        let here = |argument: &String| {
            stands_for.iter().fold(argument.clone(), |argument, (there, here)| argument.replace(there, here))
        };
        let arguments = strings(&container["args"]);
        let program = Command::new(env!("CARGO_BIN_EXE_openstack-ccm"))
            .args(arguments[1..].iter().map(here))
            .args(["--secure-port=0", "--leader-elect-retry-period=1s"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { _files: files, program }
    }

    fn terminate(&mut self) {
        assert!(Command::new("kill").arg(self.program.id().to_string()).status().unwrap().success());
        assert!(self.program.wait().unwrap().success());
    }
}

async fn mount_secret(client: &Client, volume: &Value, folder: &Path) {
    let secrets = Api::<Secret>::namespaced(client.clone(), "kube-system");
    let data = secrets.get(volume["secretName"].as_str().unwrap()).await.unwrap().data.unwrap();
    std::fs::create_dir(folder).unwrap();
    for (key, content) in data {
        let items = volume["items"].as_array().into_iter().flatten();
        let path = items.filter(|item| item["key"] == key.as_str()).find_map(|item| item["path"].as_str());
        std::fs::write(folder.join(path.unwrap_or(&key)), content.0).unwrap();
    }
}

async fn until<T>(what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = attempt().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn make_service(client: &Client, name: &str) {
    let service =
        json!({"metadata": {"name": name}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    let services = Api::<Service>::namespaced(client.clone(), "default");
    services.create(&PostParams::default(), &from_value(service).unwrap()).await.unwrap();
}

async fn published(client: &Client, name: &str) {
    let services = Api::<Service>::namespaced(client.clone(), "default");
    until(&format!("{name} is published"), async || {
        let status = services.get(name).await.unwrap().status.unwrap().load_balancer.unwrap();
        status.ingress.filter(|ingress| !ingress.is_empty())
    })
    .await;
}

/// Who leads, when it is somebody else than before.
async fn leader(workload: &Client, before: &str) -> String {
    let leases = Api::<Lease>::namespaced(workload.clone(), "kube-system");
    until("somebody leads", async || {
        let holder = leases.get_opt(LEASE).await.unwrap()?.spec.unwrap().holder_identity?;
        (!holder.is_empty() && holder != before).then_some(holder)
    })
    .await
}

/// Installs the chart in the management cluster for the workload cluster, whose kubeconfig is in a Secret there.
async fn install(management: &Cluster, workload: &Cluster, cloud_conf: &str) -> Value {
    let client = management.client().await;
    let kubeconfig = std::fs::read_to_string(workload.kubeconfig()).unwrap();
    let secret = json!({
        "metadata": {"name": KUBECONFIG}, "type": "cluster.x-k8s.io/secret", "stringData": {"value": kubeconfig},
    });
    let secrets = Api::<Secret>::namespaced(client.clone(), "kube-system");
    secrets.create(&PostParams::default(), &from_value(secret).unwrap()).await.unwrap();
    let values = tempfile::NamedTempFile::new().unwrap();
    let content = json!({
        "workloadCluster": {"kubeconfigSecret": KUBECONFIG}, "kind": "Deployment", "hostNetwork": false,
        "nodeSelector": null, "cluster": {"name": "shop"}, "cloudConfigContents": cloud_conf,
    });
    std::fs::write(values.path(), content.to_string()).unwrap();
    let (chart, values) = (repository("charts/openstack-ccm"), values.path().display().to_string());
    let chart = chart.display().to_string();
    succeeds(&management.helm(&["install", "shop", &chart, "--values", &values, "--set", IMAGE]));
    let deployments = Api::<Deployment>::namespaced(client, "kube-system");
    let spec = deployments.get("shop-openstack-ccm").await.unwrap().spec;
    assert_eq!(spec.replicas, Some(2));
    serde_json::to_value(spec.template).unwrap()
}

/// Both pods of the Deployment run: one of them leads, by the Lease of the workload cluster, and when it ends, the other one does. Services of
/// the workload cluster are served; the management cluster's own are none of their business.
#[tokio::test]
async fn pods_of_a_management_cluster_serve_the_workload_cluster_and_lead_there() {
    let (Some(management), Some(workload)) = (Cluster::start(), Cluster::start()) else { return };
    let cloud = Cloud::builder().nodes(2).build();
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    cloud.set_base_url(&format!("http://{free}"));
    let _server = cloud.serve(free).await.unwrap();
    join(&workload, &cloud).await;
    let (manager, client) = (management.client().await, workload.client().await);
    make_service(&manager, "own").await;
    let template = install(&management, &workload, &cloud.cloud_conf()).await;
    assert_eq!(template["spec"]["automountServiceAccountToken"], false);

    let mut first = Pod::start(&manager, &template).await;
    let leads = leader(&client, "").await;
    let _second = Pod::start(&manager, &template).await;
    make_service(&client, "web").await;
    published(&client, "web").await;
    first.terminate();
    assert_ne!(leader(&client, &leads).await, leads);
    make_service(&client, "next").await;
    published(&client, "next").await;

    let mut names: Vec<String> =
        cloud.load_balancers().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["kube_service_shop_default_next", "kube_service_shop_default_web"]);
    let own = Api::<Service>::namespaced(manager.clone(), "default").get("own").await.unwrap();
    assert!(own.metadata.finalizers.is_none() && own.metadata.annotations.is_none(), "{own:?}");
    let leases = Api::<Lease>::namespaced(manager, "kube-system");
    assert!(leases.get_opt(LEASE).await.unwrap().is_none(), "nobody leads in the management cluster");
}

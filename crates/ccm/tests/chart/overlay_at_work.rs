//! The chart of the overlay on a real API server: what it installs does its work with the rights that it gets.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Service, ServiceAccount};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, from_value, json};

use crate::cluster::Cluster;
use crate::helm::{repository, strings, text};
use crate::overlay::release;
use crate::upgrade::succeeds;

/// Longest wait for something on a real API server; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(120);
const DIGITAL_OCEAN: &str = "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol";
const LINODE_PORT: &str = "service.beta.kubernetes.io/linode-loadbalancer-port-443";

fn services(client: &Client) -> Api<Service> {
    Api::namespaced(client.clone(), "default")
}

async fn create(client: &Client, name: &str, annotations: Value, class: Option<&str>) {
    let service = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "loadBalancerClass": class, "ports": [{"port": 443}]},
    });
    services(client).create(&PostParams::default(), &from_value(service).unwrap()).await.unwrap();
}

/// Writes a status as the framework of cloud-controller-managers does, and answers what was stored.
async fn owner_publishes(client: &Client, name: &str, ingress: &Value) -> Value {
    let parameters =
        PatchParams { field_manager: Some("cloud-controller-manager".into()), ..PatchParams::default() };
    let patch = Patch::Strategic(json!({"status": {"loadBalancer": {"ingress": ingress}}}));
    let answer = services(client).patch_status(name, &parameters, &patch).await.unwrap();
    ingress_of(&answer)
}

fn ingress_of(service: &Service) -> Value {
    serde_json::to_value(service).unwrap()["status"]["loadBalancer"]["ingress"].clone()
}

/// On a real API server: whoever writes a status, and however, finds the mode in it; what is not meant stays.
#[tokio::test]
async fn the_policy_sets_the_mode_in_every_write_on_a_real_api_server() {
    let Some(cluster) = Cluster::start() else { return };
    let chart = repository("charts/ip-mode-overlay").display().to_string();
    let settings = "controller.enabled=false,policy.enabled=true,annotations={lb.example.org/tls}";
    succeeds(&cluster.helm(&["install", "overlay", &chart, "--set", settings]));
    let client = cluster.client().await;
    let linode = json!({LINODE_PORT: r#"{"proxy-protocol": "v2"}"#});
    let cases = [
        ("chosen", json!({DIGITAL_OCEAN: "true"}), None, true),
        ("own", json!({"ip-mode-overlay/mode": "Proxy"}), None, true),
        ("linode", linode, None, true),
        ("further", json!({"lb.example.org/tls": "secret"}), None, true),
        ("plain", json!({}), None, false),
        ("switched-off", json!({DIGITAL_OCEAN: "false"}), None, false),
        ("vip", json!({DIGITAL_OCEAN: "true", "ip-mode-overlay/mode": "vip"}), None, false),
        ("typing-error", json!({DIGITAL_OCEAN: "true", "ip-mode-overlay/mode": "prxy"}), None, false),
        ("metallb", json!({DIGITAL_OCEAN: "true", "metallb.io/ip-allocated-from-pool": "p"}), None, false),
        ("cilium", json!({DIGITAL_OCEAN: "true"}), Some("io.cilium/l2-announcer"), false),
    ];
    for (name, annotations, class, _) in &cases {
        create(&client, name, annotations.clone(), *class).await;
    }
    let ingress = json!([
        {"ip": "203.0.113.10"},
        {"hostname": "lb.example.net", "ip": "2001:db8::5", "ports": [{"port": 443, "protocol": "TCP"}]},
        {"hostname": "only.example.net"},
    ]);
    // The API server sorts field managers by the second of their last change. Of a status written in the second of the creation, an
    // equal write later would still change that order.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    // The policy is in force some seconds after it was stored.
    let began = Instant::now();
    while owner_publishes(&client, "chosen", &ingress).await[0]["ipMode"] != "Proxy" {
        assert!(began.elapsed() < PATIENCE, "the policy is not in force");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for (name, _, _, is_chosen) in cases {
        let stored = owner_publishes(&client, name, &ingress).await;
        let mode = if is_chosen { "Proxy" } else { "VIP" };
        let mut expected = ingress.clone();
        expected[0]["ipMode"] = json!(mode);
        expected[1]["ipMode"] = json!(mode);
        assert_eq!(stored, expected, "{name}");
    }
    let before = services(&client).get("chosen").await.unwrap();
    owner_publishes(&client, "chosen", &ingress).await;
    assert_eq!(services(&client).get("chosen").await.unwrap(), before, "an equal write is no change");
    assert_eq!(owner_publishes(&client, "chosen", &Value::Null).await, Value::Null);
}

/// The program under its own name, as the image has it.
struct Program {
    folder: tempfile::TempDir,
    file: PathBuf,
}

impl Program {
    fn new(kubeconfig: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ip-mode-overlay");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_openstack-ccm"), &file).unwrap();
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        Self { folder, file }
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.file);
        command
            .args(arguments)
            .arg(format!("--kubeconfig={}", self.folder.path().join("kubeconfig").display()));
        command
    }

    fn ends(&self, arguments: &[&str]) -> Output {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self.command(&arguments).output().unwrap()
    }
}

/// A program that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The kubeconfig of an account.
async fn kubeconfig_of(client: &Client, administrators: &Path, account: &str) -> String {
    let request: TokenRequest = from_value(json!({"spec": {"audiences": []}})).unwrap();
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "kube-system");
    let token = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
    let own = std::fs::read_to_string(administrators).unwrap();
    own.replace("administrator", &token.status.unwrap().token.unwrap())
}

async fn until(client: &Client, name: &str, mode: &str) {
    let began = Instant::now();
    loop {
        let ingress = ingress_of(&services(client).get(name).await.unwrap());
        if ingress[0]["ipMode"] == mode {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{name} is not {mode}: {ingress}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A node that honours the mode, and a Service that its owner has published by address.
async fn one_service(client: &Client) {
    let node = json!({"metadata": {"name": "n1"}, "status": {"nodeInfo": {
        "kubeletVersion": "v1.36.3", "operatingSystem": "linux", "architecture": "", "bootID": "", "containerRuntimeVersion": "",
        "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "osImage": "", "systemUUID": "",
    }}});
    Api::<Node>::all(client.clone())
        .create(&PostParams::default(), &from_value(node).unwrap())
        .await
        .unwrap();
    create(client, "app", json!({DIGITAL_OCEAN: "true"}), None).await;
    owner_publishes(client, "app", &json!([{"ip": "203.0.113.10"}])).await;
}

/// The controller with the arguments of the chart, and its log.
fn started(program: &Program) -> (Running, PathBuf) {
    let release = release().set("image.repository=registry.example.org/lb");
    let mut arguments = strings(&release.objects().unwrap().container()["args"]);
    let here = ["--listen=127.0.0.1:0", "--secure-port=0", "--lease-namespace=kube-system"];
    arguments.extend(here.map(str::to_owned));
    let mut command = program.command(&arguments);
    let log = program.folder.path().join("log");
    let output = std::fs::File::create(&log).unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(output).stdin(Stdio::null());
    (Running(command.spawn().unwrap()), log)
}

/// On a real API server, with the chart's arguments and rights and nothing more.
#[tokio::test]
async fn the_controller_works_with_the_rights_of_the_chart_on_a_real_api_server() {
    let Some(cluster) = Cluster::start() else { return };
    let chart = repository("charts/ip-mode-overlay").display().to_string();
    let settings = "image.repository=registry.example.org/lb,cleanup.enabled=false";
    succeeds(&cluster.helm(&["install", "overlay", &chart, "--set", settings]));
    let client = cluster.client().await;
    one_service(&client).await;
    let program = Program::new(&kubeconfig_of(&client, &cluster.kubeconfig(), "ip-mode-overlay").await);
    let looked = program.ends(&["check"]);
    assert_eq!(looked.status.code(), Some(2), "{}", text(&looked.stderr));
    assert!(
        text(&looked.stdout).contains("default/app  203.0.113.10 VIP  203.0.113.10 Proxy"),
        "{}",
        text(&looked.stdout)
    );
    let (mut running, log) = started(&program);
    until(&client, "app", "Proxy").await;
    owner_publishes(&client, "app", &json!([{"ip": "203.0.113.99"}])).await;
    until(&client, "app", "Proxy").await;
    let stored = ingress_of(&services(&client).get("app").await.unwrap());
    assert_eq!(stored, json!([{"ip": "203.0.113.99", "ipMode": "Proxy"}]));
    assert_eq!(program.ends(&["check"]).status.code(), Some(0));
    let patch = Patch::Merge(json!({"metadata": {"annotations": {DIGITAL_OCEAN: null}}}));
    services(&client).patch("app", &PatchParams::default(), &patch).await.unwrap();
    until(&client, "app", "VIP").await;
    create(&client, "second", json!({"ip-mode-overlay/mode": "proxy"}), None).await;
    owner_publishes(&client, "second", &json!([{"ip": "203.0.113.20"}])).await;
    until(&client, "second", "Proxy").await;

    assert!(Command::new("kill").args(["-TERM", &running.0.id().to_string()]).status().unwrap().success());
    assert!(running.0.wait().unwrap().success(), "{}", std::fs::read_to_string(&log).unwrap());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(!log.contains("forbidden") && !log.contains("Forbidden"), "{log}");
    assert!(!log.to_lowercase().contains("openstack"), "{log}");
    let done = program.ends(&["cleanup"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout), "default/second: ipMode VIP again\n1 Service restored, 0 failed\n");
    until(&client, "second", "VIP").await;
}

#[test]
fn a_cluster_that_cannot_be_reached_is_not_taken_for_one_that_is_not_green() {
    let program = Program::new(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
         contexts: [{name: c, context: {cluster: c, user: a}}]\nusers: [{name: a, user: {}}]\n",
    );
    let looked = program.ends(&["check"]);
    assert_eq!(looked.status.code(), Some(1), "{}", text(&looked.stderr));
    assert!(text(&looked.stderr).starts_with("ip-mode-overlay: "), "{}", text(&looked.stderr));
}

/// Plays what makes a pod of a Job and reports how it ended: its command is run here, with the token of its account.
async fn job_runs(client: &Client, cluster: &Cluster, name: &str) -> Output {
    let jobs = Api::<Job>::namespaced(client.clone(), "kube-system");
    let began = Instant::now();
    let job = loop {
        if let Some(job) = jobs.get_opt(name).await.unwrap() {
            break serde_json::to_value(job).unwrap();
        }
        assert!(began.elapsed() < PATIENCE, "there is no Job {name}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let pod = &job["spec"]["template"]["spec"];
    let account = pod["serviceAccountName"].as_str().unwrap();
    let container = &pod["containers"][0];
    assert_eq!(container["command"], json!(["/bin/ip-mode-overlay"]));
    let program = Program::new(&kubeconfig_of(client, &cluster.kubeconfig(), account).await);
    let output = program.command(&strings(&container["args"])).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let now = jiff::Timestamp::now();
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "CompletionsReached", "lastProbeTime": now, "lastTransitionTime": now,
        })
    };
    let status = json!({"status": {
        "startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }});
    jobs.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    output
}

/// Helm starts the Job when everything else is gone, and takes it away with its rights when it is done.
#[tokio::test]
async fn helm_uninstall_gives_back_what_the_controller_set_on_a_real_api_server() {
    let Some(cluster) = Cluster::start() else { return };
    let chart = repository("charts/ip-mode-overlay").display().to_string();
    succeeds(&cluster.helm(&[
        "install",
        "overlay",
        &chart,
        "--set",
        "image.repository=registry.example.org/lb",
    ]));
    let client = cluster.client().await;
    one_service(&client).await;
    create(&client, "owners", json!({}), None).await;
    owner_publishes(&client, "owners", &json!([{"ip": "203.0.113.30", "ipMode": "Proxy"}])).await;
    let program = Program::new(&kubeconfig_of(&client, &cluster.kubeconfig(), "ip-mode-overlay").await);
    let (running, _) = started(&program);
    until(&client, "app", "Proxy").await;
    drop(running);

    let uninstalling = cluster.begun(&["uninstall", "overlay", "--timeout", "120s"]);
    let done = job_runs(&client, &cluster, "ip-mode-overlay-cleanup").await;
    assert_eq!(text(&done.stdout), "default/app: ipMode VIP again\n1 Service restored, 0 failed\n");
    succeeds(&uninstalling.wait_with_output().unwrap());
    until(&client, "app", "VIP").await;
    until(&client, "owners", "Proxy").await;
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "kube-system");
    for account in ["ip-mode-overlay", "ip-mode-overlay-cleanup"] {
        assert!(accounts.get_opt(account).await.unwrap().is_none(), "{account} is left");
    }
    let jobs = Api::<Job>::namespaced(client, "kube-system");
    assert!(jobs.get_opt("ip-mode-overlay-cleanup").await.unwrap().is_none(), "the Job is left");
}

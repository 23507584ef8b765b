//! The chart of the overlay: the same policy as the program prints, and arguments that the program takes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use clap::Parser as _;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Node, Service, ServiceAccount};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use openstack_ccm::overlay::args::{OverlayCommand, OverlayCommandLine};
use openstack_ccm_overlay::policy::{ApiVersion, yaml};
use openstack_ccm_overlay::rules::{Rules, clouds};
use rstest::rstest;
use serde_json::{Value, from_value, json};

use crate::cluster::Cluster;
use crate::helm::{Objects, Release, repository, strings, text};
use crate::upgrade::succeeds;

fn release() -> Release {
    Release::without_image().chart(&repository("charts/ip-mode-overlay"))
}

fn policy_only() -> Release {
    release().set("controller.enabled=false").set("policy.enabled=true")
}

#[rstest]
#[case::all(&[], &[], ApiVersion::V1)]
#[case::two_clouds(&["linode", "vultr"], &[], ApiVersion::V1)]
#[case::further(&["civo"], &["lb.example.org/proxy=it's=on", "lb.example.org/tls"], ApiVersion::V1Beta1)]
fn the_policy_is_the_one_that_the_program_prints(
    #[case] names: &[&str],
    #[case] annotations: &[&str],
    #[case] version: ApiVersion,
) {
    let mut release = policy_only().set(&format!("policy.api={}", version.as_str()));
    if !names.is_empty() {
        release = release.set(&format!("clouds={{{}}}", names.join(",")));
    }
    for (index, annotation) in annotations.iter().enumerate() {
        release = release.set(&format!("annotations[{index}]={annotation}"));
    }
    let Some(rendered) = release.objects() else { return };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let rules = Rules {
        clouds: clouds(&names).unwrap(),
        annotations: annotations.iter().map(|pair| pair.parse().unwrap()).collect(),
        labels: Vec::new(),
    };
    assert_eq!(rendered.0, Objects::parse(&yaml(&rules, version)).0);
}

#[test]
fn the_program_takes_the_arguments_of_the_chart() {
    let release = release()
        .set("image.repository=registry.example.org/lb")
        .set("clouds={digitalocean,linode}")
        .set("annotations={lb.example.org/proxy=on}")
        .set("selector={edge=yes,tier}")
        .set("hostnameSuffix=nip.example")
        .set("loadBalancerIPMode=true");
    let Some(objects) = release.objects() else { return };
    let container = objects.container();
    assert_eq!(container["command"], json!(["/bin/ip-mode-overlay"]));
    let arguments = [vec!["ip-mode-overlay".to_owned()], strings(&container["args"])].concat();
    let OverlayCommand::Run(run) = OverlayCommandLine::parse_from(arguments).command else {
        panic!("not run")
    };
    let rules = run.rules.rules().unwrap();
    assert_eq!((rules.clouds.len(), rules.annotations.len(), rules.labels.len()), (2, 1, 2));
    assert_eq!((run.rules.hostname_suffix.as_deref(), run.rules.gate()), (Some("nip.example"), Some(true)));
    let cleanup =
        &objects.named("Job", "ip-mode-overlay-cleanup")["spec"]["template"]["spec"]["containers"][0];
    let arguments = [vec!["ip-mode-overlay".to_owned()], strings(&cleanup["args"])].concat();
    let OverlayCommand::Cleanup(cleanup) = OverlayCommandLine::parse_from(arguments).command else {
        panic!("not cleanup")
    };
    assert_eq!(cleanup.hostname_suffix.as_deref(), Some("nip.example"));
}

/// It reads, patches one sub-resource, writes Events and its own Lease, and nothing else.
#[test]
fn it_may_do_what_it_does_and_no_more() {
    let Some(objects) = release().set("image.repository=registry.example.org/lb").objects() else { return };
    assert_eq!(
        objects.named("ClusterRole", "ip-mode-overlay")["rules"],
        json!([
            {"apiGroups": [""], "resources": ["services", "nodes"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["services/status"], "verbs": ["patch"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        ])
    );
}

#[test]
fn who_uses_it_reads_nothing_of_openstack() {
    let Some(text) =
        release().set("image.repository=registry.example.org/lb").set("policy.enabled=true").text()
    else {
        return;
    };
    assert!(!text.to_lowercase().contains("openstack"), "{text}");
}

#[rstest]
#[case::no_image(&[], "image.repository")]
#[case::nothing(&["controller.enabled=false"], "nothing would be installed")]
#[case::labels_by_policy(&["controller.enabled=false", "policy.enabled=true", "selector={a=b}"], "need the controller")]
#[case::unknown_cloud(&["clouds={azure}", "image.repository=r/i"], "clouds")]
fn values_that_cannot_work_are_refused(#[case] values: &[&str], #[case] told: &str) {
    let release = values.iter().fold(release(), |release, value| release.set(value));
    let Some(error) = release.error() else { return };
    assert!(error.contains(told), "{error}");
}

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
    let version = |service: Service| service.metadata.resource_version;
    let before = version(services(&client).get("chosen").await.unwrap());
    owner_publishes(&client, "chosen", &ingress).await;
    assert_eq!(
        version(services(&client).get("chosen").await.unwrap()),
        before,
        "an equal write is no change"
    );
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
    own.replace("administrator", &token.status.unwrap().token)
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

/// On a real API server, with the chart's arguments and rights and nothing more.
#[tokio::test]
async fn the_controller_works_with_the_rights_of_the_chart_on_a_real_api_server() {
    let Some(cluster) = Cluster::start() else { return };
    let chart = repository("charts/ip-mode-overlay").display().to_string();
    let settings = "image.repository=registry.example.org/lb,cleanup.enabled=false";
    succeeds(&cluster.helm(&["install", "overlay", &chart, "--set", settings]));
    let client = cluster.client().await;
    let node = json!({"metadata": {"name": "n1"}, "status": {"nodeInfo": {
        "kubeletVersion": "v1.36.3", "operatingSystem": "linux", "architecture": "", "bootID": "", "containerRuntimeVersion": "",
        "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "osImage": "", "systemUUID": "",
    }}});
    Api::<Node>::all(client.clone())
        .create(&PostParams::default(), &from_value(node).unwrap())
        .await
        .unwrap();
    create(&client, "app", json!({DIGITAL_OCEAN: "true"}), None).await;
    owner_publishes(&client, "app", &json!([{"ip": "203.0.113.10"}])).await;

    let program = Program::new(&kubeconfig_of(&client, &cluster.kubeconfig(), "ip-mode-overlay").await);
    let looked = program.ends(&["check"]);
    assert_eq!(looked.status.code(), Some(1), "{}", text(&looked.stderr));
    assert!(
        text(&looked.stdout).contains("default/app  203.0.113.10 VIP  203.0.113.10 Proxy"),
        "{}",
        text(&looked.stdout)
    );
    let release = release().set("image.repository=registry.example.org/lb");
    let mut arguments = strings(&release.objects().unwrap().container()["args"]);
    arguments.extend(["--listen=127.0.0.1:0".to_owned(), "--lease-namespace=kube-system".to_owned()]);
    let mut command = program.command(&arguments);
    let log = program.folder.path().join("log");
    let output = std::fs::File::create(&log).unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(output).stdin(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
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
    assert!(!log.to_lowercase().replace("openstack_ccm", "").contains("openstack"), "{log}");
    let done = program.ends(&["cleanup"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout), "default/second: ipMode VIP again\n");
    until(&client, "second", "VIP").await;
}

#[test]
fn a_cluster_that_cannot_be_reached_is_told_from_one_that_is_not_green() {
    let program = Program::new(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
         contexts: [{name: c, context: {cluster: c, user: a}}]\nusers: [{name: a, user: {}}]\n",
    );
    let looked = program.ends(&["check"]);
    assert_eq!(looked.status.code(), Some(2), "{}", text(&looked.stderr));
    assert!(text(&looked.stderr).starts_with("ip-mode-overlay: "), "{}", text(&looked.stderr));
}

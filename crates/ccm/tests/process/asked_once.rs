//! Commands take from the leader what nobody types, and say for whom they wait.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::{Value, json};

use crate::process::Process;
use crate::stage::{Stage, until};

/// A Service that is served by a leader at work.
async fn led() -> (Stage, Process) {
    let stage = Stage::new().await;
    let process = Process::start(&stage, "ccm", &["--controllers=service,cloud-node"]);
    process.until_ready().await;
    until("the lease is held", || !stage.holder().is_empty()).await;
    stage.serve("web").await;
    (stage, process)
}

fn run(stage: &Stage, arguments: &[&str]) -> (i32, String) {
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let mut all = arguments.to_vec();
    all.push(&kubeconfig);
    let (status, output) = Process::run(stage, &all);
    (status.code().unwrap(), output)
}

const TAKEN: &str = "as the leader of the Lease kube-system/cloud-controller-manager: --cluster-name=c1";

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_the_cluster_is_that_of_the_leader_unless_it_is_typed() {
    let (stage, _process) = led().await;
    let conf = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let (code, output) = run(&stage, &["plan", &conf]);
    let first = format!("{TAKEN} --controllers=cloud-node,service\n");
    assert!(code == 0 && output.starts_with(&first), "{code}: {output}");
    let (_, output) = run(&stage, &["plan", &conf, "--cluster-name=c2", "--controllers=*"]);
    assert!(output.starts_with("! 1 load balancer is named kube_service_c1_"), "{output}");
    let (_, output) = run(&stage, &["doctor", &conf]);
    assert!(output.starts_with(TAKEN) && !output.contains("D003"), "{output}");
    let (_, output) = run(&stage, &["orphans", &conf, "--occm-names"]);
    assert!(output.starts_with(&format!("{TAKEN}\n")), "{output}");
    let (code, output) = run(&stage, &["orphans", &conf, "--delete", "x", "--yes"]);
    assert!(code == 1 && output.contains("deleting in the cluster c1\n"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_publishes_nothing_is_asked_nothing() {
    let stage = Stage::new().await;
    let conf = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let (code, output) = run(&stage, &["plan", &conf]);
    assert!(
        code == 2 && output.starts_with("Planned at "),
        "the nodes are not initialised yet: {code}: {output}"
    );
}

/// A certificate of a client, as PEM, and its key.
fn certificate() -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).unwrap();
    [made.cert.pem(), made.signing_key.serialize_pem()]
}

/// The pod of the leader, and the Secret that it mounts.
fn make_pod(stage: &Stage) {
    let conf = STANDARD.encode(stage.cloud_conf());
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"cloud.conf": conf},
        "metadata": {"name": "cloud-config", "namespace": "kube-system"}});
    let host = stage.holder().split('_').next().unwrap().to_owned();
    let container = json!({"name": "ccm", "args": ["--cloud-config=$(CLOUD_CONFIG)"],
        "env": [{"name": "CLOUD_CONFIG", "value": "/etc/config/cloud.conf"}],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": host, "namespace": "kube-system"},
        "spec": {"containers": [container], "volumes": [{"name": "config", "secret": {"secretName": "cloud-config"}}]}});
    for object in [secret, pod] {
        stage.kube.create(&object).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cloud_conf_may_be_that_of_the_leader_s_pod() {
    let (stage, _process) = led().await;
    let (code, output) = run(&stage, &["plan", "--from-cluster"]);
    assert!(code == 1 && output.contains("is that of the leader"), "{output}");
    make_pod(&stage);
    let (code, output) = run(&stage, &["plan", "--from-cluster"]);
    assert!(code == 0 && output.ends_with("No changes: 1 Service, 2 nodes checked.\n"), "{code}: {output}");
    let (_, output) = run(&stage, &["doctor", "--from-cluster", "-o", "json"]);
    let report: Value = serde_json::from_str(&output[output.find('{').unwrap()..]).unwrap();
    assert!(!report.to_string().contains("no --cloud-config"), "{report}");
    let lines = ["ca-file=/etc/config/ca.pem", "cert-file=/etc/config/c.pem", "key-file=/etc/config/c.key"];
    let conf = format!("{}\n[Global]\n{}\n", stage.cloud_conf(), lines.join("\n"));
    let [pem, key] = certificate().map(|text| STANDARD.encode(text));
    let put = |data: Value| {
        stage.kube.patch("secrets", "kube-system", "cloud-config", &json!({ "data": data })).unwrap();
    };
    put(json!({"cloud.conf": STANDARD.encode(conf), "ca.pem": pem, "c.pem": pem}));
    let (code, output) = run(&stage, &["plan", "--from-cluster"]);
    for said in ["/etc/config/c.key", "the pod does not have it from the Secret kube-system/cloud-config"] {
        assert!(code == 1 && output.contains(said), "{said}: {output}");
    }
    put(json!({ "c.key": key }));
    let (code, output) = run(&stage, &["plan", "--from-cluster"]);
    assert!(code == 0 && output.ends_with("No changes: 1 Service, 2 nodes checked.\n"), "{code}: {output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_typed_and_is_not_there_is_an_error_of_the_command_line() {
    let stage = Stage::new().await;
    for command in ["doctor", "plan", "orphans"] {
        let (code, output) = run(&stage, &[command, "--cloud-config=/nonexistent"]);
        assert!(code == 1 && output.contains("/nonexistent"), "{command}: {code}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_read_yaml_and_json_alike() {
    let (stage, _process) = led().await;
    let conf = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let rules = stage.file("rules").display().to_string();
    std::fs::write(&rules, "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n").unwrap();
    let all: [&[&str]; 7] = [
        &["status", &kubeconfig],
        &["orphans", &conf, &kubeconfig],
        &["hand-back", &conf, &kubeconfig],
        &["check-config", &conf, &kubeconfig],
        &["plan", &conf, &kubeconfig],
        &["adopt", &conf, &kubeconfig],
        &["doctor", "rules", "--address=192.0.2.1:80", &rules],
    ];
    for command in all {
        let read = |form: &str| {
            let (_, output) = Process::run(&stage, &[command, &["-o", form]].concat());
            let of_standard_error =
                |line: &str| line.starts_with("as the leader") || line.ends_with(" planned");
            let lines = output.lines().filter(|line| !of_standard_error(line));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        let json: Value = serde_json::from_str(&read("json")).unwrap();
        let yaml: Value = serde_saphyr::from_str(&read("yaml")).unwrap();
        assert_eq!(yaml["version"], json["version"], "{command:?}");
        assert_eq!(yaml.as_object().unwrap().len(), json.as_object().unwrap().len(), "{command:?}");
    }
    let (_, output) = Process::run(&stage, &["version", "-o", "json"]);
    let version: Value = serde_json::from_str(&output).unwrap();
    assert!(version["version"].as_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")), "{version}");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_were_not_tried_are_counted_and_listed_on_request() {
    let stage = Stage::new().await;
    let conf = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let (status, output) = Process::run(&stage, &["check-config", "--online", &conf]);
    let lines = |output: &str| output.lines().filter(|line| line.starts_with("not tried: ")).count();
    assert!(status.success() && lines(&output) == 1, "{output}");
    assert!(output.contains(" writes (--verbose lists them)\n"), "{output}");
    let (_, output) = Process::run(&stage, &["check-config", "--online", "--verbose", &conf]);
    assert!(lines(&output) > 5 && !output.contains("(--verbose lists them)"), "{output}");
}

const TIMEOUT: &str = "--request-timeout=3s";

/// Runs a command, and returns what it says. It has to end soon after the time-out of one request.
fn given_up(stage: &Stage, arguments: &[&str]) -> String {
    let begun = Instant::now();
    let (status, output) = Process::run(stage, arguments);
    let taken = begun.elapsed();
    assert!(!status.success() && taken < Duration::from_secs(15), "{arguments:?}, {taken:?}: {output}");
    output
}

/// The kernel takes connections, and nobody answers.
fn deaf() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[rstest]
#[case(&["status"])]
#[case(&["doctor", "--no-cloud"])]
#[case(&["plan", "CONF"])]
#[case(&["adopt", "CONF"])]
#[case(&["orphans", "CONF"])]
#[case(&["hand-back", "CONF"])]
#[case(&["check-config", "CONF", "--services"])]
#[case(&["overlay", "check"])]
#[case(&["canary", "--once", "--image=registry.example.org/openstack-ccm"])]
#[case(&["doctor", "--no-cloud", "--live", "--yes", "--image=registry.example.org/openstack-ccm"])]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_deaf_api_server_is_told_so(#[case] command: &[&str]) {
    let stage = Stage::new().await;
    let (_listener, address) = deaf();
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}]});
    std::fs::write(stage.file("deaf"), kubeconfig.to_string()).unwrap();
    let kubeconfig = format!("--kubeconfig={}", stage.file("deaf").display());
    let conf = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let command: Vec<&str> = command.iter().map(|word| if *word == "CONF" { &conf } else { *word }).collect();
    let output = given_up(&stage, &[&command[..], &[&kubeconfig, TIMEOUT]].concat());
    assert!(output.contains(&format!("waiting for the API server at http://{address}\n")), "{output}");
}

#[rstest]
#[case(&["doctor"])]
#[case(&["plan"])]
#[case(&["adopt"])]
#[case(&["orphans"])]
#[case(&["hand-back"])]
#[case(&["check-config", "--online"])]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_deaf_keystone_is_told_so(#[case] command: &[&str]) {
    let stage = Stage::new().await;
    let (_listener, address) = deaf();
    let conf = stage.cloud_conf();
    let url = conf.lines().find(|line| line.starts_with("auth-url")).unwrap();
    stage.set_cloud_conf(&conf.replace(url, &format!("auth-url=http://{address}/v3")));
    stage.create_service("web");
    let conf = format!("--cloud-config={}", stage.file("cloud.conf").display());
    let kubeconfig = format!("--kubeconfig={}", stage.file("kubeconfig").display());
    let output = given_up(&stage, &[command, &[&conf, &kubeconfig, TIMEOUT]].concat());
    assert!(output.contains(&format!("waiting for Keystone at http://{address}/v3\n")), "{output}");
}

/// Which flags a diagnosis needs is seen first.
#[tokio::test(flavor = "multi_thread")]
async fn the_help_of_a_diagnosis_begins_with_what_it_needs() {
    let stage = Stage::new().await;
    for command in ["doctor", "plan"] {
        let (_, help) = Process::run(&stage, &[command, "--help"]);
        let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text} in {help}"));
        let rare = place("Rarely needed");
        assert!(place("--cloud-config") < rare && place("--kubeconfig") < rare, "{help}");
        for flag in
            ["--cluster-cidr", "--feature-gates", "--canary-addresses", "--leader-elect-resource-name"]
        {
            assert!(place(flag) > rare, "{flag} in {help}");
        }
    }
}

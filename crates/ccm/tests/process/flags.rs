//! Flags of the framework: defaults, refusals, names of controllers.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use clap::{CommandFactory as _, Parser as _};
use openstack_ccm::command_line::CommandLine;
use openstack_ccm_manager::args::accepted::FLAGS;
use openstack_ccm_manager::args::controllers::{ControllerName, ControllerSelection};
use rstest::rstest;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;

use crate::process::Process;
use crate::stage::Stage;

/// Flags of the framework with their defaults; lists are joined by commas. Flags without a default are left out where
/// they have none here either.
const DEFAULTS: &[(&str, &str)] = &[
    ("cluster-name", "kubernetes"),
    ("cluster-cidr", ""),
    ("configure-cloud-routes", "true"),
    ("route-reconciliation-period", "10s"),
    ("node-monitor-period", "5s"),
    ("node-status-update-frequency", "5m"),
    ("concurrent-node-syncs", "1"),
    ("concurrent-node-status-updates", "0"),
    ("concurrent-node-lifecycle-syncs", "1"),
    ("controllers", "*"),
    ("kube-api-qps", "20"),
    ("kube-api-burst", "30"),
    ("leader-elect", "true"),
    ("leader-elect-lease-duration", "15s"),
    ("leader-elect-renew-deadline", "10s"),
    ("leader-elect-retry-period", "2s"),
    ("leader-elect-resource-lock", "leases"),
    ("leader-elect-resource-name", "cloud-controller-manager"),
    ("leader-elect-resource-namespace", "kube-system"),
    ("enable-leader-migration", "false"),
    ("bind-address", "0.0.0.0"),
    ("secure-port", "10258"),
    ("permit-port-sharing", "false"),
    ("authentication-token-webhook-cache-ttl", "10s"),
    ("authorization-always-allow-paths", "/healthz,/readyz,/livez"),
    ("authorization-webhook-cache-authorized-ttl", "10s"),
    ("authorization-webhook-cache-unauthorized-ttl", "10s"),
    ("logging-format", "text"),
    ("v", "0"),
];

/// Flags of the framework that have no default, or another one here for a reason that the reference gives.
const OTHERS: &[&str] = &[
    "authentication-kubeconfig",
    "authorization-kubeconfig",
    "cert-dir",
    "cloud-config",
    "cloud-provider",
    "concurrent-service-syncs",
    "feature-gates",
    "kubeconfig",
    "leader-migration-config",
    "master",
    "tls-cert-file",
    "tls-cipher-suites",
    "tls-min-version",
    "tls-private-key-file",
];

/// Without flags the framework's defaults hold, and every flag of the framework is accepted.
///
/// Framework: M1, better: 16 Services are worked on at once, because a load balancer takes a minute. Callers of the endpoints are
/// known by bearer tokens only.
/// Switch: `--concurrent-service-syncs=1`
#[test]
fn framework_m1_defaults_are_those_of_the_framework() {
    let command = CommandLine::command();
    let defaults: BTreeMap<&str, String> = command
        .get_arguments()
        .filter_map(|argument| {
            let values = argument.get_default_values().iter().map(|value| value.to_string_lossy());
            Some((argument.get_long()?, values.collect::<Vec<_>>().join(",")))
        })
        .collect();
    for (flag, default) in DEFAULTS {
        assert_eq!(defaults.get(flag).map(String::as_str), Some(*default), "--{flag}");
    }
    for flag in OTHERS.iter().copied().chain(FLAGS.iter().map(|flag| flag.name)) {
        assert!(defaults.contains_key(flag), "--{flag}");
    }
    assert!(CommandLine::try_parse_from(["openstack-ccm", "--cloud-provider=openstack"]).is_ok());
}

/// A start is refused with a message that names the flag.
///
/// Framework: M2, same.
/// Framework: M4, same.
/// Framework: M6, same.
/// Framework: M7, same.
/// Contract: X2, same.
#[rstest]
#[case::m2(&["--cloud-config=x", "--cloud-provider="], "--cloud-provider")]
#[case::m4(&["--cloud-config=x", "--controllers=foo"], "\"foo\"")]
#[case::m6(&["--cloud-config=x", "--webhook-secure-port=10258"], "--webhook-secure-port")]
#[case::m7_lock(&["--cloud-config=x", "--leader-elect-resource-lock=endpoints"], "leader-elect-resource-lock")]
#[case::m7_lease(&["--cloud-config=x", "--leader-elect-lease-duration=10s"], "--leader-elect-renew-deadline")]
#[case::x2(&["--cloud-provider=openstack"], "--cloud-config is missing")]
#[case::cipher_suite(&["--cloud-config=x", "--tls-cipher-suites=NONE"], "--tls-cipher-suites")]
#[tokio::test(flavor = "multi_thread")]
async fn framework_m2_m4_m6_m7_x2_a_start_that_cannot_work_is_refused(
    #[case] arguments: &[&str],
    #[case] named: &str,
) {
    let stage = Stage::new().await;
    let (status, output) = Process::run(&stage, arguments);
    assert!(!status.success(), "{output}");
    assert!(output.contains(named), "{output}");
    assert!(stage.kube.requests().is_empty() && stage.cloud.log().calls().is_empty());
}

/// Arguments that OCCM and the other components of a platform take start this program too.
#[rstest]
#[case::gates_of_all_components("--feature-gates=APIServerIdentity=true,WatchListClient=false")]
#[case::a_gate_that_nobody_knows_yet("--feature-gates=OfTomorrow=true")]
#[case::gates_with_their_component("--feature-gates=kube:APIServerIdentity=true")]
#[case::webhooks_curves("--webhook-tls-curve-preferences=X25519")]
#[case::webhooks_certificates("--webhook-tls-sni-cert-key=a.crt,a.key")]
fn what_a_platform_gives_to_every_component_is_accepted(#[case] argument: &str) {
    let parsed = CommandLine::try_parse_from(["openstack-ccm", argument]);
    assert!(parsed.is_ok(), "{}", parsed.unwrap_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_of_other_components_are_one_warning_and_services_are_served() {
    let stage = Stage::new().await;
    let gates =
        ["--feature-gates=OfTomorrow=true,APIServerIdentity=true", "--feature-gates=OfTomorrow=false"];
    let process = Process::start(&stage, "ccm", &gates);
    stage.serve("web").await;
    let output = process.output();
    let said: Vec<&str> = output.lines().filter(|line| line.contains("--feature-gates")).collect();
    assert_eq!(said.len(), 1, "{output}");
    assert!(said[0].contains("OfTomorrow, APIServerIdentity") && said[0].contains("no effect"), "{said:?}");
}

/// Flags that the stage gives.
const OF_THE_STAGE: [&str; 11] = [
    "authorization-always-allow-paths",
    "bind-address",
    "cloud-config",
    "cluster-name",
    "kubeconfig",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-retry-period",
    "secure-port",
    "tls-cert-file",
    "tls-private-key-file",
];

/// A value for a flag of the framework; none where the stage gives it.
fn given(stage: &Stage, flag: &str, form: &str) -> Option<String> {
    let file = |name: &str| stage.file(name).display().to_string();
    let value = match (flag, form) {
        _ if OF_THE_STAGE.contains(&flag) => return None,
        ("authentication-kubeconfig" | "authorization-kubeconfig", _) => file("kubeconfig"),
        ("client-ca-file" | "requestheader-client-ca-file", _) => file("tls.crt"),
        ("tls-sni-cert-key", _) => format!("{},{}", file("tls.crt"), file("tls.key")),
        ("cloud-provider", _) => "openstack".to_owned(),
        ("cluster-cidr", _) => "10.244.0.0/16".to_owned(),
        ("controllers", _) => "*".to_owned(),
        ("leader-elect-resource-lock", _) => "leases".to_owned(),
        ("leader-elect-resource-namespace", _) => "kube-system".to_owned(),
        ("logging-format", _) => "text".to_owned(),
        ("master", _) => String::new(),
        ("tls-cipher-suites" | "webhook-tls-cipher-suites", _) => "TLS_AES_128_GCM_SHA256".to_owned(),
        ("tls-min-version" | "webhook-tls-min-version", _) => "VersionTLS12".to_owned(),
        ("vmodule", _) => "a=1".to_owned(),
        // It needs the API of tokens.
        ("use-service-account-credentials", _) => "false".to_owned(),
        (_, "bool") => "true".to_owned(),
        (_, "duration") => "30s".to_owned(),
        (_, "ip") => "127.0.0.1".to_owned(),
        (_, "int32Slice") => "29".to_owned(),
        (_, "int" | "int32" | "float32") => "4".to_owned(),
        ("v" | "log-json-info-buffer-size" | "log-text-info-buffer-size", _) => "4".to_owned(),
        _ => "word".to_owned(),
    };
    Some(value)
}

/// All flags of the newest framework together.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_works_with_every_flag_of_the_framework() {
    let stage = Stage::new().await;
    let framework: Value = serde_json::from_str(include_str!("../occm/framework.json")).unwrap();
    let flags = framework["flags"].as_object().unwrap();
    let form = |flag: &Value| flag["is"].as_str().unwrap().to_owned();
    let arguments: Vec<String> = flags
        .iter()
        .filter_map(|(flag, entry)| Some(format!("--{flag}={}", given(&stage, flag, &form(entry))?)))
        .collect();
    assert!(arguments.len() > 60 && flags.contains_key("concurrent-node-lifecycle-syncs"), "{arguments:?}");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let _process = Process::start(&stage, "ccm", &arguments);
    stage.create_service("web");
    stage.until_published("web").await;
}

/// The first entry that names a controller decides; the list is kept with canonical names and their minus.
///
/// Framework: M3, same.
#[rstest]
#[case("-service,*")]
#[case("-service-lb-controller,*")]
fn framework_m3_a_controller_can_be_switched_off(#[case] list: &str) {
    let entries: Vec<String> = list.split(',').map(str::to_owned).collect();
    let selection = ControllerSelection::parse(&entries).unwrap();
    assert_eq!(selection.entries(), ["-service-lb-controller", "*"]);
    for controller in ControllerName::ALL {
        assert_eq!(selection.runs(controller), controller != ControllerName::ServiceLb, "{controller:?}");
    }
}

/// Numbers of workers are checked at the start.
///
/// Framework: M5, same.
#[rstest]
#[case("--concurrent-node-syncs=0", None)]
#[case("--concurrent-node-syncs=-5", None)]
#[case("--concurrent-node-lifecycle-syncs=0", None)]
#[case("--concurrent-node-status-updates=-1", None)]
#[case("--concurrent-node-status-updates=0", Some(5))]
#[case("--concurrent-node-status-updates=7", Some(7))]
fn framework_m5_workers_are_counted_from_one(#[case] flag: &str, #[case] updates: Option<u16>) {
    let parsed = CommandLine::try_parse_from(["openstack-ccm", "--concurrent-node-syncs=5", flag]);
    assert_eq!(parsed.ok().map(|line| line.run.node.status_updates()), updates);
}

/// Every controller has a canonical name, and its alias leads to it.
///
/// Framework: M8, same.
#[test]
fn framework_m8_names_and_aliases_lead_to_controllers() {
    for controller in ControllerName::ALL {
        assert!(controller.canonical().ends_with("-controller"));
        for name in [controller.canonical(), controller.alias()] {
            assert!(ControllerSelection::parse(&[name.to_owned()]).unwrap().runs(controller), "{name}");
        }
    }
}

/// Texts of `--user-agent` come first in the header, the last flag before the others; then the program.
///
/// Contract: X9, better: the program names itself, so that an operator of the cloud can see who calls.
/// Switch: `--user-agent=openstack-cloud-controller-manager/v1.36.0`
#[tokio::test(flavor = "multi_thread")]
async fn x9_the_user_agent_names_the_flags_and_the_program() {
    let keystone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let stage = Stage::new().await;
    let conf = stage.cloud_conf();
    let url = conf.lines().find_map(|line| line.strip_prefix("auth-url=")).unwrap().trim_matches('"');
    stage.set_cloud_conf(&conf.replace(url, &format!("http://{}", keystone.local_addr().unwrap())));
    let _process = Process::start(&stage, "ccm", &["--user-agent=a/1", "--user-agent=b/2"]);
    let (stream, _) = keystone.accept().await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let agent = loop {
        let line = lines.next_line().await.unwrap().expect("the request has no User-Agent");
        if let Some(agent) = line.to_ascii_lowercase().strip_prefix("user-agent: ") {
            break agent.to_owned();
        }
    };
    assert!(agent.starts_with("b/2 a/1 openstack-ccm/"), "{agent}");
}

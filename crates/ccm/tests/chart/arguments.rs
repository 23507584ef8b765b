//! Every argument that the chart renders is one that the program takes.

use clap::{CommandFactory as _, Parser as _};
use openstack_ccm::command_line::CommandLine;
use openstack_ccm_provider_openstack::cloud::ENTRY;
use rstest::rstest;

use crate::helm::{Objects, Release};

/// The command line as the kubelet makes it: variables of the container take the place of their names.
fn command_line(objects: &Objects) -> Vec<String> {
    let mut arguments = objects.arguments();
    for variable in objects.container()["env"].as_array().unwrap() {
        let name = format!("$({})", variable["name"].as_str().unwrap());
        for argument in &mut arguments {
            *argument = argument.replace(&name, variable["value"].as_str().unwrap());
        }
    }
    arguments
}

/// What the program understands by a flag.
fn understood(objects: &Objects, flag: &str) -> Vec<String> {
    let matches = CommandLine::command()
        .try_get_matches_from(command_line(objects))
        .unwrap_or_else(|error| panic!("{error}"));
    let values = matches.get_raw(&flag.replace('-', "_")).unwrap_or_else(|| panic!("there is no --{flag}"));
    values.map(|value| value.to_string_lossy().into_owned()).collect()
}

#[rstest]
#[case::default(Release::new())]
#[case::occm_defaults(Release::new().values("occm-defaults.yaml"))]
#[case::occm_documented(Release::new().values("occm-documented.yaml"))]
#[case::everything(Release::new().values("everything.yaml"))]
fn the_program_takes_every_argument_that_the_chart_renders(#[case] release: Release) {
    let Some(objects) = release.objects() else { return };
    let parsed =
        CommandLine::try_parse_from(command_line(&objects)).unwrap_or_else(|error| panic!("{error}"));
    if let Err(errors) = parsed.run.validate(&[ENTRY]) {
        panic!("{errors:?}");
    }
}

#[rstest]
#[case("everything.yaml", "secure-port", &["20258"])]
#[case("everything.yaml", "feature-gates", &["LoadBalancerIPMode=true"])]
#[case("everything.yaml", "concurrent-service-syncs", &["20"])]
#[case("everything.yaml", "controllers", &["*", "-route"])]
#[case("occm-documented.yaml", "cluster-name", &["production"])]
#[case("occm-documented.yaml", "leader-elect-resource-name", &["occm-lease"])]
#[case("occm-documented.yaml", "cloud-config", &["/etc/config/cloud.conf"])]
fn values_arrive_in_the_program(#[case] values: &'static str, #[case] flag: &str, #[case] expected: &[&str]) {
    let Some(objects) = Release::new().values(values).objects() else { return };
    assert_eq!(understood(&objects, flag), expected);
}

#[rstest]
#[case::host_network(Release::new(), "127.0.0.1", Some("127.0.0.1"))]
#[case::scraped(Release::new().set("serviceMonitor.enabled=true"), "0.0.0.0", None)]
#[case::pod_network(Release::new().set("hostNetwork=false"), "0.0.0.0", None)]
fn probes_ask_where_the_endpoints_listen(
    #[case] release: Release,
    #[case] listens: &str,
    #[case] asked: Option<&str>,
) {
    let Some(objects) = release.objects() else { return };
    assert_eq!(understood(&objects, "bind-address"), [listens]);
    let port = understood(&objects, "secure-port");
    for probe in ["livenessProbe", "readinessProbe"] {
        let request = &objects.container()[probe]["httpGet"];
        assert_eq!(request["host"].as_str(), asked);
        assert_eq!([request["port"].to_string()].as_slice(), port);
        assert_eq!(request["scheme"], "HTTPS");
    }
}

/// One list of gates for all components of a platform is a value of the chart too.
#[rstest]
#[case("APIServerIdentity=true\\,WatchListClient=False")]
#[case("kube:WatchListClient=t\\, OfTomorrow=0\\,")]
#[case("LoadBalancerIPMode=true\\,AllBeta=true")]
#[case("LoadBalancerIP=true\\,LoadBalancerIPModeMore=true")]
fn gates_of_all_components_render_and_start_the_program(#[case] gates: &str) {
    let Some(objects) = Release::new().set(&format!("featureGates={gates}")).objects() else { return };
    assert_eq!(understood(&objects, "feature-gates"), [gates.replace('\\', "")]);
}

/// A misspelling of the program's own gate is refused when the chart is rendered, before a pod ends in a loop.
#[rstest]
#[case("LoadBalancerIpMode=true")]
#[case("AllBeta=true\\,load-balancer-ip-mode=false")]
#[case("LoadBalancerIPModes=true")]
#[case("LoadBalancerIPMod=true")]
#[case("LoadBalancerIPNode=true")]
#[case("LoadBlaancerIPMode=true")]
#[case("LoadBalancerIPMode=maybe")]
#[case("LoadBalancerIPMode")]
fn a_misspelt_gate_is_refused_by_the_chart_as_by_the_program(#[case] gates: &str) {
    let Some(error) = Release::new().set(&format!("featureGates={gates}")).error() else { return };
    assert!(error.contains("featureGates"), "{error}");
    let argument = format!("--feature-gates={}", gates.replace('\\', ""));
    assert!(CommandLine::try_parse_from(["openstack-ccm", &argument]).is_err(), "{argument}");
}

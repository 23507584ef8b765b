//! What is rendered, word by word, so that a change is seen.

use k8s_openapi::api::{apps::v1 as apps, core::v1 as core, policy::v1 as policy, rbac::v1 as rbac};
use rstest::rstest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::helm::{Release, repository, run, text};

#[rstest]
#[case::default("default", Release::new())]
#[case::occm_documented("occm-documented", Release::new().values("occm-documented.yaml"))]
#[case::everything("everything", Release::new().values("everything.yaml"))]
fn the_chart_renders_the_same_as_before(#[case] name: &str, #[case] release: Release) {
    let Some(rendered) = release.text() else { return };
    // The dashboard is a file of its own, and not worth reading twice.
    let documents = rendered.split("---\n").filter(|document| !document.contains("kind: ConfigMap"));
    let rendered: Vec<&str> = documents.collect();
    insta::assert_snapshot!(name, rendered.join("---\n"));
}

#[test]
fn helm_finds_nothing_to_complain_about() {
    let chart = repository("charts/openstack-ccm");
    let Some(output) = run(&["lint", "--strict", &chart.to_string_lossy()]) else { return };
    assert!(output.status.success(), "{}", text(&output.stdout));
    assert!(!text(&output.stdout).contains("[WARNING]"), "{}", text(&output.stdout));
}

#[rstest]
#[case::unknown_key("replica=3", "replica")]
#[case::unknown_section("cloudConfig.loadbalancer.subnet-id=a", "loadbalancer")]
#[case::unknown_controller("enabledControllers={nodes}", "enabledControllers")]
#[case::word_for_number("logVerbosityLevel=high", "logVerbosityLevel")]
#[case::unknown_kind("kind=StatefulSet", "kind")]
#[case::port("securePort=0", "securePort")]
#[case::no_cluster_name("cluster.name=", "name")]
fn a_value_that_cannot_be_meant_is_refused_by_name(#[case] setting: &str, #[case] named: &str) {
    let Some(rendered) = Release::new().set(setting).try_text() else { return };
    let error = rendered.expect_err("it was accepted");
    assert!(error.contains(named), "{error}");
}

#[test]
fn the_pods_have_no_rights_on_their_node() {
    for release in [Release::new(), Release::new().values("occm-defaults.yaml")] {
        let Some(objects) = release.objects() else { return };
        let pod = &objects.pod()["spec"]["securityContext"];
        assert_eq!(pod["runAsNonRoot"], true);
        assert_eq!(pod["runAsUser"], 1001);
        assert_eq!(pod["seccompProfile"]["type"], "RuntimeDefault");
        let container = &objects.container()["securityContext"];
        assert_eq!(container["readOnlyRootFilesystem"], true);
        assert_eq!(container["allowPrivilegeEscalation"], false);
        assert_eq!(container["capabilities"]["drop"][0], "ALL");
    }
}

#[test]
fn a_budget_exists_only_where_it_can_help() {
    let budget = |settings: &[&str]| -> Option<bool> {
        let release = settings.iter().fold(Release::new(), |release, setting| release.set(setting));
        Some(release.objects()?.all("PodDisruptionBudget").count() > 0)
    };
    let Some(of_daemon_set) = budget(&[]) else { return };
    assert!(!of_daemon_set, "draining leaves the pods of a DaemonSet alone");
    assert_eq!(budget(&["kind=Deployment"]), Some(true));
    assert_eq!(budget(&["kind=Deployment", "replicas=1"]), Some(false), "it would stop every drain");
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let chart: Value = serde_saphyr::from_str(&crate::helm::read("charts/openstack-ccm/Chart.yaml")).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

/// Reads an object as its type and writes it again: a field that Kubernetes does not know is lost on the way.
fn as_kubernetes_reads<T: DeserializeOwned + Serialize>(object: &Value) -> Value {
    let typed: T =
        serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
    serde_json::to_value(typed).unwrap()
}

#[rstest]
#[case::default(Release::new())]
#[case::occm_defaults(Release::new().values("occm-defaults.yaml"))]
#[case::occm_documented(Release::new().values("occm-documented.yaml"))]
#[case::everything(Release::new().values("everything.yaml"))]
fn kubernetes_knows_every_field(#[case] release: Release) {
    let Some(objects) = release.objects() else { return };
    for object in &objects.0 {
        let read = match object["kind"].as_str().unwrap() {
            "ConfigMap" => as_kubernetes_reads::<core::ConfigMap>(object),
            "Secret" => as_kubernetes_reads::<core::Secret>(object),
            "Service" => as_kubernetes_reads::<core::Service>(object),
            "ServiceAccount" => as_kubernetes_reads::<core::ServiceAccount>(object),
            "DaemonSet" => as_kubernetes_reads::<apps::DaemonSet>(object),
            "Deployment" => as_kubernetes_reads::<apps::Deployment>(object),
            "PodDisruptionBudget" => as_kubernetes_reads::<policy::PodDisruptionBudget>(object),
            "ClusterRole" => as_kubernetes_reads::<rbac::ClusterRole>(object),
            "ClusterRoleBinding" => as_kubernetes_reads::<rbac::ClusterRoleBinding>(object),
            "Role" => as_kubernetes_reads::<rbac::Role>(object),
            "RoleBinding" => as_kubernetes_reads::<rbac::RoleBinding>(object),
            // Types of the Prometheus operator, which k8s-openapi does not have.
            "ServiceMonitor" | "PrometheusRule" => continue,
            kind => panic!("what is a {kind}?"),
        };
        assert_eq!(*object, read);
    }
}

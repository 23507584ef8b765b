//! What is rendered, word by word, so that a change is seen.

use rstest::rstest;
use serde_json::Value;

use crate::helm::{IMAGE, Release, repository, run, text};

#[rstest]
#[case::default("default", Release::new())]
#[case::occm_documented("occm-documented", Release::new().values("occm-documented.yaml"))]
#[case::everything("everything", Release::new().values("everything.yaml"))]
#[case::canary("canary", Release::new().set("canary.enabled=true"))]
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
    let Some(output) = run(&["lint", "--strict", &chart.to_string_lossy(), "--set", IMAGE]) else { return };
    assert!(output.status.success(), "{}", text(&output.stdout));
    assert!(!text(&output.stdout).contains("[WARNING]"), "{}", text(&output.stdout));
}

#[rstest]
#[case::unknown_key("replica=3", "replica")]
#[case::unknown_section("cloudConfig.loadbalancer.subnet-id=a", "loadbalancer")]
#[case::unknown_controller("enabledControllers={nodes}", "enabledControllers")]
#[case::word_for_number("logVerbosityLevel=high", "logVerbosityLevel")]
#[case::no_argument("controllerExtraArgs=word", "controllerExtraArgs")]
#[case::own_label("podLabels.app=mine", "podLabels/app")]
#[case::update_of_another_kind("updateStrategy.type=Recreate", "updateStrategy/type")]
#[case::unknown_kind("kind=StatefulSet", "kind")]
#[case::port("securePort=0", "securePort")]
#[case::no_cluster_name("cluster.name=", "name")]
#[case::canary_without_a_pair("canary.addresses={192.0.2.1,192.0.2.2,2001:db8::1}", "addresses")]
#[case::canary_misspelt("canary.enable=true", "enable")]
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
fn the_chart_has_the_version_of_the_program() {
    let chart: Value = serde_saphyr::from_str(&crate::helm::read("charts/openstack-ccm/Chart.yaml")).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

#[rstest]
#[case::default(Release::new())]
#[case::occm_defaults(Release::new().values("occm-defaults.yaml"))]
#[case::occm_documented(Release::new().values("occm-documented.yaml"))]
#[case::everything(Release::new().values("everything.yaml"))]
#[case::canary(Release::new().set("canary.enabled=true"))]
fn kubernetes_knows_every_field(#[case] release: Release) {
    let Some(objects) = release.objects() else { return };
    objects
        .0
        .iter()
        .for_each(|object| crate::kubernetes::knows(object).unwrap_or_else(|error| panic!("{error}")));
}

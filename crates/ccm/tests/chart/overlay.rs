//! The chart of the overlay: the same policy as the program prints, and arguments that the program takes.

use clap::Parser as _;
use openstack_ccm::overlay::args::{OverlayCommand, OverlayCommandLine};
use openstack_ccm_overlay::policy::{ApiVersion, yaml};
use openstack_ccm_overlay::rules::{Rules, clouds};
use rstest::rstest;
use serde_json::json;

use crate::helm::{Objects, Release, repository, strings};

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

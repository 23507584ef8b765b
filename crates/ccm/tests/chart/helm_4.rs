//! Helm 4, which has the server apply, beside Helm 3, with which the other tests work.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use kube::Api;
use rstest::rstest;

use crate::cluster::Cluster;
use crate::helm::{CLOUD, IMAGE, Objects, Release, helm_4, repository};
use crate::upgrade::{image_of, succeeds};

#[rstest]
#[case::default(Release::new())]
#[case::occm_defaults(Release::new().values("occm-defaults.yaml"))]
#[case::occm_documented(Release::new().values("occm-documented.yaml"))]
#[case::everything(Release::new().values("everything.yaml"))]
#[case::canary(Release::new().set("canary.enabled=true"))]
#[case::trial(Release::new().set("trial.loadBalancerClass=openstack-ccm.io/trial"))]
#[case::overlay(Release::new().chart(&repository("charts/ip-mode-overlay")))]
fn both_render_the_same(#[case] release: Release) {
    let (Some(helm_4), Some(expected)) = (helm_4(), release.objects()) else { return };
    let rendered = release.text_by(helm_4).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Objects::parse(&rendered).0, expected.0);
}

#[rstest]
#[case::no_image(Release::without_image(), "image.repository is not set")]
#[case::unknown_key(Release::new().set("replica=3"), "replica")]
#[case::word_for_number(Release::new().set("logVerbosityLevel=high"), "logVerbosityLevel")]
fn both_refuse_the_same(#[case] release: Release, #[case] named: &str) {
    let Some(helm_4) = helm_4() else { return };
    let error = release.text_by(helm_4).expect_err("it was accepted");
    assert!(error.contains(named), "{error}");
}

/// A list with a key twice, which Helm 3 sends and the server merges, would be refused here.
#[tokio::test]
async fn helm_4_takes_a_release_of_helm_3_over_goes_back_and_begins_anew() {
    let (Some(cluster), Some(helm_4)) = (Cluster::start(), helm_4()) else { return };
    cluster.has_occm();
    let client = cluster.client().await;
    let workloads: Api<DaemonSet> = Api::namespaced(client.clone(), "kube-system");
    let name = "openstack-cloud-controller-manager";
    let before = workloads.get(name).await.unwrap();
    let chart = repository("charts/openstack-ccm").display().to_string();
    let typed = |arguments: &[&str]| succeeds(&cluster.by(helm_4, arguments));

    typed(&["upgrade", "occm", &chart, "--reset-then-reuse-values", "--set", IMAGE, "--set", "image.tag="]);
    let upgraded = workloads.get(name).await.unwrap();
    assert_eq!(upgraded.metadata.uid, before.metadata.uid);
    assert_eq!(
        image_of(&upgraded),
        concat!("registry.example.org/openstack-ccm:", env!("CARGO_PKG_VERSION"))
    );
    typed(&["rollback", "occm"]);
    assert_eq!(image_of(&workloads.get(name).await.unwrap()), image_of(&before));
    typed(&["uninstall", "occm"]);
    assert!(workloads.get_opt(name).await.unwrap().is_none());

    // The Prometheus operator's types are not there, and neither is the namespace of the dashboard.
    let everything = repository("crates/ccm/tests/chart/values/everything.yaml").display().to_string();
    let absent = "serviceMonitor.enabled=false,podMonitor.enabled=false,prometheusRule.enabled=false,grafanaDashboard.namespace=";
    let first = ["upgrade", "--install", "ccm", &chart, "--values", &everything];
    typed(&[&first[..], &["--set", absent, "--set", IMAGE]].concat());
    typed(&["uninstall", "ccm"]);
    typed(&["install", "ccm", &chart, "--set", IMAGE, "--set-json", CLOUD, "--set", "canary.enabled=true"]);
    typed(&["upgrade", "ccm", &chart, "--reuse-values", "--set", "logVerbosityLevel=4"]);

    let overlay = repository("charts/ip-mode-overlay").display().to_string();
    typed(&["install", "overlay", &overlay, "--set", IMAGE]);
    let deployments: Api<Deployment> = Api::namespaced(client, "kube-system");
    assert!(deployments.get_opt("ip-mode-overlay").await.unwrap().is_some());
}

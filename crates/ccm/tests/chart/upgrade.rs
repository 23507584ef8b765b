//! `helm upgrade` from the chart of the Go openstack-cloud-controller-manager.

use std::process::Output;

use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;

use crate::cluster::Cluster;
use crate::helm::{IMAGE, Release, copy_of_chart, read, repository, text};

#[test]
fn values_of_another_chart_are_refused_with_the_way_out() {
    // What --reuse-values does: the defaults of the chart before take the place of ours.
    let chart = copy_of_chart();
    let before = "crates/ccm/tests/chart/values/occm-defaults.yaml";
    std::fs::write(chart.path().join("values.yaml"), read(before)).unwrap();
    let Some(error) = Release::new().chart(chart.path()).error() else { return };
    assert!(error.contains("--reset-then-reuse-values"), "{error}");
}

/// The upgrade itself, on a real API server.
#[tokio::test]
async fn a_release_of_occm_is_upgraded_in_place_and_rolled_back() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.has_occm();
    let chart = repository("charts/openstack-ccm").display().to_string();
    let kept = cluster.helm(&["upgrade", "occm", &chart, "--reset-then-reuse-values"]);
    assert!(text(&kept.stderr).contains("the image of another program"), "{}", text(&kept.stderr));
    let workloads: Api<DaemonSet> = Api::namespaced(cluster.client().await, "kube-system");
    let before = workloads.get("openstack-cloud-controller-manager").await.unwrap();

    let image = "image.repository=registry.example.org/openstack-ccm,image.tag=0.2.0,cluster.name=prod";
    succeeds(&cluster.helm(&["upgrade", "occm", &chart, "--reset-then-reuse-values", "--set", image]));
    let upgraded = workloads.get("openstack-cloud-controller-manager").await.unwrap();
    assert_eq!(
        upgraded.metadata.uid, before.metadata.uid,
        "the same object: its pods are replaced one by one"
    );
    assert_eq!(image_of(&upgraded), "registry.example.org/openstack-ccm:0.2.0");

    succeeds(&cluster.helm(&["rollback", "occm"]));
    let back = workloads.get("openstack-cloud-controller-manager").await.unwrap();
    assert_eq!(back.metadata.uid, before.metadata.uid);
    assert_eq!(image_of(&back), image_of(&before));

    // The other kind of workload, and what is switched off by default.
    let everything = repository("crates/ccm/tests/chart/values/everything.yaml").display().to_string();
    // The Prometheus operator's types are not there, and neither is the namespace of the dashboard.
    let absent = "serviceMonitor.enabled=false,podMonitor.enabled=false,prometheusRule.enabled=false,grafanaDashboard.namespace=";
    succeeds(&cluster.helm(&[
        "upgrade",
        "occm",
        &chart,
        "--values",
        &everything,
        "--set",
        absent,
        "--set",
        IMAGE,
    ]));
    assert!(workloads.get_opt("openstack-cloud-controller-manager").await.unwrap().is_none());
}

pub(crate) fn image_of(workload: &DaemonSet) -> String {
    let pod = workload.spec.template.spec.as_ref().unwrap();
    pod.containers[0].image.clone().unwrap()
}

pub(crate) fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", text(&output.stderr));
}

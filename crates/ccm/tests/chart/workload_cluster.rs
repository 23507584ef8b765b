//! A controller in a management cluster, which serves another one: a Secret has the kubeconfig of that.

use std::collections::BTreeSet;

use rstest::rstest;
use serde_json::json;

use crate::helm::{Objects, Release};

const SECRET: &str = "workloadCluster.kubeconfigSecret=shop-kubeconfig";

fn serving() -> Release {
    Release::new().set(SECRET).set("kind=Deployment").set("hostNetwork=false").set("nodeSelector=null")
}

/// Pods of a management cluster reach the workload cluster by the kubeconfig of a Secret, such as Cluster API keeps it, and have no rights where
/// they run.
///
/// Contract: O12, better: OCCM's chart has no value for it.
#[test]
fn the_kubeconfig_of_a_secret_leads_to_the_cluster_that_is_served() {
    let Some(objects) = serving().objects() else { return };
    assert!(objects.arguments().contains(&"--kubeconfig=/etc/workload-cluster/kubeconfig".to_owned()));
    let pod = &objects.pod()["spec"];
    let volumes = pod["volumes"].as_array().unwrap();
    let volume = volumes.iter().find(|volume| volume["name"] == "workload-cluster").unwrap();
    let expected =
        json!({"secretName": "shop-kubeconfig", "items": [{"key": "value", "path": "kubeconfig"}]});
    assert_eq!(volume["secret"], expected);
    let mounts = objects.container()["volumeMounts"].as_array().unwrap();
    let mount = mounts.iter().find(|mount| mount["name"] == "workload-cluster").unwrap();
    assert_eq!((&mount["mountPath"], &mount["readOnly"]), (&json!("/etc/workload-cluster"), &json!(true)));
    assert_eq!(pod["automountServiceAccountToken"], false);
    for kind in ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] {
        assert_eq!(objects.all(kind).count(), 0, "{kind}");
    }
    assert!(!objects.arguments().iter().any(|argument| argument.contains("leader-elect-resource-name")));
}

/// Names of all objects and of the pods' labels.
fn names(objects: &Objects) -> BTreeSet<String> {
    let names = objects.0.iter().map(|object| format!("{} {}", object["kind"], object["metadata"]["name"]));
    names.chain([objects.pod()["metadata"]["labels"]["app"].to_string()]).collect()
}

/// One release serves the cluster in which it runs, and beside it another serves a workload cluster.
#[test]
fn releases_in_one_namespace_share_no_name() {
    let Some(workload) = serving().objects() else { return };
    let Some(own) = Release::new().set("kind=Deployment").objects() else { return };
    let both: Vec<String> = names(&own).intersection(&names(&workload)).cloned().collect();
    assert!(both.is_empty(), "{both:?}");
    let name = workload.one("Deployment")["metadata"]["name"].as_str().unwrap().to_owned();
    let account = workload.one("ServiceAccount")["metadata"]["name"].as_str().unwrap();
    let release = name.strip_suffix("-openstack-ccm").unwrap();
    assert_eq!(account, format!("{release}-cloud-controller-manager"), "each has the name of its release");
}

#[test]
fn the_secret_may_have_another_key() {
    let Some(objects) = serving().set("workloadCluster.kubeconfigKey=admin.conf").objects() else { return };
    assert!(objects.pod().to_string().contains(r#"{"key":"admin.conf","path":"kubeconfig"}"#));
}

#[rstest]
#[case::pods_on_each_node("kind=DaemonSet", "set kind=Deployment")]
#[case::network_of_the_host("hostNetwork=true", "set hostNetwork=false")]
#[case::canary("canary.enabled=true", "manifests/canary in the workload cluster")]
#[case::metrics("serviceMonitor.enabled=true", "set serviceMonitor.authorization")]
#[case::two_kubeconfigs("extraArgs={--kubeconfig=/x}", "remove one of the two")]
fn what_belongs_into_the_other_cluster_is_refused(#[case] setting: &str, #[case] fix: &str) {
    let Some(error) = serving().set(setting).error() else { return };
    assert!(error.contains(fix), "{error}");
}

//! Values that end in one field: a row for each. Defaults are in the snapshots of `rendered.rs`, word by word.

use rstest::rstest;
use serde_json::{Value, json};

use crate::helm::Release;

const TEMPLATE: &str = "/spec/template/spec";
const TRIAL: &str = "trial.loadBalancerClass=a/b";

/// RKE2 and k3s label their control planes `=true`, kubeadm without a value.
fn on_control_planes() -> Value {
    json!([{"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}])
}

fn role(path: &str) -> String {
    format!("{TEMPLATE}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution{path}")
}

/// An object that is not rendered, and a field that it does not have, are null.
#[rstest]
#[case::selector_beside_the_role("nodeSelector.zone=a", "DaemonSet", "/nodeSelector", json!({"zone": "a"}))]
#[case::no_selector("nodeSelector=null", "DaemonSet", "/nodeSelector", json!(null))]
#[case::no_selector_and_no_role("nodeSelector=null", "DaemonSet", "/affinity", json!(null))]
#[case::port_on_the_network_of_the_host("kind=Deployment,securePort=20258", "Deployment", "/containers/0/ports",
    json!([{"name": "http", "containerPort": 20258, "hostPort": 20258, "protocol": "TCP"}]))]
#[case::nobody_else_is_in_its_network("hostNetwork=false", "DaemonSet", "/containers/0/ports/0/hostPort", json!(null))]
#[case::existing_secret_is_mounted("secret.create=false,secret.name=mine", "DaemonSet", "/volumes/0/secret/secretName",
    json!("mine"))]
#[case::secret_of_the_release_beside_a_trial(&format!("{TRIAL},secret.create=false"), "DaemonSet",
    "/volumes/0/secret/secretName", json!("cloud-config"))]
#[case::clouds_yaml_in_place_of_cloud_conf("secret.create=false,secret.name=shop-cloud,secret.key=clouds.yaml", "DaemonSet",
    "/containers/0/env/0", json!({"name": "CLOUD_CONFIG", "value": "/etc/config/clouds.yaml"}))]
fn a_value_reaches_the_pods(
    #[case] settings: &str,
    #[case] kind: &str,
    #[case] path: &str,
    #[case] expected: Value,
) {
    assert_field(settings, kind, &format!("{TEMPLATE}{path}"), &expected);
}

#[rstest]
#[case::role_beside_a_selector("nodeSelector.zone=a", "DaemonSet", &role("/nodeSelectorTerms"), on_control_planes())]
#[case::update_of_a_daemon_set("updateStrategy.type=OnDelete", "DaemonSet", "/spec/updateStrategy", json!({"type": "OnDelete"}))]
#[case::update_of_a_deployment("kind=Deployment,updateStrategy.type=Recreate", "Deployment", "/spec/strategy",
    json!({"type": "Recreate"}))]
#[case::default_update_of_a_deployment("kind=Deployment", "Deployment", "/spec/strategy",
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}))]
#[case::draining_leaves_pods_of_a_daemon_set_alone("kind=DaemonSet", "PodDisruptionBudget", "", json!(null))]
#[case::a_drain_takes_one_at_a_time("kind=Deployment", "PodDisruptionBudget", "/spec/maxUnavailable", json!(1))]
#[case::a_budget_would_stop_every_drain("kind=Deployment,replicas=1", "PodDisruptionBudget", "", json!(null))]
#[case::existing_secret_is_not_written("secret.create=false,secret.name=mine", "Secret", "", json!(null))]
#[case::a_trial_writes_no_secret(&format!("{TRIAL},secret.create=false"), "Secret", "", json!(null))]
#[case::rights_are_where_the_lease_is("extraArgs={--leader-elect-resource-namespace=ccm}", "Role", "/metadata/namespace",
    json!("ccm"))]
#[case::annotations_of_the_account("serviceAccountAnnotations.owner=platform,commonAnnotations.team=a", "ServiceAccount",
    "/metadata/annotations", json!({"owner": "platform", "team": "a"}))]
#[case::which_are_its_own("serviceAccountAnnotations.owner=platform", "DaemonSet", "/spec/template/metadata/annotations/owner",
    json!(null))]
#[case::canary_of_a_trial(&format!("canary.enabled=true,{TRIAL}"), "Namespace", "/metadata/name",
    json!("openstack-ccm-canary-trial"))]
#[case::canary_whose_verdicts_nobody_would_read("canary.enabled=true,enabledControllers={cloud-node}", "Namespace", "", json!(null))]
#[case::canary_in_the_namespace_of_somebody_else("canary.enabled=true,canary.createNamespace=false", "Namespace", "", json!(null))]
#[case::which_is_named("canary.enabled=true,canary.createNamespace=false,canary.namespace=probes", "Service",
    "/metadata/namespace", json!("probes"))]
#[case::canary_without_its_policy("canary.enabled=true,canary.networkPolicy=false", "NetworkPolicy", "", json!(null))]
fn a_value_reaches_its_object(
    #[case] settings: &str,
    #[case] kind: &str,
    #[case] path: &str,
    #[case] expected: Value,
) {
    assert_field(settings, kind, path, &expected);
}

fn assert_field(settings: &str, kind: &str, path: &str, expected: &Value) {
    let Some(objects) = Release::new().set(settings).objects() else { return };
    let found = objects.all(kind).next().and_then(|object| object.pointer(path)).unwrap_or(&Value::Null);
    assert_eq!(found, expected);
}

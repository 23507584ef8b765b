//! The chart of the Go openstack-cloud-controller-manager: its values make the same objects here.

use serde_json::json;

use crate::configuration::cloud_conf;
use crate::helm::{Objects, Release};

/// With the values of the OCCM chart the objects have its names, labels, arguments and order, and cloud.conf its six
/// sections with quoted values.
///
/// Contract: X11, better: the rights are those of the enabled controllers only; none on Secrets or on what the program
/// never touches. The pods run with a read-only root, without capabilities, and with probes.
/// Switch: `securityContext`, `podSecurityContext`, `livenessProbe` and `readinessProbe` in the chart's values.
/// Better as well: the default selector finds control planes of RKE2 and k3s, whose label has a value.
/// Defect: 73, better: there are probes, no rights on Secrets, no mounts of former times and no charts of others.
#[test]
fn x11_default_values_of_occm_make_the_same_objects() {
    let Some(objects) = Release::new().values("occm-defaults.yaml").objects() else { return };
    same_names(&objects);
    same_pod(&objects);
    assert_eq!(
        cloud_conf(&objects),
        "[Global]\nauth-url = \"https://keystone.example.org/v3\"\n\n[Networking]\n\n[LoadBalancer]\n\n[BlockStorage]\n\n[Metadata]\n\n[Route]"
    );
}

fn same_names(objects: &Objects) {
    let account = objects.one("ServiceAccount");
    assert_eq!(account["metadata"]["name"], "cloud-controller-manager");
    assert_eq!(account["metadata"]["namespace"], "kube-system");
    objects.named("ClusterRole", "system:cloud-controller-manager");
    let binding = objects.named("ClusterRoleBinding", "system:cloud-controller-manager");
    assert_eq!(binding["roleRef"]["name"], "system:cloud-controller-manager");
    assert_eq!(
        binding["subjects"],
        json!([{"kind": "ServiceAccount", "name": "cloud-controller-manager", "namespace": "kube-system"}])
    );
    assert_eq!(objects.one("Secret")["metadata"]["name"], "cloud-config");
    assert_eq!(objects.one("Secret")["type"], "Opaque");
    let daemon_set = objects.named("DaemonSet", "openstack-cloud-controller-manager");
    let labels = &daemon_set["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/name"], "openstack-cloud-controller-manager");
    assert_eq!(labels["app.kubernetes.io/instance"], "occm");
    assert_eq!(labels["app.kubernetes.io/managed-by"], "Helm");
}

fn same_pod(objects: &Objects) {
    let daemon_set = objects.one("DaemonSet");
    assert_eq!(daemon_set["spec"]["updateStrategy"]["type"], "RollingUpdate");
    let labels = &objects.pod()["metadata"]["labels"];
    assert_eq!(labels["component"], "controllermanager");
    assert_eq!(labels["app"], "openstack-cloud-controller-manager");
    assert_eq!(labels["release"], "occm");
    assert_eq!(labels["heritage"], "Helm");
    let pod = &objects.pod()["spec"];
    assert_eq!(pod["hostNetwork"], true);
    assert_eq!(pod["dnsPolicy"], "ClusterFirst");
    assert_eq!(pod["serviceAccountName"], "cloud-controller-manager");
    assert_eq!(
        pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"],
        json!([{"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}])
    );
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "cloud-config");
    let container = objects.container();
    assert_eq!(container["name"], "openstack-cloud-controller-manager");
    assert_eq!(container["env"][0], json!({"name": "CLOUD_CONFIG", "value": "/etc/config/cloud.conf"}));
    assert_eq!(container["env"][1], json!({"name": "CLUSTER_NAME", "value": "kubernetes"}));
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/config");
    assert_eq!(container["volumeMounts"].as_array().unwrap().len(), 3);
    assert_eq!(
        objects.arguments(),
        [
            "/bin/openstack-ccm",
            "--v=2",
            "--cloud-config=$(CLOUD_CONFIG)",
            "--cluster-name=$(CLUSTER_NAME)",
            "--cloud-provider=openstack",
            "--use-service-account-credentials=false",
            "--controllers=cloud-node,cloud-node-lifecycle,route,service",
            "--bind-address=127.0.0.1",
        ]
    );
}

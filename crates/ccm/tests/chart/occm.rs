//! The chart of the Go openstack-cloud-controller-manager: its values make the same objects here.

use serde_json::json;

use crate::configuration::cloud_conf;
use crate::helm::{Objects, Release, strings};

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

#[test]
fn every_documented_value_of_occm_has_its_effect() {
    let Some(objects) = Release::new().values("occm-documented.yaml").objects() else { return };
    for object in &objects.0 {
        assert_eq!(object["metadata"]["annotations"]["team"], "platform", "{}", object["kind"]);
    }
    let pod = &objects.pod()["spec"];
    assert_eq!(objects.pod()["metadata"]["annotations"]["note"], "pod");
    assert_eq!(objects.pod()["metadata"]["labels"]["tier"], "cloud");
    assert_eq!(pod["imagePullSecrets"][0]["name"], "registry");
    assert_eq!(pod["initContainers"][0]["name"], "wait");
    assert_eq!(pod["dnsPolicy"], "ClusterFirstWithHostNet");
    assert_eq!(pod["nodeSelector"]["node-role.kubernetes.io/controlplane"], "true");
    assert_eq!(pod["tolerations"].as_array().unwrap().len(), 1);
    assert_eq!(pod["securityContext"]["runAsUser"], 2000);
    assert_eq!(pod["hostAliases"][0]["ip"], "192.0.2.1");
    assert_eq!(pod["priorityClassName"], "system-node-critical");
    assert_eq!(pod["serviceAccountName"], "occm");
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "occm-config");
    assert_eq!(pod["volumes"][1]["hostPath"]["path"], "/etc/ssl/certs");
    let container = objects.container();
    assert_eq!(container["image"], "registry.example.org/openstack-ccm:0.2.0");
    assert_eq!(container["env"][2]["name"], "OS_CCM_REGIONAL");
    assert_eq!(container["resources"]["requests"]["cpu"], "200m");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    assert_eq!(container["livenessProbe"].as_object().unwrap().len(), 1, "a given probe stays as it is");
    assert_eq!(container["securityContext"]["privileged"], false);
    assert_eq!(
        container["ports"],
        json!([{"name": "http", "containerPort": 10258, "hostPort": 10258, "protocol": "TCP"}])
    );
    let arguments = objects.arguments();
    assert_eq!(arguments[7], "--bind-address=0.0.0.0");
    assert_eq!(
        arguments[8..],
        ["--cluster-cidr=10.244.0.0/16", "--leader-elect-resource-name=occm-lease", "--user-agent=\"chart\""]
    );
}

#[test]
fn a_service_monitor_comes_with_its_service_and_its_rights() {
    let Some(objects) = Release::new().values("occm-documented.yaml").objects() else { return };
    let service = objects.named("Service", "occm");
    assert_eq!(service["spec"]["ports"][0]["name"], "http");
    assert_eq!(service["spec"]["ports"][0]["port"], 10258);
    let monitor = objects.named("ServiceMonitor", "occm");
    assert_eq!(monitor["metadata"]["labels"]["prometheus"], "main");
    assert_eq!(monitor["spec"]["jobLabel"], "component");
    for (label, value) in monitor["spec"]["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(service["metadata"]["labels"][label], *value, "the monitor finds the Service");
    }
    let endpoint = &monitor["spec"]["endpoints"][0];
    assert_eq!(endpoint["scheme"], "https");
    assert_eq!(endpoint["interval"], "30s");
    let binding = objects.named("ClusterRoleBinding", "system:occm:auth-delegate");
    assert_eq!(binding["roleRef"]["name"], "system:auth-delegator");
    assert_eq!(binding["subjects"][0]["name"], "occm");
}

#[test]
fn the_image_swap_inside_the_chart_of_occm_needs_no_other_argument() {
    let Some(objects) = Release::new().values("occm-defaults.yaml").objects() else { return };
    let accepted: Vec<String> = objects.arguments();
    assert!(accepted.iter().all(|argument| argument.starts_with("--") || argument.starts_with("/bin/")));
    assert!(strings(&objects.container()["command"]).is_empty(), "the program is the first argument");
}

//! kube-proxy as kubeadm installs it: a DaemonSet, its pods, and a ConfigMap.

use serde_json::{Value, json};

use super::cluster::pod;
use crate::support::World;

const NAMESPACE: &str = "kube-system";

/// The DaemonSet, a pod on each node, and the ConfigMap.
pub(super) fn install(world: &World, version: &str) {
    configure(world, "");
    let image = format!("registry.k8s.io/kube-proxy:{version}");
    let daemon_set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": NAMESPACE, "labels": {"k8s-app": "kube-proxy"}},
        "spec": {"selector": {"matchLabels": {"k8s-app": "kube-proxy"}},
            "template": {"metadata": {"labels": {"k8s-app": "kube-proxy"}}, "spec": template(&image)}}});
    world.kube.create(&daemon_set).unwrap();
    for node in world.cloud.nodes() {
        run_on(world, &node.name, &node.addresses[0], version);
    }
}

/// A pod of the DaemonSet on this node.
pub(super) fn run_on(world: &World, node: &str, address: &str, version: &str) {
    let spec = template(&format!("registry.k8s.io/kube-proxy:{version}"));
    let name = pod_on(node);
    let labels = json!({"k8s-app": "kube-proxy"});
    pod(world, NAMESPACE, &name, &labels, node, &[address], &spec["containers"]);
    let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "kube-proxy", "uid": "0", "controller": true});
    let patch = json!({"metadata": {"ownerReferences": [owner]}, "spec": {"volumes": spec["volumes"], "hostNetwork": true}});
    world.kube.patch("pods", NAMESPACE, &name, &patch).unwrap();
}

/// Its ConfigMap, with these lines at the end of the configuration.
pub(super) fn configure(world: &World, lines: &str) {
    let text = format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nbindAddress: 0.0.0.0\nclusterCIDR: 10.244.0.0/16\nkind: KubeProxyConfiguration\nmetricsBindAddress: \"\"\n{lines}"
    );
    let data = json!({"config.conf": text, "kubeconfig.conf": "apiVersion: v1\nkind: Config\n"});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-proxy", "namespace": NAMESPACE}, "data": data});
    let _earlier = world.kube.delete("configmaps", NAMESPACE, "kube-proxy");
    world.kube.create(&map).unwrap();
}

/// Changes the container in the DaemonSet.
pub(super) fn change_template(world: &World, change: impl Fn(&mut Value)) {
    let mut set = world.kube.get("daemonsets", NAMESPACE, "kube-proxy").unwrap();
    change(&mut set["spec"]["template"]["spec"]);
    world.kube.patch("daemonsets", NAMESPACE, "kube-proxy", &json!({"spec": set["spec"]})).unwrap();
}

/// Changes the container on one node.
pub(super) fn change_on(world: &World, node: &str, change: impl Fn(&mut Value)) {
    let name = pod_on(node);
    let mut pod = world.kube.get("pods", NAMESPACE, &name).unwrap();
    change(&mut pod["spec"]);
    world.kube.patch("pods", NAMESPACE, &name, &json!({"spec": pod["spec"]})).unwrap();
}

/// Changes it everywhere.
pub(super) fn change(world: &World, change: impl Fn(&mut Value)) {
    change_template(world, &change);
    for node in world.cloud.nodes() {
        change_on(world, &node.name, &change);
    }
}

/// Nobody may see it: it runs as a process of the nodes.
pub(super) fn hide(world: &World) {
    world.kube.delete("daemonsets", NAMESPACE, "kube-proxy").unwrap();
    world.kube.delete("configmaps", NAMESPACE, "kube-proxy").unwrap();
    for node in world.cloud.nodes() {
        world.kube.delete("pods", NAMESPACE, &pod_on(&node.name)).unwrap();
    }
}

fn pod_on(node: &str) -> String {
    format!("kube-proxy-{node}")
}

fn template(image: &str) -> Value {
    json!({
        "containers": [{"name": "kube-proxy", "image": image,
            "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=$(NODE_NAME)"],
            "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "volumeMounts": [{"name": "kube-proxy", "mountPath": "/var/lib/kube-proxy"}, {"name": "lib-modules", "mountPath": "/lib/modules"}]}],
        "hostNetwork": true,
        "volumes": [{"name": "kube-proxy", "configMap": {"name": "kube-proxy"}}, {"name": "lib-modules", "hostPath": {"path": "/lib/modules"}}],
    })
}

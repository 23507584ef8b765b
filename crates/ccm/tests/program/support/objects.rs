//! Kubernetes objects as users and kubelets write them.

use openstack_ccm_kube_sim::merge_patch;
use openstack_ccm_openstack_sim::Node;
use serde_json::{Value, json};

/// Prefix of most annotations.
pub(crate) const ANNOTATION: &str = "loadbalancer.openstack.org/";
/// The key of an annotation of that prefix, unless the name has one.
pub(crate) fn key(name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("{ANNOTATION}{name}") }
}

/// The annotation with the real address.
pub(crate) const LB_ID: &str = "loadbalancer.openstack.org/load-balancer-id";
pub(crate) const ADDRESS: &str = "loadbalancer.openstack.org/load-balancer-address";
/// The annotation that turns on the PROXY protocol.
pub(crate) const PROXY: &str = "loadbalancer.openstack.org/proxy-protocol";

/// A Service of type LoadBalancer with TCP port 80, changed by a merge patch.
#[allow(clippy::needless_pass_by_value, reason = "json! literals read better by value")]
pub(crate) fn service(name: &str, change: Value) -> Value {
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    });
    merge_patch(&mut service, &change);
    service
}

/// A node whose server is in the cloud.
pub(crate) fn node(server: &Node, kubelet: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": server.name},
        "spec": {"providerID": format!("openstack:///{}", server.server_id)},
        "status": {
            "addresses": [{"type": "InternalIP", "address": server.addresses[0]}],
            "nodeInfo": {"kubeletVersion": kubelet, "operatingSystem": "linux"},
        },
    })
}

/// Name of the load balancer of a Service in namespace `default` of cluster `c1`.
pub(crate) fn lb_name(service: &str) -> String {
    format!("kube_service_c1_default_{service}")
}

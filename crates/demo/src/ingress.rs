//! The objects that others than openstack-ccm make in a cluster: the ingress pod, its endpoint, and the path to its node port.

use anyhow::Context as _;
use openstack_ccm_kube_sim::Sim as Kubernetes;
use openstack_ccm_openstack_sim::Sim as OpenStack;
use serde_json::json;

/// Of the pod, which is in the network of its node.
const POD_ADDRESS: &str = "198.18.0.51";

/// Makes the ingress pod and its endpoint, and opens its node port.
pub(super) fn make_ingress(
    kubernetes: &Kubernetes,
    openstack: &OpenStack,
    service: &str,
    node_port: u16,
) -> anyhow::Result<()> {
    let objects = [
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ingress-1", "labels": {"app": service}},
            "spec": {"containers": [{"image": "registry.example.org/ingress-nginx/controller:v1.15.1",
                "args": ["/nginx-ingress-controller", "--configmap=default/ingress"]}]}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": service},
            "data": {"use-proxy-protocol": "true"}}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "ingress-1", "labels": {"kubernetes.io/service-name": service}},
            "endpoints": [{"addresses": [POD_ADDRESS], "conditions": {"ready": true}}],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}),
    ];
    for object in objects {
        kubernetes.create(&object).context("the ingress could not be made")?;
    }
    let status = json!({"status": {"phase": "Running", "podIP": POD_ADDRESS, "podIPs": [{"ip": POD_ADDRESS}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    kubernetes
        .patch_status("pods", "default", "ingress-1", &status)
        .context("the ingress could not be started")?;
    let cloud = openstack.user();
    let (_, group) =
        cloud.post("network", "/v2.0/security-groups", &json!({"security_group": {"name": "nodes"}}));
    let group = &group["security_group"]["id"];
    let rule = json!({"security_group_rule": {"security_group_id": group, "direction": "ingress", "protocol": "tcp",
        "ethertype": "IPv4", "port_range_min": node_port, "port_range_max": node_port, "remote_ip_prefix": "0.0.0.0/0"}});
    cloud.post("network", "/v2.0/security-group-rules", &rule);
    let nodes: Vec<String> = openstack.nodes().into_iter().flat_map(|node| node.addresses).collect();
    for port in openstack.ports() {
        let address = port["fixed_ips"][0]["ip_address"].as_str().unwrap_or_default();
        if nodes.iter().any(|node| node == address) {
            let path = format!("/v2.0/ports/{}", port["id"].as_str().unwrap_or_default());
            openstack.admin().put("network", &path, &json!({"port": {"security_groups": [group]}}));
        }
    }
    Ok(())
}

//! A small, faithful model of how service proxies on nodes treat load balancer addresses.
//!
//! kube-proxy reads the Services and adds, for each address in `status.loadBalancer.ingress`, a rule that sends the node's
//! own traffic for that address straight to a pod. From 1.30 it leaves addresses with `ipMode: Proxy` alone (KEP-1860);
//! older ones do not know the field. Hostnames never make a rule.
//!
//! In a world with a canary its pods find the behaviour of this model on their node, by the table that real pods use.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use openstack_ccm_advertise::node::Version;
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::carried::Carried;
use openstack_ccm_canary::objects::{Canary, ingress};
use openstack_ccm_canary::verdict::{Answer, judge};
use openstack_ccm_canary::{CONCLUSIVE, FIT, NAMESPACE, PORT};
use openstack_ccm_kube_sim::Sim as Kubernetes;
use serde_json::{Value, from_value, json};

/// The first release that honours `ipMode` by default.
const HONOURS_IP_MODE: Version = Version(1, 30, 0);

/// Returns whether a service proxy of this version sends its node's traffic for `address`:`port` straight to a pod.
pub(super) fn short_circuits(version: Version, services: &[Service], address: IpAddr, port: u16) -> bool {
    services.iter().any(|service| {
        let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
        let serves = ports.is_some_and(|ports| ports.iter().any(|entry| entry.port == i32::from(port)));
        serves && captured_addresses(version, service).any(|captured| captured == address)
    })
}

fn captured_addresses(version: Version, service: &Service) -> impl Iterator<Item = IpAddr> {
    let entries = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref())
        .and_then(|status| status.ingress.as_ref());
    entries.into_iter().flatten().filter_map(move |entry| {
        let left_alone = version >= HONOURS_IP_MODE && entry.ip_mode.as_deref() == Some("Proxy");
        entry.ip.as_deref().filter(|_| !left_alone).and_then(|ip| ip.parse().ok())
    })
}

/// Makes a canary whose pods have measured already. `nodes` are node names with the versions of their kube-proxies.
pub(super) fn make_canary(kubernetes: &Kubernetes, nodes: &[(String, Version)]) -> anyhow::Result<()> {
    let canary =
        Canary { namespace: NAMESPACE.into(), image: "demo".into(), addresses: Addresses::permanent() };
    kubernetes.create(&canary.namespace())?;
    let daemon_set = kubernetes.create(&canary.daemon_set())?["metadata"]["uid"].clone();
    let daemon_set = daemon_set.as_str().unwrap_or_default();
    let mut services = Vec::new();
    for object in canary.services() {
        let service: Service = from_value(kubernetes.create(&object)?)?;
        let name = service.metadata.name.unwrap_or_default();
        let ips = service.spec.and_then(|spec| spec.cluster_ips).unwrap_or_default();
        let entries = ingress(&name, &ips, &canary.addresses);
        let entries: Vec<Value> =
            entries.iter().map(|(ip, mode)| json!({"ip": ip, "ipMode": mode})).collect();
        let status = json!({"status": {"loadBalancer": {"ingress": entries}}});
        services.push(from_value(kubernetes.patch_status("services", NAMESPACE, &name, &status)?)?);
    }
    for (node, version) in nodes {
        pod(kubernetes, &canary, &services, node, *version, daemon_set)?;
    }
    Ok(())
}

fn pod(
    kubernetes: &Kubernetes,
    canary: &Canary,
    services: &[Service],
    node: &str,
    version: Version,
    daemon_set: &str,
) -> anyhow::Result<()> {
    let answer = |address: IpAddr| {
        if short_circuits(version, services, address, PORT) { Answer::Ours } else { Answer::NotOurs }
    };
    let pair = canary.addresses.pairs()[0];
    let found = judge(Answer::Ours, answer(pair.control), answer(pair.subject));
    let (conclusive, fit) = Carried::readiness(Some(found));
    let mut object = canary.daemon_pod(node, "demo", daemon_set);
    let name = format!("canary-{node}");
    object["metadata"]["name"] = json!(name);
    kubernetes.create(&object)?;
    let container = |name: &str, ready: bool| {
        let state = json!({"running": {}});
        json!({"name": name, "ready": ready, "restartCount": 0, "image": "", "imageID": "", "state": state})
    };
    let statuses = [container(CONCLUSIVE, conclusive), container(FIT, fit)];
    let status = json!({"status": {"phase": "Running", "containerStatuses": statuses}});
    kubernetes.patch_status("pods", NAMESPACE, &name, &status)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::plain(json!([{"ip": "192.0.2.1"}]), Version(1, 36, 0), true)]
    #[case::vip(json!([{"ip": "192.0.2.1", "ipMode": "VIP"}]), Version(1, 36, 0), true)]
    #[case::proxy(json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}]), Version(1, 30, 0), false)]
    #[case::proxy_on_an_old_node(json!([{"ip": "192.0.2.1", "ipMode": "Proxy"}]), Version(1, 29, 9), true)]
    #[case::hostname(json!([{"hostname": "192.0.2.1.example.org"}]), Version(1, 28, 0), false)]
    #[case::absent(json!([]), Version(1, 36, 0), false)]
    fn the_rule_is_that_of_kube_proxy(
        #[case] ingress: Value,
        #[case] version: Version,
        #[case] expected: bool,
    ) {
        let service: Service = from_value(json!({
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
            "status": {"loadBalancer": {"ingress": ingress}},
        }))
        .unwrap();
        let address = "192.0.2.1".parse().unwrap();
        assert_eq!(short_circuits(version, std::slice::from_ref(&service), address, 80), expected);
        assert!(!short_circuits(version, &[service], address, 443), "another port is not captured");
    }
}

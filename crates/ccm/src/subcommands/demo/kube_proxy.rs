//! A small, faithful model of the rule that service proxies on nodes follow for load balancer addresses.
//!
//! kube-proxy reads the Services and adds, for each address in `status.loadBalancer.ingress`, a rule that sends the node's
//! own traffic for that address straight to a pod. From 1.30 it leaves addresses with `ipMode: Proxy` alone (KEP-1860);
//! older ones do not know the field. Hostnames never make a rule.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use openstack_ccm_advertise::node::Version;

/// The first release that honours `ipMode` by default.
const HONOURS_IP_MODE: Version = Version(1, 30, 0);

/// Whether a service proxy of this version sends its node's traffic for `address`:`port` straight to a pod.
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
        #[case] ingress: serde_json::Value,
        #[case] version: Version,
        #[case] expected: bool,
    ) {
        let service: Service = serde_json::from_value(json!({
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
            "status": {"loadBalancer": {"ingress": ingress}},
        }))
        .unwrap();
        let address = "192.0.2.1".parse().unwrap();
        assert_eq!(short_circuits(version, std::slice::from_ref(&service), address, 80), expected);
        assert!(!short_circuits(version, &[service], address, 443), "another port is not captured");
    }
}

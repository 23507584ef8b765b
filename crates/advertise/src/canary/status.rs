//! The wanted and the present status of the canary's Services. Pure.

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_canary::objects::ingress;

use crate::entry::{entries, of_address, same_entries};

/// How the present status compares with the wanted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The wanted entries.
    Right,
    /// No entries.
    Empty,
    /// The right addresses without modes: the API server drops the field.
    WithoutModes,
    /// Other entries.
    Other,
}

/// Returns the wanted status of a Service: an address for each of its families.
pub(super) fn wanted(service: &k8s::Service, addresses: &Addresses) -> Vec<k8s::LoadBalancerIngress> {
    let spec = service.spec.as_ref();
    let ips = spec.and_then(|spec| spec.cluster_ips.clone().or_else(|| Some(vec![spec.cluster_ip.clone()?])));
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let entries = ingress(name, &ips.unwrap_or_default(), addresses);
    entries.into_iter().map(|(ip, mode)| of_address(ip, Some(mode))).collect()
}

/// Compares the present status with the wanted one.
pub(super) fn seen(service: &k8s::Service, wanted: &[k8s::LoadBalancerIngress]) -> Seen {
    let published = entries(service);
    if wanted.is_empty() || published.is_empty() {
        Seen::Empty
    } else if published.iter().all(|entry| entry.ip_mode.is_none()) && same_entries(&published, wanted, false)
    {
        Seen::WithoutModes
    } else if same_entries(&published, wanted, true) {
        Seen::Right
    } else {
        Seen::Other
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn service(name: &str, ingress: &Value) -> k8s::Service {
        from_value(json!({
            "metadata": {"name": name},
            "spec": {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"]},
            "status": {"loadBalancer": {"ingress": ingress}},
        }))
        .unwrap()
    }

    #[rstest]
    #[case::right("subject", json!([{"ip": "192.0.2.2", "ipMode": "Proxy"}]), Seen::Right)]
    #[case::right_control("control", json!([{"ip": "192.0.2.1", "ipMode": "VIP"}]), Seen::Right)]
    #[case::empty("subject", json!([]), Seen::Empty)]
    #[case::dropped("subject", json!([{"ip": "192.0.2.2"}]), Seen::WithoutModes)]
    #[case::other_mode("subject", json!([{"ip": "192.0.2.2", "ipMode": "VIP"}]), Seen::Other)]
    #[case::other_address("subject", json!([{"ip": "203.0.113.9", "ipMode": "Proxy"}]), Seen::Other)]
    #[case::one_more("subject", json!([{"ip": "192.0.2.2", "ipMode": "Proxy"}, {"hostname": "a.example"}]), Seen::Other)]
    fn what_others_write_is_noticed(#[case] name: &str, #[case] ingress: Value, #[case] expected: Seen) {
        let service = service(name, &ingress);
        assert_eq!(seen(&service, &wanted(&service, &Addresses::permanent())), expected);
    }
}

//! Entries of a status, as the objects of the API have them. Pure.

use k8s_openapi::api::core::v1 as k8s;

use crate::entry::{IngressEntry, IpMode};

/// The published entries. Values that are not known are carried, never refused.
pub fn entries(service: &k8s::Service) -> Vec<IngressEntry> {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let ingress = status.and_then(|status| status.ingress.as_deref()).unwrap_or_default();
    ingress
        .iter()
        .map(|entry| IngressEntry {
            ip: entry.ip.clone().filter(|ip| !ip.is_empty()),
            hostname: entry.hostname.clone().filter(|hostname| !hostname.is_empty()),
            ip_mode: entry.ip_mode.as_deref().map(IpMode::from),
            has_ports: entry.ports.as_ref().is_some_and(|ports| !ports.is_empty()),
        })
        .collect()
}

/// The entries as the API has them.
pub fn ingress(entries: &[IngressEntry]) -> Vec<k8s::LoadBalancerIngress> {
    entries
        .iter()
        .map(|entry| k8s::LoadBalancerIngress {
            ip: entry.ip.clone(),
            hostname: entry.hostname.clone(),
            ip_mode: entry.ip_mode.as_ref().map(|mode| mode.as_str().to_owned()),
            ports: None,
        })
        .collect()
}

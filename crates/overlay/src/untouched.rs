//! Which Services are never touched, even if they are chosen. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;

use crate::names::CANARY_CLASS;

/// Classes of controllers whose addresses lead to the nodes themselves.
pub(crate) const VIP_CLASSES: [(&str, &str); 6] = [
    ("metallb.io/metallb", "MetalLB"),
    ("metallb.universe.tf/metallb", "MetalLB"),
    ("metallb", "MetalLB"),
    ("kube-vip.io/kube-vip-class", "kube-vip"),
    ("io.cilium/bgp-control-plane", "Cilium LB-IPAM"),
    ("io.cilium/l2-announcer", "Cilium LB-IPAM"),
];

/// Annotations that such controllers set on each Service they serve.
pub(crate) const VIP_ANNOTATIONS: [(&str, &str); 3] = [
    ("metallb.io/ip-allocated-from-pool", "MetalLB"),
    ("metallb.universe.tf/ip-allocated-from-pool", "MetalLB"),
    ("kube-vip.io/vipHost", "kube-vip"),
];

/// The condition that Cilium's LB-IPAM sets on each Service that it serves.
pub(crate) const LB_IPAM_CONDITION: &str = "cilium.io/IPAMRequestSatisfied";

/// Why a Service is left alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nodes announce the address, so the short circuit is intended.
    #[error("{0} has nodes announce the address: with ipMode Proxy, pods could not reach this address")]
    AnnouncedByNodes(&'static str),
    /// The address belongs to a node, as with k3s' ServiceLB.
    #[error("{0} is the address of a node: with ipMode Proxy, pods could not reach this address")]
    AddressOfNode(IpAddr),
    /// The Service is published by hostnames only, which nodes never short-circuit.
    #[error("it is published by hostname, which nodes never short-circuit")]
    HostnamesOnly,
    /// The Service belongs to the canary, which measures by its mode.
    #[error("it belongs to the canary, which needs its ipMode for measurements")]
    Canary,
}

impl Refusal {
    /// Stable label value for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::AnnouncedByNodes(_) => "announced_by_nodes",
            Self::AddressOfNode(_) => "address_of_node",
            Self::HostnamesOnly => "hostnames_only",
            Self::Canary => "canary",
        }
    }
}

fn class(service: &Service) -> Option<&str> {
    service.spec.as_ref().and_then(|spec| spec.load_balancer_class.as_deref())
}

/// Returns whether the Service belongs to the canary.
pub(crate) fn is_of_canary(service: &Service) -> bool {
    class(service) == Some(CANARY_CLASS)
}

/// Returns why a Service is left alone, if it is; `nodes` are the addresses of all nodes.
pub fn refusal(service: &Service, nodes: &BTreeSet<IpAddr>) -> Option<Refusal> {
    let class = class(service);
    if is_of_canary(service) {
        return Some(Refusal::Canary);
    }
    let by_class = VIP_CLASSES.iter().find(|(known, _)| class == Some(known));
    let annotations = service.metadata.annotations.as_ref();
    let by_annotation = VIP_ANNOTATIONS
        .iter()
        .find(|(key, _)| annotations.is_some_and(|annotations| annotations.contains_key(*key)));
    if let Some((_, program)) = by_class.or(by_annotation) {
        return Some(Refusal::AnnouncedByNodes(program));
    }
    let conditions = service.status.as_ref().and_then(|status| status.conditions.as_ref());
    if conditions.into_iter().flatten().any(|condition| condition.type_ == LB_IPAM_CONDITION) {
        return Some(Refusal::AnnouncedByNodes("Cilium LB-IPAM"));
    }
    let entries = crate::service::ingress(service);
    let addresses = entries.iter().filter_map(|entry| entry.ip.as_deref()?.parse().ok());
    if let Some(address) = addresses.into_iter().find(|address| nodes.contains(address)) {
        return Some(Refusal::AddressOfNode(address));
    }
    (!entries.is_empty() && entries.iter().all(|entry| entry.ip.is_none())).then_some(Refusal::HostnamesOnly)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    #[rstest]
    #[case::plain(json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}}), None)]
    #[case::not_published_yet(json!({}), None)]
    #[case::class_of_another_cloud(json!({"spec": {"loadBalancerClass": "alibabacloud.com/nlb"}}), None)]
    #[case::canary(json!({"spec": {"loadBalancerClass": "ip-mode-overlay/canary"}}), Some("canary"))]
    #[case::metallb(json!({"spec": {"loadBalancerClass": "metallb.io/metallb"}}), Some("announced_by_nodes"))]
    #[case::metallb_without_class(json!({"metadata": {"annotations": {"metallb.io/ip-allocated-from-pool": "p"}}}), Some("announced_by_nodes"))]
    #[case::kube_vip(json!({"metadata": {"annotations": {"kube-vip.io/vipHost": "n1"}}}), Some("announced_by_nodes"))]
    #[case::cilium(json!({"status": {"conditions": [{"type": "cilium.io/IPAMRequestSatisfied", "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}), Some("announced_by_nodes"))]
    #[case::service_lb(json!({"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.11"}]}}}), Some("address_of_node"))]
    #[case::hostname(json!({"status": {"loadBalancer": {"ingress": [{"hostname": "a.example"}]}}}), Some("hostnames_only"))]
    fn addresses_that_lead_to_the_nodes_are_left_alone(
        #[case] service: Value,
        #[case] expected: Option<&str>,
    ) {
        let nodes = BTreeSet::from(["10.0.0.11".parse().unwrap()]);
        let refused = refusal(&from_value(service).unwrap(), &nodes);
        assert_eq!(refused.map(|refusal| refusal.as_str()), expected);
    }
}

//! Whether NetworkPolicies let pods out to the address of a load balancer. Pure.
//!
//! With a short circuit the service proxy rewrites the destination before a policy sees it, so a rule for the pods behind the
//! Service is enough. Without it the destination is the address of the load balancer, for which only an `ipBlock` or a rule
//! for all destinations counts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyPeer, NetworkPolicyPort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Where packets go.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The address of the load balancer.
    pub address: IpAddr,
    /// The port, of TCP.
    pub port: u16,
    /// The namespace of the Service.
    pub namespace: &'a str,
    /// The labels of the pods behind it.
    pub selector: &'a BTreeMap<String, String>,
}

/// Policies that let pods out to the pods behind the Service, or are in a namespace that needs the load balancer by its nature,
/// and not to the load balancer: `namespace/name`. Policies add up, so what another policy for the same pods allows counts.
pub fn shut_in(policies: &[NetworkPolicy], to: Destination<'_>) -> Vec<String> {
    let egress: Vec<&NetworkPolicy> = policies.iter().filter(|policy| restricts_egress(policy)).collect();
    let mut found = BTreeSet::new();
    for policy in &egress {
        let wants = allows_pods(policy, to) || namespace(policy).contains("cert-manager");
        if !wants {
            continue;
        }
        let allowed = egress
            .iter()
            .any(|other| namespace(other) == namespace(policy) && covers(other, policy) && allows(other, to));
        if !allowed {
            let name = policy.metadata.name.as_deref().unwrap_or_default();
            found.insert(format!("{}/{name}", namespace(policy)));
        }
    }
    found.into_iter().collect()
}

fn namespace(policy: &NetworkPolicy) -> &str {
    policy.metadata.namespace.as_deref().unwrap_or_default()
}

fn restricts_egress(policy: &NetworkPolicy) -> bool {
    let Some(spec) = &policy.spec else { return false };
    match &spec.policy_types {
        Some(types) => types.iter().any(|one| one == "Egress"),
        None => spec.egress.is_some(),
    }
}

/// Whether a policy is certainly about all pods that another one is about.
fn covers(policy: &NetworkPolicy, other: &NetworkPolicy) -> bool {
    let selector = |policy: &NetworkPolicy| policy.spec.as_ref().and_then(|spec| spec.pod_selector.clone());
    let selector_of = selector(policy);
    selector_of.as_ref().is_none_or(selects_all) || selector_of == selector(other)
}

fn selects_all(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

fn rules(policy: &NetworkPolicy) -> &[NetworkPolicyEgressRule] {
    policy.spec.as_ref().and_then(|spec| spec.egress.as_deref()).unwrap_or_default()
}

/// Whether a policy lets packets out to the load balancer.
fn allows(policy: &NetworkPolicy, to: Destination<'_>) -> bool {
    rules(policy).iter().any(|rule| {
        let peers = rule.to.as_deref().unwrap_or_default();
        allows_port(rule.ports.as_deref(), to.port)
            && (peers.is_empty() || peers.iter().any(|peer| is_in_block(peer, to.address)))
    })
}

fn allows_port(ports: Option<&[NetworkPolicyPort]>, wanted: u16) -> bool {
    let ports = ports.unwrap_or_default();
    ports.is_empty()
        || ports.iter().any(|one| {
            let tcp = one.protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
            let last = one.end_port.unwrap_or_default();
            tcp && match &one.port {
                None => true,
                Some(IntOrString::Int(first)) => (*first..=last.max(*first)).contains(&i32::from(wanted)),
                // The name of a port of the pod: an address outside has none.
                Some(IntOrString::String(_)) => false,
            }
        })
}

fn is_in_block(peer: &NetworkPolicyPeer, address: IpAddr) -> bool {
    let Some(block) = &peer.ip_block else { return false };
    let contains = |cidr: &str| cidr.parse::<IpNet>().is_ok_and(|network| network.contains(&address));
    contains(&block.cidr) && !block.except.iter().flatten().any(|cidr| contains(cidr))
}

/// Whether a policy lets packets out to the pods behind the Service.
fn allows_pods(policy: &NetworkPolicy, to: Destination<'_>) -> bool {
    let peers = rules(policy).iter().flat_map(|rule| rule.to.as_deref().unwrap_or_default());
    peers.filter(|peer| peer.ip_block.is_none()).any(|peer| {
        let same_namespace = match &peer.namespace_selector {
            None => namespace(policy) == to.namespace,
            Some(selector) => {
                let name = selector
                    .match_labels
                    .as_ref()
                    .and_then(|labels| labels.get("kubernetes.io/metadata.name"));
                selects_all(selector) || name.is_some_and(|name| name == to.namespace)
            }
        };
        let selected = peer.pod_selector.as_ref().is_none_or(|selector| {
            let wanted = selector.match_labels.iter().flatten();
            selects_all(selector)
                || selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
                    && wanted.into_iter().all(|(key, value)| to.selector.get(key) == Some(value))
        });
        same_namespace && selected
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn policy(namespace: &str, pods: &Value, egress: &Value) -> NetworkPolicy {
        from_value(json!({
            "metadata": {"namespace": namespace, "name": "p"},
            "spec": {"podSelector": pods, "policyTypes": ["Egress"], "egress": egress},
        }))
        .unwrap()
    }

    fn found(policies: &[NetworkPolicy]) -> Vec<String> {
        let selector = BTreeMap::from([("app".to_owned(), "nginx".to_owned())]);
        let address = "203.0.113.10".parse().unwrap();
        shut_in(policies, Destination { address, port: 443, namespace: "ingress", selector: &selector })
    }

    fn to_pods() -> Value {
        json!([{"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "nginx"}}}]}])
    }

    #[rstest]
    #[case::to_the_pods_only("shop", to_pods(), true)]
    #[case::nothing_at_all_where_nobody_needs_it("shop", json!([]), false)]
    #[case::nothing_at_all_for_cert_manager("cert-manager", json!([]), true)]
    #[case::block("shop", json!([{"to": [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "203.0.113.0/24"}}]}]), false)]
    #[case::excepted("shop", json!([{"to": [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24"]}}]}]), true)]
    #[case::all("shop", json!([{}]), false)]
    #[case::other_port("cert-manager", json!([{"ports": [{"port": 53}]}]), true)]
    #[case::range_of_ports("cert-manager", json!([{"ports": [{"port": 400, "endPort": 500}]}]), false)]
    fn a_policy_that_knows_only_the_pods_shuts_out_the_load_balancer(
        #[case] namespace: &str,
        #[case] egress: Value,
        #[case] shut: bool,
    ) {
        assert_eq!(!found(&[policy(namespace, &json!({}), &egress)]).is_empty(), shut);
    }

    #[test]
    fn policies_for_the_same_pods_add_up() {
        let narrow = policy("shop", &json!({"matchLabels": {"a": "b"}}), &to_pods());
        let wide = policy("shop", &json!({}), &json!([{"to": [{"ipBlock": {"cidr": "203.0.113.10/32"}}]}]));
        assert_eq!(found(std::slice::from_ref(&narrow)), ["shop/p"]);
        assert!(found(&[narrow, wide]).is_empty());
    }
}

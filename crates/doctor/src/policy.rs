//! Judges whether NetworkPolicies let pods out to the address of a load balancer, and its packets into the pods. Pure.
//!
//! With a short circuit the service proxy rewrites the destination before a policy applies, so a rule for the pods behind the
//! Service is enough. Without it the destination is the address of the load balancer, which only an `ipBlock` or a rule for all
//! destinations matches.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyPeer, NetworkPolicyPort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use openstack_ccm_core::service::Protocol;

use crate::facts::name_of;

/// Who gets packets, as a policy sees it: the load balancer, or a pod behind the Service.
#[derive(Clone, Debug)]
pub struct Receiver {
    pub address: IpAddr,
    /// The port there.
    pub port: i32,
    /// The names that a pod gives to this port.
    pub names: Vec<String>,
    /// The labels of the pod; absent for an address outside the cluster.
    pub labels: Option<BTreeMap<String, String>>,
}

/// The destination of packets.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// Any of them may get a packet.
    pub receivers: &'a [Receiver],
    pub protocol: Protocol,
    /// The namespace of the Service.
    pub namespace: &'a str,
    /// The labels that the Service selects.
    pub selector: &'a BTreeMap<String, String>,
}

/// The policies, as `namespace/name`, that do not let their pods out to a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shut {
    /// Those whose pods presumably use the Service: the policy lets them out to its pods, they are in its namespace, or need the load
    /// balancer by their nature.
    pub users: Vec<String>,
    /// Those of other pods, which may not use the Service at all.
    pub others: Vec<String>,
}

/// Finds the policies that do not let their pods out to the load balancer. Policies are additive, so another policy for the same pods
/// may allow it.
pub fn shut_in(policies: &[NetworkPolicy], to: Destination<'_>) -> Shut {
    let egress: Vec<&NetworkPolicy> = policies.iter().filter(|policy| restricts_egress(policy)).collect();
    let mut found = Shut::default();
    for policy in &egress {
        let gets_out = |receiver: &Receiver| {
            egress.iter().any(|other| is_for_all_of(other, policy) && allows(other, receiver, to))
        };
        if to.receivers.iter().all(gets_out) {
            continue;
        }
        let is_neighbour = namespace(policy) == to.namespace && !is_of_application(policy, to.selector);
        let uses = is_neighbour || allows_pods(policy, to) || namespace(policy).contains("cert-manager");
        let list = if uses { &mut found.users } else { &mut found.others };
        list.push(name_of(&policy.metadata));
    }
    found
}

/// Returns whether a policy is for the application's own pods only.
fn is_of_application(policy: &NetworkPolicy, selector: &BTreeMap<String, String>) -> bool {
    selects(policy, selector) && !covers_all(policy)
}

fn is_for_all_of(policy: &NetworkPolicy, other: &NetworkPolicy) -> bool {
    namespace(policy) == namespace(other) && covers(policy, other)
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

/// Returns whether a policy certainly selects all pods that another policy selects.
fn covers(policy: &NetworkPolicy, other: &NetworkPolicy) -> bool {
    let selector = |policy: &NetworkPolicy| policy.spec.as_ref().and_then(|spec| spec.pod_selector.clone());
    let selector_of = selector(policy);
    selector_of.as_ref().is_none_or(selects_all) || selector_of == selector(other)
}

fn covers_all(policy: &NetworkPolicy) -> bool {
    policy.spec.as_ref().and_then(|spec| spec.pod_selector.as_ref()).is_none_or(selects_all)
}

fn selects_all(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

fn rules(policy: &NetworkPolicy) -> &[NetworkPolicyEgressRule] {
    policy.spec.as_ref().and_then(|spec| spec.egress.as_deref()).unwrap_or_default()
}

/// Returns whether a policy lets packets out to a receiver.
fn allows(policy: &NetworkPolicy, receiver: &Receiver, to: Destination<'_>) -> bool {
    rules(policy).iter().any(|rule| {
        let peers = rule.to.as_deref().unwrap_or_default();
        let is_peer = |peer: &NetworkPolicyPeer| {
            is_in_block(peer, receiver.address)
                || receiver.labels.as_ref().is_some_and(|labels| is_pod(policy, peer, to.namespace, labels))
        };
        allows_port(rule.ports.as_deref(), to.protocol, receiver)
            && (peers.is_empty() || peers.iter().any(is_peer))
    })
}

/// Returns whether the ports of a rule include that of a receiver.
fn allows_port(rule: Option<&[NetworkPolicyPort]>, protocol: Protocol, receiver: &Receiver) -> bool {
    let rule = rule.unwrap_or_default();
    let fits = |one: &NetworkPolicyPort| {
        one.protocol.as_deref().unwrap_or("TCP") == protocol.as_str()
            && match &one.port {
                None => true,
                Some(IntOrString::Int(first)) => {
                    (*first..=one.end_port.unwrap_or(*first)).contains(&receiver.port)
                }
                // A named port is a port of a pod: an address outside has none.
                Some(IntOrString::String(name)) => receiver.names.contains(name),
            }
    };
    rule.is_empty() || rule.iter().any(fits)
}

fn is_in_block(peer: &NetworkPolicyPeer, address: IpAddr) -> bool {
    let Some(block) = &peer.ip_block else { return false };
    let contains = |cidr: &str| cidr.parse::<IpNet>().is_ok_and(|network| network.contains(&address));
    contains(&block.cidr) && !block.except.iter().flatten().any(|cidr| contains(cidr))
}

/// Returns whether a policy lets packets out to the pods behind the Service, on some port.
fn allows_pods(policy: &NetworkPolicy, to: Destination<'_>) -> bool {
    let mut peers = rules(policy).iter().flat_map(|rule| rule.to.as_deref().unwrap_or_default());
    peers.any(|peer| is_pod(policy, peer, to.namespace, to.selector))
}

/// Returns whether a peer of a policy selects pods with these labels in a namespace.
fn is_pod(
    policy: &NetworkPolicy,
    peer: &NetworkPolicyPeer,
    home: &str,
    labels: &BTreeMap<String, String>,
) -> bool {
    let same_namespace = match &peer.namespace_selector {
        None => namespace(policy) == home,
        Some(selector) => {
            let name =
                selector.match_labels.as_ref().and_then(|labels| labels.get("kubernetes.io/metadata.name"));
            selects_all(selector) || name.is_some_and(|name| name == home)
        }
    };
    let selected = peer.pod_selector.as_ref().is_none_or(|selector| is_selected(selector, labels));
    peer.ip_block.is_none() && same_namespace && selected
}

/// Packets to pods behind a Service.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The namespace of the pods.
    pub namespace: &'a str,
    /// The pods, any of which may get a packet.
    pub pods: &'a [Receiver],
    pub protocol: Protocol,
    /// The source networks of the packets.
    pub sources: &'a [IpNet],
}

/// The effect of policies for ingress on these packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entrance {
    /// The policies that select the pods: `namespace/name`.
    pub policies: Vec<String>,
    /// Whether the policies let in packets from all sources, or from none; absent for some.
    pub open: Option<bool>,
    /// Whether the policies let in all pods, or none; absent for some.
    pub to_pods: Option<bool>,
    /// Whether the policies name networks.
    pub by_network: bool,
}

/// Evaluates the policies for ingress of packets to pods.
pub fn entrance(policies: &[NetworkPolicy], to: Entry<'_>) -> Entrance {
    let each: Vec<Entrance> = to.pods.iter().map(|pod| entrance_of(policies, pod, to)).collect();
    let together = |of: fn(&Entrance) -> Option<bool>| {
        let first = each.first().map_or(Some(true), of);
        first.filter(|_| each.iter().all(|one| of(one) == first))
    };
    let names: BTreeSet<&String> = each.iter().flat_map(|one| &one.policies).collect();
    Entrance {
        policies: names.into_iter().cloned().collect(),
        open: together(|one| one.open),
        to_pods: together(|one| one.to_pods),
        by_network: each.iter().any(|one| one.by_network),
    }
}

/// Evaluates the policies for one pod; those that select it are additive.
fn entrance_of(policies: &[NetworkPolicy], pod: &Receiver, to: Entry<'_>) -> Entrance {
    let labels = pod.labels.clone().unwrap_or_default();
    let selecting: Vec<&NetworkPolicy> = policies
        .iter()
        .filter(|policy| {
            namespace(policy) == to.namespace && restricts_ingress(policy) && selects(policy, &labels)
        })
        .collect();
    if selecting.is_empty() {
        return Entrance { open: Some(true), to_pods: Some(true), ..Entrance::default() };
    }
    let rules = selecting
        .iter()
        .flat_map(|policy| policy.spec.as_ref().and_then(|spec| spec.ingress.as_deref()).unwrap_or_default());
    let rules: Vec<_> = rules.filter(|rule| allows_port(rule.ports.as_deref(), to.protocol, pod)).collect();
    let peers = || rules.iter().flat_map(|rule| rule.from.as_deref().unwrap_or_default());
    let from_everywhere = rules.iter().any(|rule| rule.from.as_ref().is_none_or(Vec::is_empty));
    let admitted = |source: &&IpNet| {
        let ends = [source.network(), source.broadcast()];
        from_everywhere || peers().any(|peer| ends.iter().all(|end| is_in_block(peer, *end)))
    };
    let count = to.sources.iter().filter(admitted).count();
    Entrance {
        policies: selecting.iter().map(|policy| name_of(&policy.metadata)).collect(),
        open: if from_everywhere || (count > 0 && count == to.sources.len()) {
            Some(true)
        } else if count == 0 && peers().all(|peer| peer.ip_block.is_none() || !to.sources.is_empty()) {
            Some(false)
        } else {
            None
        },
        to_pods: if from_everywhere || peers().any(is_every_pod) {
            Some(true)
        } else if peers().all(|peer| !lets_in_pods(peer, to.pods)) {
            Some(false)
        } else {
            None
        },
        by_network: peers().any(|peer| peer.ip_block.is_some()),
    }
}

fn is_every_pod(peer: &NetworkPolicyPeer) -> bool {
    peer.ip_block.is_none()
        && peer.namespace_selector.as_ref().is_some_and(selects_all)
        && peer.pod_selector.as_ref().is_none_or(selects_all)
}

/// Returns whether a peer admits some pods: the addresses of the pods behind the Service stand for those of all pods.
fn lets_in_pods(peer: &NetworkPolicyPeer, pods: &[Receiver]) -> bool {
    peer.ip_block.is_none() || pods.iter().any(|pod| is_in_block(peer, pod.address))
}

fn restricts_ingress(policy: &NetworkPolicy) -> bool {
    let types = policy.spec.as_ref().and_then(|spec| spec.policy_types.as_ref());
    // A policy without types is always a policy for ingress.
    types.is_none_or(|types| types.iter().any(|one| one == "Ingress"))
}

fn selects(policy: &NetworkPolicy, labels: &BTreeMap<String, String>) -> bool {
    let selector = policy.spec.as_ref().and_then(|spec| spec.pod_selector.as_ref());
    selector.is_none_or(|selector| is_selected(selector, labels))
}

/// Returns whether a selector selects an object with these labels.
pub(crate) fn is_selected(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let by_label = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let by_expression = selector.match_expressions.iter().flatten().all(|one| {
        let value = labels.get(&one.key);
        let listed = value.is_some_and(|value| one.values.iter().flatten().any(|other| other == value));
        match one.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => true,
        }
    });
    by_label && by_expression
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

    fn found(policies: &[NetworkPolicy]) -> Shut {
        let selector = BTreeMap::from([("app".to_owned(), "nginx".to_owned())]);
        let to =
            Receiver { address: "203.0.113.10".parse().unwrap(), port: 443, names: Vec::new(), labels: None };
        shut_in(policies, destination(&[to], &selector))
    }

    fn destination<'a>(receivers: &'a [Receiver], selector: &'a BTreeMap<String, String>) -> Destination<'a> {
        Destination { receivers, protocol: Protocol::Tcp, namespace: "ingress", selector }
    }

    fn nginx() -> Receiver {
        Receiver {
            address: "10.244.1.7".parse().unwrap(),
            port: 8443,
            names: vec!["https".to_owned()],
            labels: Some(BTreeMap::from([("app".to_owned(), "nginx".to_owned())])),
        }
    }

    fn to_pods() -> Value {
        json!([{"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "nginx"}}}]}])
    }

    #[rstest]
    #[case::to_the_pods_only("shop", to_pods(), [1, 0])]
    #[case::nothing_at_all_where_nobody_needs_it("shop", json!([]), [0, 1])]
    #[case::nothing_at_all_for_cert_manager("cert-manager", json!([]), [1, 0])]
    #[case::names_only_for_neighbours("ingress", json!([{"ports": [{"port": 53, "protocol": "UDP"}]}]), [1, 0])]
    #[case::names_only_elsewhere("shop", json!([{"ports": [{"port": 53, "protocol": "UDP"}]}]), [0, 1])]
    #[case::block("shop", json!([{"to": [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "203.0.113.0/24"}}]}]), [0, 0])]
    #[case::excepted("shop", json!([{"to": [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24"]}}]}]), [1, 0])]
    #[case::only_an_exception("shop", json!([{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24"]}}]}]), [0, 1])]
    #[case::all("shop", json!([{}]), [0, 0])]
    #[case::other_port("cert-manager", json!([{"ports": [{"port": 53}]}]), [1, 0])]
    #[case::range_of_ports("cert-manager", json!([{"ports": [{"port": 400, "endPort": 500}]}]), [0, 0])]
    fn a_policy_that_does_not_name_the_address_shuts_out_the_load_balancer(
        #[case] namespace: &str,
        #[case] egress: Value,
        #[case] shut: [usize; 2],
    ) {
        let found = found(&[policy(namespace, &json!({}), &egress)]);
        assert_eq!([found.users.len(), found.others.len()], shut);
    }

    #[test]
    fn policies_for_the_same_pods_add_up() {
        let narrow = policy("shop", &json!({"matchLabels": {"a": "b"}}), &to_pods());
        let wide = policy("shop", &json!({}), &json!([{"to": [{"ipBlock": {"cidr": "203.0.113.10/32"}}]}]));
        assert_eq!(found(std::slice::from_ref(&narrow)).users, ["shop/p"]);
        assert_eq!(found(&[narrow, wide]), Shut::default());
    }

    fn ingress(spec: Value) -> NetworkPolicy {
        let mut spec = spec;
        spec["policyTypes"] = json!(["Ingress"]);
        from_value(json!({"metadata": {"namespace": "ingress", "name": "p"}, "spec": spec})).unwrap()
    }

    fn entered(policies: &[NetworkPolicy]) -> (Option<bool>, Option<bool>) {
        let sources = ["10.0.0.11/32".parse().unwrap(), "10.0.0.12/32".parse().unwrap()];
        let to = Entry { namespace: "ingress", pods: &[nginx()], protocol: Protocol::Tcp, sources: &sources };
        let entrance = entrance(policies, to);
        (entrance.open, entrance.to_pods)
    }

    #[rstest]
    #[case::nobody(json!({"podSelector": {}}), Some(false), Some(false))]
    #[case::other_pods(json!({"podSelector": {"matchLabels": {"app": "shop"}}}), Some(true), Some(true))]
    #[case::everybody(json!({"podSelector": {}, "ingress": [{}]}), Some(true), Some(true))]
    #[case::the_port(json!({"podSelector": {}, "ingress": [{"ports": [{"port": 8443}]}]}), Some(true), Some(true))]
    #[case::the_port_by_name(json!({"podSelector": {}, "ingress": [{"ports": [{"port": "https"}]}]}), Some(true), Some(true))]
    #[case::another_port(json!({"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}), Some(false), Some(false))]
    #[case::another_protocol(json!({"podSelector": {}, "ingress": [{"ports": [{"port": 8443, "protocol": "UDP"}]}]}), Some(false), Some(false))]
    #[case::pods_here(json!({"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}), Some(false), None)]
    #[case::pods_everywhere(json!({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}}]}]}), Some(false), Some(true))]
    #[case::the_nodes(json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/24"}}]}]}), Some(true), Some(false))]
    #[case::one_node(json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.11/32"}}]}]}), None, Some(false))]
    #[case::the_network_of_pods(json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.244.0.0/16"}}]}]}), Some(false), None)]
    fn a_policy_for_ingress_lets_in_what_it_lists(
        #[case] spec: Value,
        #[case] open: Option<bool>,
        #[case] to_pods: Option<bool>,
    ) {
        assert_eq!(entered(&[ingress(spec)]), (open, to_pods));
    }

    /// A short circuit replaces the address, and the port, before a policy sees them.
    #[rstest]
    #[case::nothing(json!([]), true)]
    #[case::names_only(json!([{"ports": [{"port": 53, "protocol": "UDP"}]}]), true)]
    #[case::the_port_of_the_service(json!([{"ports": [{"port": 443}]}]), true)]
    #[case::the_port_of_the_pod(json!([{"ports": [{"port": 8443}]}]), false)]
    #[case::the_port_by_name(json!([{"ports": [{"port": "https"}]}]), false)]
    #[case::the_pods(to_pods(), false)]
    #[case::the_network_of_pods(json!([{"to": [{"ipBlock": {"cidr": "10.244.0.0/16"}}]}]), false)]
    #[case::the_address(json!([{"to": [{"ipBlock": {"cidr": "203.0.113.10/32"}}]}]), true)]
    fn around_the_load_balancer_a_policy_has_to_name_the_pods(#[case] egress: Value, #[case] shut: bool) {
        let selector = BTreeMap::from([("app".to_owned(), "nginx".to_owned())]);
        let to = [nginx()];
        let found = shut_in(&[policy("ingress", &json!({}), &egress)], destination(&to, &selector));
        assert_eq!(!found.users.is_empty(), shut);
    }

    /// A slice may be older than the labels of its pod.
    #[test]
    fn what_gets_the_packets_counts_and_not_what_the_service_selects() {
        let selector = nginx().labels.unwrap();
        let to = [nginx(), Receiver { labels: Some(BTreeMap::new()), ..nginx() }];
        let found = shut_in(&[policy("ingress", &json!({}), &to_pods())], destination(&to, &selector));
        assert_eq!(found.users, ["ingress/p"]);
    }
}

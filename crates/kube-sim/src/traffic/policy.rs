//! NetworkPolicies: what selects a pod in a direction shuts it but for what some policy allows.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::objects::{self, Objects, protocol};
use super::{Destination, text};
use crate::object::{list, texts};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Ingress,
    Egress,
}

/// The other side.
#[derive(Debug, Clone, Copy)]
pub(super) enum Peer<'a> {
    Pod(&'a Value),
    Address(IpAddr),
}

/// Whether policies let packets to this destination pass between a pod and its peer.
pub(super) fn lets(
    objects: &Objects,
    pod: &Value,
    direction: Direction,
    peer: Peer<'_>,
    to: Destination,
) -> bool {
    let namespace = &pod["metadata"]["namespace"];
    let policies = objects.policies.iter().filter(|policy| {
        policy["metadata"]["namespace"] == *namespace
            && restricts(policy, direction)
            && selects(&policy["spec"]["podSelector"], &pod["metadata"]["labels"])
    });
    let policies: Vec<&Value> = policies.collect();
    // Names of ports are those of the pod that gets the packet.
    let receiver = match (direction, peer) {
        (Direction::Ingress, _) => Some(pod),
        (Direction::Egress, Peer::Pod(peer)) => Some(peer),
        (Direction::Egress, Peer::Address(_)) => None,
    };
    let (rules, peers) = match direction {
        Direction::Ingress => ("/spec/ingress", "/from"),
        Direction::Egress => ("/spec/egress", "/to"),
    };
    policies.is_empty()
        || policies.iter().any(|policy| {
            list(policy, rules).iter().any(|rule| {
                let peers = list(rule, peers);
                allows_port(list(rule, "/ports"), receiver, to)
                    && (peers.is_empty() || peers.iter().any(|one| is_peer(objects, one, policy, peer)))
            })
        })
}

fn restricts(policy: &Value, direction: Direction) -> bool {
    let types = texts(policy, "/spec/policyTypes");
    match direction {
        Direction::Ingress => types.is_empty() || types.contains(&"Ingress"),
        Direction::Egress if types.is_empty() => policy["spec"]["egress"].is_array(),
        Direction::Egress => types.contains(&"Egress"),
    }
}

fn allows_port(ports: &[Value], receiver: Option<&Value>, to: Destination) -> bool {
    ports.is_empty()
        || ports.iter().any(|one| {
            if protocol(one) != to.transport.as_str() {
                return false;
            }
            match &one["port"] {
                Value::Null => true,
                Value::String(name) => receiver.is_some_and(|pod| {
                    objects::ports(pod).any(|(own, number, transport)| {
                        own == name && number == to.port && transport == to.transport.as_str()
                    })
                }),
                number => {
                    let first = number.as_u64().unwrap_or_default();
                    let last = one["endPort"].as_u64().unwrap_or(first);
                    (first..=last).contains(&u64::from(to.port))
                }
            }
        })
}

fn is_peer(objects: &Objects, wanted: &Value, policy: &Value, peer: Peer<'_>) -> bool {
    if let Some(block) = wanted.get("ipBlock") {
        let address = match peer {
            Peer::Address(address) => Some(address),
            Peer::Pod(pod) => objects::pod_address(pod),
        };
        let contains = |cidr: &str| {
            let cidr = cidr.parse::<IpNet>();
            address.is_some_and(|address| cidr.is_ok_and(|cidr| cidr.contains(&address)))
        };
        return contains(text(&block["cidr"])) && !texts(block, "/except").into_iter().any(contains);
    }
    // What comes from outside, or from a node, has no labels.
    let Peer::Pod(pod) = peer else { return false };
    let home = text(&pod["metadata"]["namespace"]);
    let in_namespace = match wanted.get("namespaceSelector") {
        None => policy["metadata"]["namespace"] == home,
        Some(selector) => objects
            .namespace(home)
            .is_some_and(|namespace| selects(selector, &namespace["metadata"]["labels"])),
    };
    let selected =
        wanted.get("podSelector").is_none_or(|selector| selects(selector, &pod["metadata"]["labels"]));
    in_namespace && selected
}

/// Whether a selector of an object selects labels; an empty one selects all.
fn selects(selector: &Value, labels: &Value) -> bool {
    let equal =
        selector["matchLabels"].as_object().into_iter().flatten().all(|(key, value)| labels[key] == *value);
    let expressed = list(selector, "/matchExpressions").iter().all(|one| {
        let label = labels.get(text(&one["key"]));
        let among = || label.is_some_and(|label| list(one, "/values").contains(label));
        match text(&one["operator"]) {
            "In" => among(),
            "NotIn" => !among(),
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            _ => false,
        }
    });
    equal && expressed
}

//! Hop 4: the way to the load balancer.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::look::Look;
use crate::code::{Code, Stops};
use crate::facts::{CloudFacts, ForeignPolicy, NodeFact, name_of};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::firewall::{Packet, Passage, passage};
use crate::hop::{Flow, Port, Scope};
use crate::policy::{Destination, Receiver, Shut, shut_in};
use crate::question::{Answer, questions, read};
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use openstack_ccm_core::service::Protocol;
use openstack_ccm_core::text::some_of;
use openstack_ccm_manager::dial::{Dial, DialResult};
use openstack_ccm_openstack_api::dry_run::{Kind, ObjectChange};
use openstack_ccm_openstack_api::neutron::Direction;
use serde_json::json;

questions! {
    Questions at Way {
        /// Whether NetworkPolicies let pods out to the load balancer.
        policies,
        /// Whether policies of other kinds may block egress of all pods.
        foreign,
        /// Whether the source ranges admit the cluster's own clients.
        ranges,
        /// Whether the source ranges admit the client of `--from`.
        client,
        /// Whether the security groups of the nodes let packets out to the load balancer.
        outward,
        /// The results of dials by pods.
        dialled,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let (client, dialled, policies) = (client(look), dials(look), policies(look).into());
    if !look.entries.is_empty() && look.destinations().iter().all(|to| look.around.get(to) == Some(&true)) {
        let stay = skipped("packets from inside the cluster do not leave the nodes");
        return Questions { client, dialled, policies, ..Questions::all(stay) };
    }
    Questions {
        policies,
        foreign: foreign(look).into(),
        ranges: ranges(look),
        client,
        outward: outward(look),
        dialled,
    }
}

fn policies(look: &Look<'_>) -> Result<Answer, Answer> {
    let policies = read(&look.cluster.policies, "NetworkPolicies cannot be read", Stops::Pods)?;
    let mut found: Vec<Check> = Vec::new();
    for to in look.destinations() {
        // Ports from which the same pods are kept are said together.
        let mut kept: BTreeMap<Vec<String>, Finding> = BTreeMap::new();
        for flow in look.flows().into_iter().filter(|flow| flow.to == to) {
            let users = kept_from(look, &flow).users;
            if let Some(first) = users.first() {
                let finding =
                    kept.remove(&users).unwrap_or_else(|| shut_in_from(look, policies, &flow, &users, first));
                kept.insert(users, finding.at(flow.port));
            }
        }
        found.extend(kept.into_values().map(Check::from));
    }
    Ok(Answer::found(found, || ok("no NetworkPolicy keeps pods that use the Service from its address")))
}

/// Returns the policies that keep their pods from a flow: from the load balancer, or from pods to which nodes short-circuit.
pub(super) fn kept_from(look: &Look<'_>, flow: &Flow) -> Shut {
    let protocol = flow.port.protocol;
    let Ok(policies) = &look.cluster.policies else { return Shut::default() };
    if protocol == Protocol::Sctp {
        return Shut::default();
    }
    let around = look.around.get(&flow.to);
    let mut receivers = if around.is_some() { look.receivers(flow.port) } else { Vec::new() };
    if around != Some(&true) {
        let balancer = |address: IpAddr| Receiver {
            address,
            port: flow.port.number.into(),
            names: Vec::new(),
            labels: None,
        };
        receivers.extend(look.addresses_of(&flow.to).into_iter().take(1).map(balancer));
    }
    let (namespace, selector) = (look.namespace(), &look.selector());
    shut_in(policies, Destination { receivers: &receivers, protocol, namespace, selector })
}

fn shut_in_from(
    look: &Look<'_>,
    policies: &[NetworkPolicy],
    flow: &Flow,
    users: &[String],
    first: &str,
) -> Finding {
    let text = format!("pods selected by NetworkPolicy {} may not connect to {}", some_of(users, 3), flow.to);
    let finding = Finding::new(Code::D401, text)
        .seen(format!("NetworkPolicy {first}"), "spec.egress", "no rule for the address and the port")
        .to(flow.to.clone());
    match look.addresses_of(&flow.to).first() {
        Some(address) if look.around.get(&flow.to) != Some(&true) => {
            let width = if address.is_ipv4() { 32 } else { 128 };
            finding.fix(open_to(policies, first, &format!("{address}/{width}")))
        }
        _ => finding,
    }
}

/// Returns the command that adds a network to the egress of a policy, `namespace/name`.
fn open_to(policies: &[NetworkPolicy], title: &str, cidr: &str) -> Fix {
    let (namespace, name) = title.split_once('/').unwrap_or(("", title));
    let policy = policies.iter().find(|policy| name_of(&policy.metadata) == title);
    let spec = policy.and_then(|policy| policy.spec.as_ref());
    let has_rules = spec.is_some_and(|spec| spec.egress.is_some());
    let rule = json!({"to": [{"ipBlock": {"cidr": cidr}}]});
    let (path, value) = if has_rules { ("/spec/egress/-", rule) } else { ("/spec/egress", json!([rule])) };
    let patch = json!([{"op": "add", "path": path, "value": value}]).to_string();
    Fix::kubectl(namespace, ["patch", "networkpolicy", name, "--type", "json", "--patch", &patch])
}

/// Judges foreign policies: which pods connect is not known, so only a policy for all pods matters here.
fn foreign(look: &Look<'_>) -> Result<Answer, Answer> {
    let is_for_all =
        |policy: &ForeignPolicy| policy.namespace.is_none() && policy.labels.is_empty() && policy.egress;
    let names = look.foreign_policies(Stops::Pods, is_for_all)?;
    if names.is_empty() {
        return Ok(ok("no policy of another kind applies to all pods").into());
    }
    let text = format!("doctor does not evaluate {names}, which might keep pods from the address");
    Ok(unknown(text).about(Scope::default(), Stops::Pods).into())
}

/// Judges the source ranges that the listeners have now; those of the Service may not be applied yet.
fn ranges(look: &Look<'_>) -> Answer {
    let cloud = match look.cloud() {
        Ok(cloud) => cloud,
        Err(check) if is_restricted(look) => {
            return check.about(Scope::default(), Stops::InsideThrough).into();
        }
        Err(_) => return ok("the Service has no source ranges").into(),
    };
    let found: Vec<Check> = look.flows().iter().filter_map(|flow| range(look, cloud, flow)).collect();
    let warning = look.warnings("LoadBalancerSourceRangesLackCluster").first().copied();
    match warning.filter(|_| !found.iter().any(|check| matches!(check, Check::Found(_)))) {
        // The controller knows the addresses from which the cluster connects.
        Some(message) => {
            let text = "the source ranges keep the cluster's own clients out";
            let finding = Finding::new(Code::D402, text)
                .seen(look.object(), "LoadBalancerSourceRangesLackCluster", message)
                .fix(look.annotate(ALLOW_CLUSTER));
            Check::from(finding.surely(!found.is_empty() && !is_to_come(look))).into()
        }
        None => Answer::found(found, || {
            ok("the source ranges include the cluster's own clients, or there are no source ranges")
        }),
    }
}

/// Judges the security groups of the nodes for what leaves them.
fn outward(look: &Look<'_>) -> Answer {
    let Ok(cloud) = look.cloud() else {
        return skipped("the security groups of the nodes are not known").into();
    };
    let mut found: Vec<Check> = Vec::new();
    for flow in look.flows() {
        let Some(address) = look.addresses_of(&flow.to).first().copied() else { continue };
        let protocol = flow.port.protocol.as_str().to_ascii_lowercase();
        let packet = Packet {
            direction: Direction::Egress,
            protocol: &protocol,
            port: flow.port.number,
            ipv6: address.is_ipv6(),
            remote: Some(IpNet::from(address)),
            remote_port: None,
        };
        let passage_of = |node: &NodeFact| {
            let machine = node.addresses.iter().find_map(|address| cloud.network.port_at(*address))?;
            Some(passage(&cloud.network, machine, &packet))
        };
        let all: Vec<(&NodeFact, Passage)> =
            look.cluster.live_nodes().filter_map(|node| Some((node, passage_of(node)?))).collect();
        let shut: Vec<&str> = all
            .iter()
            .filter(|(_, passage)| *passage == Passage::Closed)
            .map(|(node, _)| node.name.as_str())
            .collect();
        if !shut.is_empty() {
            let text = format!("no security group lets packets of {} out to {}", some_of(&shut, 3), flow.to);
            let seen = "no rule for egress fits protocol, port and address";
            let finding =
                Finding::new(Code::D405, text).seen("Neutron", "security groups of the nodes", seen);
            found.push(finding.at(flow.port).to(flow.to).surely(shut.len() == all.len()).into());
        }
    }
    Answer::found(found, || ok("the security groups of the nodes let packets out to the load balancer"))
}

const ALLOW_CLUSTER: &str = "loadbalancer.openstack.org/allow-cluster-sources=true";

fn is_restricted(look: &Look<'_>) -> bool {
    let spec = look.facts.service.spec.as_ref();
    spec.and_then(|spec| spec.load_balancer_source_ranges.as_ref()).is_some_and(|ranges| !ranges.is_empty())
}

/// Finds clients in the cluster that the listener of a flow does not admit; absent where it admits all.
fn range(look: &Look<'_>, cloud: &CloudFacts, flow: &Flow) -> Option<Check> {
    let networks: Vec<IpNet> =
        admitted(look, flow.port).iter().filter_map(|network| network.parse().ok()).collect();
    let address = *look.addresses_of(&flow.to).first()?;
    if networks.is_empty() {
        return None;
    }
    let sources: Vec<IpAddr> = match (&cloud.translated, cloud.floating().contains(&address)) {
        (_, false) => look.cluster.node_addresses().collect(),
        (Some(Ok(translated)), true) => translated.clone(),
        (Some(Err(_)) | None, true) => {
            let cause = cloud.translated.iter().filter_map(|one| one.as_ref().err());
            let cause: String = cause.map(|cause| format!(": {cause}")).collect();
            let text =
                format!("the addresses from which the cluster connects to {address} are not known{cause}");
            return Some(unknown(text).about(Scope::to(flow.to.clone()), Stops::InsideThrough));
        }
    };
    let (held, lacking): (Vec<IpAddr>, Vec<IpAddr>) = sources
        .into_iter()
        .filter(|source| source.is_ipv6() == address.is_ipv6())
        .partition(|source| networks.iter().any(|network| network.contains(source)));
    let shown: Vec<String> = lacking.iter().map(ToString::to_string).collect();
    let first = shown.first()?;
    let text = format!(
        "the listener of port {} rejects the cluster's own clients, which connect from {first}",
        flow.port
    );
    let finding = Finding::new(Code::D402, text)
        .seen("listener", "allowed_cidrs", some_of(&admitted(look, flow.port), 5))
        .seen("cluster", "addresses towards the load balancer", some_of(&shown, 5))
        .at(flow.port)
        .to(flow.to.clone())
        .surely(held.is_empty());
    let by_annotation = look.is_ours() && is_restricted(look);
    Some(if by_annotation { finding.fix(look.annotate(ALLOW_CLUSTER)) } else { finding }.into())
}

/// Returns whether the listeners do not have the Service's source ranges yet.
fn is_to_come(look: &Look<'_>) -> bool {
    let changes = look.facts.cloud.iter().flat_map(|cloud| cloud.changes_of(Kind::Listener));
    changes.flat_map(ObjectChange::differences).any(|one| one.name == "allowed_cidrs")
}

/// Returns the networks from which the listener of a port accepts connections; empty for all.
pub(super) fn admitted(look: &Look<'_>, port: Port) -> Vec<String> {
    let cloud = look.facts.cloud.as_ref().ok();
    let listener = cloud.and_then(|cloud| cloud.listener(port));
    let everywhere = |network: &String| matches!(network.as_str(), "0.0.0.0/0" | "::/0");
    let allowed = listener.map(|listener| listener.allowed_cidrs.clone()).unwrap_or_default();
    if allowed.iter().any(everywhere) { Vec::new() } else { allowed }
}

/// Returns the admitted networks of the same address family as the flow's address.
pub(super) fn admitted_to(look: &Look<'_>, flow: &Flow) -> Vec<String> {
    let mut networks = admitted(look, flow.port);
    if let Ok(address) = flow.to.parse::<IpAddr>() {
        networks.retain(|network| network.contains(':') == address.is_ipv6());
    }
    networks
}

fn client(look: &Look<'_>) -> Answer {
    let Some(client) = look.cluster.client else {
        return skipped("no client was given with --from").into();
    };
    if let Err(check) = look.cloud() {
        return check.about(Scope::default(), Stops::Outside).into();
    }
    Answer::each(
        look.ports(),
        || skipped("the Service has no ports"),
        |(port, _)| {
            let networks = admitted(look, port);
            let holds =
                |network: &String| network.parse::<IpNet>().is_ok_and(|network| network.contains(&client));
            if networks.is_empty() || networks.iter().any(holds) {
                return ok(format!("port {port}: {client} is let in"));
            }
            Finding::new(
                Code::D404,
                format!("port {port}: {client} is in none of the allowed networks {}", some_of(&networks, 5)),
            )
            .seen("listener", "allowed_cidrs", some_of(&networks, 5))
            .at(port)
            .into()
        },
    )
}

fn dials(look: &Look<'_>) -> Answer {
    let header = matches!(look.path(), Ok(path) if path.header);
    let dials = look.facts.dials.iter().flatten();
    Answer::found(dials.filter_map(|dial| one(dial, header)).collect(), || {
        skipped("no packet was sent (--live)")
    })
}

fn one(dial: &Dial, header: bool) -> Option<Check> {
    let Dial { node, to, result, milliseconds, source } = dial;
    let failed = |text: String, what: &str| -> Check {
        let mut finding = Finding::new(Code::D403, text)
            .seen(format!("pod on {node}"), "dialled", format!("{to} from {source}: {what}"))
            .on(node);
        if let Some((place, port)) = to.rsplit_once(':') {
            finding.scope.to = Some(place.trim_matches(['[', ']']).to_owned());
            let number = port.parse().ok();
            finding.scope.ports = number.map(|number| [Port { number, protocol: Protocol::Tcp }].into());
        }
        finding.into()
    };
    Some(match result {
        DialResult::Answered(how) => {
            ok(format!("{node}: {to} answered in {milliseconds} ms: {how} (from {source})"))
        }
        DialResult::Accepted => {
            ok(format!("{node}: {to} accepted the connection in {milliseconds} ms (from {source})"))
        }
        // The hop of the node, or of the name, reports this result.
        DialResult::ClosedSilently if header => return None,
        DialResult::NoName(_) => return None,
        DialResult::ClosedSilently => {
            failed(format!("{node}: {to} closed the connection without sending any data"), "closed")
        }
        DialResult::TimedOut => failed(format!("{node}: {to} does not answer"), "no answer in time"),
        DialResult::Refused(how) => failed(format!("{node}: {to} refused the connection"), how),
        DialResult::NotDialled(cause) => unknown(format!("{node}: no connection was tried: {cause}"))
            .about(Scope::default(), Stops::Nobody),
    })
}

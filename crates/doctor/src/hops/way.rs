//! Hop 4: the way to the load balancer.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::look::{Look, listener_of};
use crate::code::{Code, Stops};
use crate::facts::{Dial, DialResult};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::policy::{Destination, shut_in};
use crate::question::{Answer, questions};
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use openstack_ccm_core::service::Protocol;
use openstack_ccm_core::text::some_of;
use serde_json::json;

questions! {
    Questions at Way {
        /// Whether NetworkPolicies let pods out to it.
        policies,
        /// Whether policies of other kinds may keep all pods in.
        foreign,
        /// Whether the source ranges hold the cluster's own clients.
        ranges,
        /// Whether they hold the client of `--from`.
        client,
        /// What pods got that dialled.
        dialled,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let client = client(look);
    let dialled = dials(look);
    if look.short_circuit() && !look.by_proxy() {
        let stay = skipped("packets from inside do not leave the nodes");
        return Questions { client, dialled, ..Questions::all(&stay) };
    }
    Questions { policies: policies(look), foreign: foreign(look), ranges: ranges(look), client, dialled }
}

fn policies(look: &Look<'_>) -> Answer {
    let policies = match &look.cluster.policies {
        Ok(policies) => policies,
        Err(cause) => {
            return unknown(format!("NetworkPolicies cannot be read: {cause}"))
                .about(Scope::default(), Stops::Pods)
                .into();
        }
    };
    let empty = BTreeMap::new();
    let selector = look.facts.service.spec.as_ref().and_then(|spec| spec.selector.as_ref()).unwrap_or(&empty);
    let addresses = look.entries.iter().filter_map(|entry| entry.ip.as_ref()?.parse::<IpAddr>().ok());
    let mut found: BTreeMap<IpAddr, Vec<String>> = BTreeMap::new();
    for address in addresses {
        for port in look.ports().map(|(port, _)| port).filter(|port| port.protocol != Protocol::Sctp) {
            let to = Destination {
                address,
                port: port.number,
                protocol: port.protocol,
                namespace: look.namespace(),
                selector,
            };
            found.entry(address).or_default().extend(shut_in(policies, to));
        }
    }
    let finding = |(address, mut names): (IpAddr, Vec<String>)| {
        names.dedup();
        let text = format!("pods under {} may not connect to {address}", some_of(&names, 3));
        let width = if address.is_ipv4() { 32 } else { 128 };
        let first = names.first().cloned().unwrap_or_default();
        Finding::new(Code::D401, text)
            .seen(format!("NetworkPolicy {first}"), "spec.egress", "no ipBlock for the address")
            .to(address.to_string())
            .fix(open_to(policies, &first, &format!("{address}/{width}")))
            .into()
    };
    let found = found.into_iter().filter(|(_, names)| !names.is_empty()).map(finding);
    Answer::found(found.collect(), || ok("no NetworkPolicy keeps pods that use the Service from its address"))
}

/// The command that lets the pods of a policy, `namespace/name`, out to a network.
fn open_to(policies: &[NetworkPolicy], name: &str, cidr: &str) -> Fix {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let is_it = |policy: &&NetworkPolicy| {
        policy.metadata.namespace.as_deref() == Some(namespace)
            && policy.metadata.name.as_deref() == Some(name)
    };
    let spec = policies.iter().find(is_it).and_then(|policy| policy.spec.as_ref());
    let has_rules = spec.is_some_and(|spec| spec.egress.is_some());
    let rule = json!({"to": [{"ipBlock": {"cidr": cidr}}]});
    let (path, value) = if has_rules { ("/spec/egress/-", rule) } else { ("/spec/egress", json!([rule])) };
    let patch = json!([{"op": "add", "path": path, "value": value}]).to_string();
    Fix::kubectl(namespace, ["patch", "networkpolicy", name, "--type", "json", "--patch", &patch])
}

/// Which pods connect is not known, so only a policy for all of them matters here.
fn foreign(look: &Look<'_>) -> Answer {
    let policies = match &look.cluster.foreign_policies {
        Ok(policies) => policies,
        Err(cause) => {
            return unknown(format!("policies of the network plugin cannot be read: {cause}"))
                .about(Scope::default(), Stops::Pods)
                .into();
        }
    };
    let is_for_all = |policy: &&crate::facts::ForeignPolicy| {
        policy.namespace.is_none() && policy.labels.is_empty() && policy.egress
    };
    let names: Vec<String> =
        policies.iter().filter(is_for_all).map(|policy| format!("{} {}", policy.kind, policy.name)).collect();
    if names.is_empty() {
        return ok("no policy of another kind is for all pods").into();
    }
    unknown(format!("whether {} lets pods out to the address is not judged", some_of(&names, 3)))
        .about(Scope::default(), Stops::Pods)
        .into()
}

fn ranges(look: &Look<'_>) -> Answer {
    let lacking = look.warnings("LoadBalancerSourceRangesLackCluster");
    if let Some(message) = lacking.first() {
        let finding = Finding::new(Code::D402, "the source ranges keep the cluster's own clients out")
            .seen(look.object(), "LoadBalancerSourceRangesLackCluster", *message)
            .fix(look.annotate("loadbalancer.openstack.org/allow-cluster-sources=true"))
            .surely(!is_to_come(look));
        return Check::from(finding).into();
    }
    let spec = look.facts.service.spec.as_ref();
    let restricted = spec
        .and_then(|spec| spec.load_balancer_source_ranges.as_ref())
        .is_some_and(|ranges| !ranges.is_empty());
    match (look.cloud(), restricted) {
        (Ok(_), true) => ok("the source ranges hold the cluster's own clients").into(),
        (_, false) => ok("the Service has no source ranges").into(),
        (Err(check), true) => check.about(Scope::default(), Stops::Inside).into(),
    }
}

/// Whether the source ranges are not what the listeners have yet.
fn is_to_come(look: &Look<'_>) -> bool {
    let changes = look.facts.cloud.iter().flat_map(|cloud| &cloud.changes);
    changes
        .filter(|change| change.kind == "listener")
        .flat_map(|change| &change.fields)
        .any(|field| field.name == "allowed_cidrs")
}

/// The networks from which the listener of a port accepts connections; none for all.
pub(super) fn admitted(look: &Look<'_>, port: Port) -> Vec<String> {
    let cloud = look.facts.cloud.as_ref().ok();
    let listener = cloud.and_then(|cloud| listener_of(cloud, port));
    let everywhere = |network: &String| matches!(network.as_str(), "0.0.0.0/0" | "::/0");
    let allowed = listener.map(|listener| listener.allowed.clone()).unwrap_or_default();
    if allowed.iter().any(everywhere) { Vec::new() } else { allowed }
}

fn client(look: &Look<'_>) -> Answer {
    let Some(client) = look.cluster.client else {
        return skipped("nobody asked for a certain client (--from)").into();
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
            Finding::new(Code::D404, format!("port {port}: {client} is in none of {}", some_of(&networks, 5)))
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
        // That is a matter of the node, or of the name.
        DialResult::ClosedSilently if header => return None,
        DialResult::NoName(_) => return None,
        DialResult::ClosedSilently => {
            failed(format!("{node}: {to} closed the connection without a byte"), "closed")
        }
        DialResult::TimedOut => failed(format!("{node}: nobody answers at {to}"), "no answer in time"),
        DialResult::Refused(how) => failed(format!("{node}: {to} refused the connection"), how),
        DialResult::NotDialled(cause) => {
            unknown(format!("{node}: nobody dialled: {cause}")).about(Scope::default(), Stops::Nobody)
        }
    })
}

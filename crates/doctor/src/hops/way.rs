//! Hop 4: the way to the load balancer.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::look::Look;
use crate::code::Code;
use crate::facts::{Dial, DialResult};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::policy::{Destination, shut_in};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use openstack_ccm_core::text::some_of;
use serde_json::json;

pub(super) fn judge(look: &Look<'_>) -> Vec<Check> {
    let mut checks = dials(look);
    if look.short_circuit() {
        checks.push(skipped("packets from inside do not leave the nodes"));
        return checks;
    }
    checks.extend(policies(look));
    checks.push(ranges(look));
    checks
}

fn policies(look: &Look<'_>) -> Vec<Check> {
    let policies = match &look.cluster.policies {
        Ok(policies) => policies,
        Err(cause) => return vec![unknown(format!("NetworkPolicies cannot be read: {cause}"))],
    };
    let empty = BTreeMap::new();
    let selector = look.facts.service.spec.as_ref().and_then(|spec| spec.selector.as_ref()).unwrap_or(&empty);
    let addresses = look.entries.iter().filter_map(|entry| entry.ip.as_ref()?.parse::<IpAddr>().ok());
    let ports = look.ports().iter().filter(|port| port.protocol.as_deref().is_none_or(|one| one == "TCP"));
    let ports: Vec<u16> = ports.filter_map(|port| u16::try_from(port.port).ok()).collect();
    let mut found: BTreeMap<IpAddr, Vec<String>> = BTreeMap::new();
    for address in addresses {
        for port in &ports {
            let to = Destination { address, port: *port, namespace: look.namespace(), selector };
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
            .fix(open_to(policies, &first, &format!("{address}/{width}")))
    };
    let mut checks: Vec<Check> =
        found.into_iter().filter(|(_, names)| !names.is_empty()).map(|one| finding(one).into()).collect();
    if checks.is_empty() {
        // Policies of network plugins with kinds of their own are not read.
        checks.push(ok("no NetworkPolicy keeps pods that use the Service from its address"));
    }
    checks
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

fn ranges(look: &Look<'_>) -> Check {
    let lacking = look.warnings("LoadBalancerSourceRangesLackCluster");
    if let Some(message) = lacking.first() {
        let fix = look.annotate("loadbalancer.openstack.org/allow-cluster-sources=true");
        return Finding::new(Code::D402, "the source ranges keep the cluster's own clients out")
            .seen(look.object(), "LoadBalancerSourceRangesLackCluster", *message)
            .fix(fix)
            .into();
    }
    let spec = look.facts.service.spec.as_ref();
    let restricted = spec
        .and_then(|spec| spec.load_balancer_source_ranges.as_ref())
        .is_some_and(|ranges| !ranges.is_empty());
    match (look.cloud(), restricted) {
        (Ok(_), true) => ok("the source ranges hold the cluster's own clients"),
        (_, false) => ok("the Service has no source ranges"),
        (Err(cause), true) => {
            unknown(format!("whether the source ranges hold the cluster's own clients is not known: {cause}"))
        }
    }
}

fn dials(look: &Look<'_>) -> Vec<Check> {
    let header = matches!(look.path(), Ok(path) if path.header);
    let dials = look.facts.dials.iter().flatten();
    dials.filter_map(|dial| one(dial, header)).collect()
}

fn one(dial: &Dial, header: bool) -> Option<Check> {
    let Dial { node, to, result, milliseconds, source } = dial;
    let failed = |text: String, what: &str| -> Check {
        Finding::new(Code::D403, text)
            .seen(format!("pod on {node}"), "dialled", format!("{to} from {source}: {what}"))
            .on(node)
            .into()
    };
    Some(match result {
        DialResult::Answered(how) => {
            ok(format!("{node}: {to} answered in {milliseconds} ms: {how} (from {source})"))
        }
        // That is a matter of the node, or of the name.
        DialResult::ClosedSilently if header => return None,
        DialResult::NoName(_) => return None,
        DialResult::ClosedSilently => {
            failed(format!("{node}: {to} closed the connection without a byte"), "closed")
        }
        DialResult::TimedOut => failed(format!("{node}: nobody answers at {to}"), "no answer in time"),
        DialResult::Refused(how) => failed(format!("{node}: {to} refused the connection"), how),
        DialResult::NotDialled(cause) => unknown(format!("{node}: nobody dialled: {cause}")),
    })
}

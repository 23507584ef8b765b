//! Hop 1: what a name of the Service resolves to in the cluster.

use std::collections::BTreeSet;

use super::look::Look;
use crate::code::Code;
use crate::facts::{Dial, DialResult};
use crate::finding::{Check, Finding, Fix, ok, unknown};
use crate::leftovers::dns;
use openstack_ccm_core::text::some_of;

pub(super) fn judge(look: &Look<'_>) -> Vec<Check> {
    let mut checks = labels(look);
    checks.extend(unresolved(look));
    let names = match names(look) {
        Ok(names) => names,
        Err(cause) => {
            checks.push(unknown(format!("the names that lead to the Service are not known: {cause}")));
            BTreeSet::new()
        }
    };
    match &look.cluster.dns {
        Err(cause) => checks.push(unknown(format!("the configuration of CoreDNS cannot be read: {cause}"))),
        Ok(texts) => {
            let target = format!("{}.{}.svc", look.name(), look.namespace());
            let lines = dns::lines(texts);
            let led = lines.iter().filter(|line| {
                line.names.iter().any(|name| names.contains(name.as_str()))
                    || line
                        .target
                        .as_ref()
                        .is_some_and(|to| to.starts_with(&target) && !line.names.is_empty())
            });
            for line in led {
                let text = format!("CoreDNS answers {} with {}", some_of(&line.names, 3), line.answer());
                checks.push(
                    Finding::new(Code::D101, text)
                        .seen(format!("ConfigMap {}", line.config_map), line.key.clone(), line.text.clone())
                        .fix(Fix::command(["openstack-ccm", "doctor", "--leftovers"]))
                        .into(),
                );
            }
        }
    }
    checks.extend(aliases(look, &names));
    if checks.is_empty() {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        checks.push(ok(match names.as_slice() {
            [] => "no name is known that leads to the Service, and no line of CoreDNS leads there".to_owned(),
            names => format!("nothing in the cluster answers {} by hand", some_of(names, 3)),
        }));
    }
    checks
}

/// Names that lead to the Service: its hostnames, and those of Ingresses that are served at its addresses.
fn names(look: &Look<'_>) -> Result<BTreeSet<String>, String> {
    let places = look.destinations();
    let hostnames = look.entries.iter().filter_map(|entry| entry.hostname.clone());
    let served = look.cluster.names.as_ref().map_err(Clone::clone)?;
    let served = served.iter().filter(|name| name.at.iter().any(|place| places.contains(place)));
    Ok(hostnames.chain(served.map(|name| name.host.clone())).collect())
}

fn labels(look: &Look<'_>) -> Vec<Check> {
    let local = [".local", ".localdomain", ".localhost", ".invalid"];
    let is_label = |name: &&String| !name.contains('.') || local.iter().any(|suffix| name.ends_with(suffix));
    let hostnames = look.entries.iter().filter_map(|entry| entry.hostname.as_ref());
    let finding = |name: &String| {
        Finding::new(Code::D103, format!("no resolver outside can know {name}")).seen(
            look.object(),
            "status.loadBalancer.ingress[].hostname",
            name,
        )
    };
    hostnames.filter(is_label).map(|name| finding(name).into()).collect()
}

/// What pods that dialled could not resolve.
fn unresolved(look: &Look<'_>) -> Option<Check> {
    let failed = |dial: &&Dial| matches!(dial.result, DialResult::NoName(_));
    let dials: Vec<&Dial> = look.facts.dials.iter().flatten().filter(failed).collect();
    let first = dials.first()?;
    let DialResult::NoName(cause) = &first.result else { return None };
    let nodes: Vec<&str> = dials.iter().map(|dial| dial.node.as_str()).collect();
    let text = format!("pods on {} cannot resolve {}", some_of(&nodes, 3), first.to);
    Some(Finding::new(Code::D102, text).seen(format!("pod on {}", first.node), "resolver", cause).into())
}

fn aliases(look: &Look<'_>, names: &BTreeSet<String>) -> Vec<Check> {
    let workloads = match &look.cluster.workloads {
        Ok(workloads) => workloads,
        Err(cause) => return vec![unknown(format!("hostAliases of pods cannot be read: {cause}"))],
    };
    let mut found = Vec::new();
    for workload in workloads {
        for (address, hosts) in &workload.host_aliases {
            let led: Vec<&String> = hosts.iter().filter(|host| names.contains(*host)).collect();
            if led.is_empty() || look.destinations().contains(address) {
                continue;
            }
            let text = format!("pods of {} go to {address} for {}", workload.title(), some_of(&led, 3));
            found.push(
                Finding::new(Code::D101, text)
                    .seen(workload.title(), "hostAliases", format!("{address} {}", some_of(hosts, 5)))
                    .into(),
            );
        }
    }
    found
}

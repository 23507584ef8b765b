//! Hop 3: what the service proxies on the nodes make of the status.

use std::collections::BTreeMap;

use super::look::Look;
use crate::code::Code;
use crate::facts::{DialResult, NodeFact};
use crate::finding::{Check, Finding, ok, skipped, unknown};
use openstack_ccm_core::text::some_of;

/// Nodes that are named; the others are counted.
const MOST: usize = 5;

pub(super) fn judge(look: &Look<'_>) -> Vec<Check> {
    if look.entries.is_empty() {
        return vec![skipped("nothing is published")];
    }
    if look.short_circuit() {
        return vec![skipped("the status lets every node short-circuit")];
    }
    if !look.by_proxy() {
        return vec![ok("service proxies leave hostnames alone")];
    }
    let mut checks = closed(look);
    let nodes = match &look.cluster.nodes {
        Ok(nodes) => nodes,
        Err(cause) => {
            checks.push(unknown(format!("the nodes cannot be read: {cause}")));
            return checks;
        }
    };
    let needs = match look.path() {
        Ok(path) => path.needs.is_some(),
        Err(_) => true,
    };
    for ((honours, source, measured, cause), names) in groups(nodes) {
        let named = some_of(&names, MOST);
        let how = if measured { format!("measured by {source}") } else { format!("by {source}, a guess") };
        if honours {
            checks.push(ok(format!("{named}: through the load balancer ({how}: {cause})")));
        } else if needs {
            checks.push(
                Finding::new(Code::D301, format!("{named}: short circuit ({how}: {cause})"))
                    .seen(format!("node {}", names[0]), source, cause)
                    .fix("upgrade the service proxy of these nodes, then measure it: openstack-ccm canary --once")
                    .on(names[0])
                    .into(),
            );
        } else {
            checks.push(ok(format!("{named}: short circuit, which does no harm here ({how}: {cause})")));
        }
    }
    if nodes.is_empty() {
        checks.push(unknown("the cluster has no nodes"));
    }
    checks
}

type Group<'a> = (bool, &'a str, bool, &'a str);

/// Nodes of which the same is held.
fn groups(nodes: &[NodeFact]) -> BTreeMap<Group<'_>, Vec<&str>> {
    let mut groups: BTreeMap<Group<'_>, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        let group = (node.honours, node.source.as_str(), node.measured, node.cause.as_str());
        groups.entry(group).or_default().push(&node.name);
    }
    groups
}

/// Nodes whose pod was hung up on without a byte, as an application does that misses the header.
fn closed(look: &Look<'_>) -> Vec<Check> {
    let header = matches!(look.path(), Ok(path) if path.header);
    let dials = look.facts.dials.iter().flatten();
    dials
        .filter(|dial| header && dial.result == DialResult::ClosedSilently)
        .map(|dial| {
            let text = format!(
                "{}: the connection to {} was closed without a byte, as an application does that misses the header",
                dial.node, dial.to
            );
            Finding::new(Code::D301, text)
                .seen(format!("pod on {}", dial.node), "dialled", format!("{} from {}", dial.to, dial.source))
                .on(&dial.node)
                .into()
        })
        .collect()
}

//! Hop 3: how the service proxies on the nodes treat the published entries.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::behind::endpoints;
use super::look::Look;
use crate::MAX_NAMES;
use crate::code::{Code, Stops};
use crate::facts::Basis;
use crate::finding::{Check, Finding, ok, skipped, unknown, unseen};
use crate::hop::Scope;
use crate::leftovers::external_ips_of;
use crate::question::{Answer, questions, read};
use openstack_ccm_core::text::some_of;
use openstack_ccm_manager::dial::DialResult;

questions! {
    Questions at Node {
        /// How the service proxy of each node treats the published entries.
        proxies,
        /// The results of dials by pods on the nodes.
        dialled,
        /// Whether source ranges admit clients in the cluster, where nodes short-circuit and so apply the ranges themselves.
        ranges,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let nothing = |text: &str| Questions::all(skipped(text));
    if look.entries.is_empty() {
        return nothing("nothing is published");
    }
    if look.short_circuit() && !look.by_proxy() {
        return Questions { ranges: ranges(look), ..nothing("the status lets every node short-circuit") };
    }
    if !look.by_proxy() {
        return Questions {
            proxies: ok("service proxies do not short-circuit hostnames").into(),
            ..nothing("no address is published")
        };
    }
    let dialled = Answer::found(closed(look), || skipped("no pod missed the header"));
    Questions { proxies: proxies(look).into(), dialled, ranges: ranges(look) }
}

fn proxies(look: &Look<'_>) -> Result<Answer, Answer> {
    read(&look.cluster.nodes, "the nodes cannot be read", Stops::All)?;
    let needs = look.needs_load_balancer();
    let all = look.cluster.live_nodes().all(|node| !node.honours && node.basis != Basis::Guessed);
    let judge = |((honours, basis, source, cause), names): (Group<'_>, Vec<&str>)| -> Check {
        let named = some_of(&names, MAX_NAMES);
        let how = match basis {
            Basis::Measured => format!("measured by {source}"),
            Basis::Shown => format!("by {source}"),
            Basis::Guessed => format!("by {source}, a guess"),
        };
        if honours && basis == Basis::Guessed && needs {
            return unseen(format!("what the service proxy of {named} does ({cause})"))
                .about(Scope::default(), Stops::Inside);
        }
        if honours {
            return ok(format!("{named}: through the load balancer ({how}: {cause})"));
        }
        if !needs {
            return ok(format!("{named}: short circuit, which does no harm here ({how}: {cause})"));
        }
        let verb = if basis == Basis::Guessed { "probably short-circuits" } else { "short-circuits" };
        Finding::new(Code::D301, format!("{named}: {verb} ({how}: {cause})"))
            .surely(all)
            .seen(format!("node {}", names[0]), source, cause)
            .fix("upgrade the service proxy of these nodes, then measure it: openstack-ccm canary --once")
            .on(names[0])
            .into()
    };
    Ok(Answer::each(groups(look), || unknown("the cluster has no nodes"), judge))
}

/// Judges the source ranges, which a node that short-circuits an address applies to its pods and its own processes.
fn ranges(look: &Look<'_>) -> Answer {
    let spec = look.facts.service.spec.as_ref();
    let ranges = spec.and_then(|spec| spec.load_balancer_source_ranges.as_ref());
    let ranges: Vec<IpNet> =
        ranges.into_iter().flatten().filter_map(|range| range.trim().parse().ok()).collect();
    let mut around = look.around.clone();
    // They do not count for `externalIPs`.
    around.retain(|to, _| external_ips_of(&look.facts.service).all(|ip| ip != to));
    if ranges.is_empty() || around.is_empty() {
        return skipped("nodes apply no source ranges").into();
    }
    // The pods behind the Service stand for the other pods, whose addresses are in the same networks.
    let pods = look.facts.slices.iter().flatten().flat_map(endpoints);
    let mut pods = pods.flat_map(|one| &one.addresses).filter_map(|one| one.parse().ok());
    let is_in = |address: IpAddr| ranges.iter().any(|range| range.contains(&address));
    let (pods_in, nodes_in) = (pods.any(is_in), look.cluster.node_addresses().any(is_in));
    if pods_in && nodes_in {
        return ok("the source ranges include the cluster's own clients").into();
    }
    let shown: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    let who = match (pods_in, nodes_in) {
        (false, true) => "pods",
        (true, false) => "nodes",
        _ => "pods and nodes",
    };
    let finding = Finding::new(
        Code::D305,
        format!("nodes accept connections only from {}, which does not include {who}", some_of(&shown, 3)),
    )
    .seen("Service", "spec.loadBalancerSourceRanges", some_of(&shown, 5));
    let finding = if nodes_in { finding.stops(Stops::Pods) } else { finding.surely(!pods_in) };
    let of_each = |(to, all): (String, bool)| {
        let surely = finding.surely && all;
        finding.clone().to(to).surely(surely).into()
    };
    Answer::each(around, || skipped("nodes apply no source ranges"), of_each)
}

type Group<'a> = (bool, Basis, &'a str, &'a str);

/// Groups the nodes by the verdict on their service proxies.
fn groups<'a>(look: &Look<'a>) -> BTreeMap<Group<'a>, Vec<&'a str>> {
    let mut groups: BTreeMap<Group<'_>, Vec<&str>> = BTreeMap::new();
    for node in look.cluster.live_nodes() {
        let group = (node.honours, node.basis, node.source.as_str(), node.cause.as_str());
        groups.entry(group).or_default().push(&node.name);
    }
    groups
}

/// Finds nodes whose pod got its connection closed without a byte, as by an application that misses the header.
fn closed(look: &Look<'_>) -> Vec<Check> {
    let header = matches!(look.path(), Ok(path) if path.header);
    let dials = look.facts.dials.iter().flatten();
    dials
        .filter(|dial| header && dial.result == DialResult::ClosedSilently)
        .map(|dial| {
            let text = format!(
                "{}: the connection to {} was closed without any data, probably because the PROXY \
                 protocol header was missing",
                dial.node, dial.to
            );
            Finding::new(Code::D301, text)
                .seen(format!("pod on {}", dial.node), "dialled", format!("{} from {}", dial.to, dial.source))
                .on(&dial.node)
                .into()
        })
        .collect()
}

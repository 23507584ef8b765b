//! The changes that the controller would make to the load balancer.

use std::net::IpAddr;

use crate::code::{Code, Stops};
use crate::facts::{Change, CloudFacts};
use crate::finding::{Check, Finding, ok};
use crate::hop::Port;
use crate::hops::header::{is_about_protocol, is_wrong};
use crate::hops::look::{Look, listener_of};
use crate::question::Answer;

/// Attributes of a listener that affect packets.
const MET: [&str; 6] = [
    "protocol",
    "default_pool",
    "allowed_cidrs",
    "default_tls_container_ref",
    "sni_container_refs",
    "insert_headers",
];

/// Finds planned changes that affect packets.
pub(super) fn planned(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let changes = relevant(look, cloud);
    let found = changes.iter().filter_map(|change| on_the_way(look, cloud, change));
    Answer::found(found.map(Check::from).collect(), || ok("listeners and pools are as the Service asks for"))
}

/// Returns the changes to judge here: none for a Service that is being deleted, which asks for nothing.
fn relevant<'a>(look: &Look<'_>, cloud: &'a CloudFacts) -> Vec<&'a Change> {
    if look.is_being_deleted() {
        return Vec::new();
    }
    cloud.changes.iter().filter(|change| !is_about_protocol(change, &cloud.changes)).collect()
}

fn port_named(look: &Look<'_>, name: &str) -> Option<Port> {
    look.ports().map(|(port, _)| port).find(|port| port.to_string() == name)
}

fn on_the_way(look: &Look<'_>, cloud: &CloudFacts, change: &Change) -> Option<Finding> {
    let seen = |finding: Finding| finding.seen(look.object(), "plan", change.line());
    match change.kind.as_str() {
        "listener" if change.mark == "-" => None,
        "listener" => {
            let port = port_named(look, &change.name)?;
            let is_missing = listener_of(cloud, port).is_none();
            let field = |name: &str| change.fields.iter().find(|field| field.name == name);
            if is_missing || (change.mark == "~" && !MET.iter().any(|name| field(name).is_some())) {
                return None;
            }
            let at = |finding: Finding| finding.at(port);
            if change.mark == "~"
                && let Some(ranges) = field("allowed_cidrs")
            {
                let text = format!(
                    "allowed_cidrs of the listener of port {} differ from the source ranges that the \
                     Service asks for: {}",
                    change.name, ranges.text
                );
                return Some(at(seen(Finding::new(Code::D511, text))));
            }
            let only_leads_elsewhere = change.mark == "~"
                && MET.iter().all(|name| field(name).is_some() == (*name == "default_pool"));
            // A pool of another protocol is reported by the hop of the header.
            if only_leads_elsewhere && is_wrong(look, cloud, port) {
                return None;
            }
            let text = match field("default_pool") {
                Some(_) if change.mark == "~" => {
                    format!(
                        "the listener of port {} leads to another pool than the Service asks for",
                        change.name
                    )
                }
                _ => format!("the listener of port {} differs from what the Service asks for", change.name),
            };
            Some(at(seen(Finding::new(Code::D503, text))))
        }
        "floating IP" => {
            let vip = only_vip(look, cloud);
            let may_serve = change.mark.contains('~') && (vip.is_none() || !cloud.floating.is_empty());
            if may_serve || is_said_astray(look, cloud) {
                return None;
            }
            let text = "the floating IP of the load balancer is not as the Service asks for".to_owned();
            let finding = seen(Finding::new(Code::D509, text));
            Some(match vip {
                // Clients in the VIP's network need no floating IP.
                Some(vip) => finding.to(vip.to_string()).stops(Stops::Outside),
                None => finding.surely(false),
            })
        }
        _ => None,
    }
}

/// Returns whether a check for the address already reports that the floating IP leads elsewhere.
fn is_said_astray(look: &Look<'_>, cloud: &CloudFacts) -> bool {
    let only_vip = only_vip(look, cloud).is_some() && !cloud.astray.is_empty();
    only_vip || look.addresses().any(|address| cloud.astray.contains_key(&address))
}

/// Returns the VIP's address, if it is the only published entry.
pub(super) fn only_vip(look: &Look<'_>, cloud: &CloudFacts) -> Option<IpAddr> {
    let [entry] = look.entries.as_slice() else { return None };
    let address: IpAddr = entry.ip.as_ref()?.parse().ok()?;
    let is_known = cloud.addresses.as_ref()?.as_ref().ok()?.contains(&address);
    (is_known && address.is_ipv4() && !cloud.floating.contains(&address)).then_some(address)
}

/// Attributes that mark the owner of an object; clients do not notice them.
const NAMES: [&str; 3] = ["tags", "description", "name"];

/// Finds planned changes that no packet notices.
pub(super) fn repairs(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let found = relevant(look, cloud).into_iter().filter_map(|change| {
        let kind = change.kind.as_str();
        let in_cloud =
            ["load balancer", "listener", "pool", "health monitor", "floating IP", "security group"];
        let is_here =
            in_cloud.iter().any(|known| kind.starts_with(known)) && !matches!(kind, "members" | "member");
        let only_names =
            change.mark == "~" && change.fields.iter().all(|field| NAMES.contains(&field.name.as_str()));
        let is_missing = kind == "listener"
            && port_named(look, &change.name).is_some_and(|port| listener_of(cloud, port).is_none());
        if !is_here
            || only_names
            || is_missing
            || on_the_way(look, cloud, change).is_some()
            || kind == "floating IP" && is_said_astray(look, cloud)
        {
            return None;
        }
        let verb = match change.mark.as_str() {
            "+" => "is missing",
            "-" => "is not asked for",
            _ => "differs from what the Service asks for",
        };
        let text = format!("{} {verb}", format!("{kind} {}", change.name).trim_end());
        Some(Finding::new(Code::D507, text).seen(look.object(), "plan", change.line()).into())
    });
    Answer::found(found.collect(), || ok("the controller would change nothing else"))
}

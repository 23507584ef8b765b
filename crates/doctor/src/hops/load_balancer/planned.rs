//! The changes that the controller would make to the load balancer.

use std::net::IpAddr;

use openstack_ccm_openstack_api::dry_run::{Difference, Fate, Kind, ObjectChange};

use crate::code::{Code, Stops};
use crate::facts::{CloudFacts, transport};
use crate::finding::{Check, Finding, ok};
use crate::hop::Port;
use crate::hops::header::{is_about_protocol, is_wrong};
use crate::hops::look::Look;
use crate::question::Answer;

const POOL: &str = "default_pool_id";
const RANGES: &str = "allowed_cidrs";
/// Attributes of a listener that affect packets.
const MET: [&str; 6] =
    ["protocol", POOL, RANGES, "default_tls_container_ref", "sni_container_refs", "insert_headers"];

/// Finds planned changes that affect packets.
pub(super) fn planned(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let found = relevant(look, cloud).filter_map(|change| on_the_way(look, cloud, change));
    Answer::found(found.map(Check::from).collect(), || ok("listeners and pools are as the Service asks for"))
}

/// Returns the changes to judge here: none for a Service that is being deleted, which asks for nothing.
fn relevant<'a>(look: &Look<'_>, cloud: &'a CloudFacts) -> impl Iterator<Item = &'a ObjectChange> {
    let asks = !look.is_being_deleted();
    cloud.changes.iter().filter(move |change| asks && !is_about_protocol(change, cloud))
}

fn on_the_way(look: &Look<'_>, cloud: &CloudFacts, change: &ObjectChange) -> Option<Finding> {
    let finding = match change.kind {
        Kind::Listener => listener(look, cloud, change),
        Kind::FloatingIp => floating_ip(look, cloud, change),
        _ => None,
    };
    finding.map(|finding| finding.seen("openstack-ccm", "would change", change.to_string()))
}

/// Returns the port of the Service at which a listener is, if there is one.
fn port_of(look: &Look<'_>, change: &ObjectChange) -> Option<Port> {
    let object = change.object();
    let number = object["protocol_port"].as_u64().and_then(|number| u16::try_from(number).ok())?;
    let protocol = transport(object["protocol"].as_str().unwrap_or_default());
    look.ports().map(|(port, _)| port).find(|port| *port == Port { number, protocol })
}

fn listener(look: &Look<'_>, cloud: &CloudFacts, change: &ObjectChange) -> Option<Finding> {
    let port = port_of(look, change)?;
    // The question whether each port has a listener names those that are missing.
    cloud.listener(port)?;
    let differences = change.differences();
    let met: Vec<&Difference<'_>> = differences.iter().filter(|one| MET.contains(&one.name)).collect();
    let is_met = |name: &str| met.iter().any(|one| one.name == name);
    let (code, what) = match (change.fate(), met.iter().find(|one| one.name == RANGES)) {
        (Fate::Deleted, _) => return None,
        (Fate::Changed, Some(ranges)) => {
            let what = "admits other networks than the source ranges that the Service asks for";
            (Code::D511, format!("{what}: {ranges}"))
        }
        (Fate::Changed, None) if met.is_empty() => return None,
        // A pool of another protocol is reported by the hop of the header.
        (Fate::Changed, None) if is_met(POOL) && met.len() == 1 && is_wrong(look, cloud, port) => {
            return None;
        }
        (Fate::Changed, None) if is_met(POOL) => {
            (Code::D503, "leads to another pool than the Service asks for".to_owned())
        }
        _ => (Code::D503, "differs from what the Service asks for".to_owned()),
    };
    Some(Finding::new(code, format!("the listener of port {port} {what}")).at(port))
}

fn floating_ip(look: &Look<'_>, cloud: &CloudFacts, change: &ObjectChange) -> Option<Finding> {
    let vip = only_vip(look, cloud);
    let may_serve = change.fate() == Fate::Changed && (vip.is_none() || !cloud.floating().is_empty());
    if may_serve || is_said_astray(look, cloud) {
        return None;
    }
    let finding =
        Finding::new(Code::D509, "the floating IP of the load balancer is not as the Service asks for");
    Some(match vip {
        // Clients in the VIP's network need no floating IP.
        Some(vip) => finding.to(vip.to_string()).stops(Stops::Outside),
        None => finding.surely(false),
    })
}

/// Returns whether a check for the address already reports that the floating IP leads elsewhere.
fn is_said_astray(look: &Look<'_>, cloud: &CloudFacts) -> bool {
    let astray = cloud.astray();
    let only_vip = only_vip(look, cloud).is_some() && !astray.is_empty();
    only_vip || look.addresses().any(|address| astray.contains_key(&address))
}

/// Returns the VIP's address, if it is the only published entry.
pub(super) fn only_vip(look: &Look<'_>, cloud: &CloudFacts) -> Option<IpAddr> {
    let [entry] = look.entries else { return None };
    let address: IpAddr = entry.ip.as_ref()?.parse().ok()?;
    let is_known = cloud.addresses().ok()?.contains(&address);
    (is_known && address.is_ipv4() && !cloud.floating().contains(&address)).then_some(address)
}

/// Attributes that mark the owner of an object; clients do not notice them.
const NAMES: [&str; 3] = ["tags", "description", "name"];

/// Returns whether a change is about nothing else.
pub(in crate::hops) fn only_names(change: &ObjectChange) -> bool {
    change.fate() == Fate::Changed && change.differences().iter().all(|one| NAMES.contains(&one.name))
}

/// Finds planned changes that no packet notices.
pub(super) fn repairs(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let found = relevant(look, cloud).filter(|change| is_repair(look, cloud, change)).map(|change| {
        let verb = match change.fate() {
            Fate::Created => "is missing",
            Fate::Deleted => "is not asked for",
            Fate::Changed | Fate::Replaced => "differs from what the Service asks for",
        };
        let text = format!("{} {verb}", format!("{} {}", change.kind, change.name()).trim_end());
        Finding::new(Code::D507, text).seen("openstack-ccm", "would change", change.to_string()).into()
    });
    Answer::found(found.collect(), || ok("the controller would change nothing else"))
}

fn is_repair(look: &Look<'_>, cloud: &CloudFacts, change: &ObjectChange) -> bool {
    let is_elsewhere = match change.kind {
        // The hop of the members judges them; the cluster's routes concern no Service.
        Kind::Member | Kind::Router | Kind::Port => true,
        Kind::Listener => {
            let port = port_of(look, change);
            change.before.is_none() && port.is_some_and(|port| cloud.listener(port).is_none())
        }
        Kind::FloatingIp => is_said_astray(look, cloud),
        Kind::LoadBalancer
        | Kind::Pool
        | Kind::HealthMonitor
        | Kind::SecurityGroup
        | Kind::SecurityGroupRule => false,
    };
    !only_names(change) && !is_elsewhere && on_the_way(look, cloud, change).is_none()
}

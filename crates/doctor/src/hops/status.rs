//! Hop 2: the published entries.

use std::net::IpAddr;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};

use super::controller::{self, last_writer};
use super::look::{Look, all_shown, destination, is_behind, is_short_circuited, listed, port_of, shown};
use crate::code::{Code, Stops};
use crate::facts::{CloudFacts, Forecast, PathFact, ServedBy, entries, name_of};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::leftovers::{external_ips_of, without_external_ip};
use crate::question::{Answer, questions, read};

const FIELD: &str = "status.loadBalancer.ingress";
/// The tolerated difference between the clocks of two machines.
const CLOCKS: SignedDuration = SignedDuration::from_secs(30);

questions! {
    Questions at Status {
        /// Whether anything is published.
        published,
        /// Whether the published addresses are the load balancer's.
        addresses,
        /// Whether nodes do not short-circuit the addresses where they must not.
        modes,
        /// The entries that the controller would publish.
        wanted,
        /// Which program writes the status.
        writers,
        /// Whether other Services with the same address publish it in the same mode.
        shared,
        /// Whether a Service has the address in `externalIPs`, by which nodes short-circuit it whatever its mode is.
        external_ips,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    if look.entries.is_empty() {
        let nothing = skipped("nothing is published");
        return Questions { published: unpublished(look).into(), ..Questions::all(nothing) };
    }
    Questions {
        published: ok(format!("published: {}", all_shown(look.entries))).into(),
        addresses: addresses(look),
        modes: modes(look).into(),
        wanted: would_publish(look),
        writers: writers(look).into(),
        shared: shared(look).into(),
        external_ips: external_ips(look),
    }
}

fn unpublished(look: &Look<'_>) -> Check {
    if let Some(age) = controller::age_while_made(look) {
        let seconds = age.as_secs();
        let why = controller::waits(look)
            .map_or_else(|| "run doctor again later".to_owned(), |event| event.message.clone());
        return unknown(format!("the Service is {seconds} s old, and the controller is at work: {why}"));
    }
    let mut finding =
        Finding::new(Code::D206, "the Service has no address yet").seen(look.object(), FIELD, "empty");
    if let Some(event) = controller::waits(look) {
        finding = finding.seen(look.object(), format!("Event of {}", event.source), event.message.clone());
    }
    match look.facts.cloud.as_ref().map(|cloud| &cloud.forecast) {
        Ok(Forecast::Waits(cause)) => finding.seen("openstack-ccm", "waits for", cause).into(),
        Ok(Forecast::Refused(cause)) => finding.seen("openstack-ccm", "refuses", cause).into(),
        _ => finding.into(),
    }
}

/// Judges the published addresses; the hop of the name judges the addresses of hostnames.
fn addresses(look: &Look<'_>) -> Answer {
    let published = look.addresses();
    Answer::each(published, || skipped("no address is published"), |address| address_of(look, address))
}

fn address_of(look: &Look<'_>, address: IpAddr) -> Check {
    let doubt = |check: Check| check.about(Scope::to(address.to_string()), Stops::All);
    let cloud = match look.cloud() {
        Ok(cloud) => cloud,
        Err(check) => return doubt(*check),
    };
    if cloud.load_balancer.is_none() {
        return skipped("there is no load balancer");
    }
    let known = match cloud.addresses() {
        Ok(known) => known,
        Err(cause) => {
            return doubt(unknown(format!("the addresses of the load balancer are not known: {cause}")));
        }
    };
    let seen = |finding: Finding| finding.seen(look.object(), FIELD, address.to_string());
    if known.contains(&address) {
        let is_it =
            |entry: &LoadBalancerIngress| entry.ip.as_ref().and_then(|ip| ip.parse().ok()) == Some(address);
        let planned = cloud.would_publish.as_ref().filter(|_| !look.is_being_deleted());
        let other = planned.filter(|entries| !entries.iter().any(is_it));
        let Some(needed) = needed_in_place(look, cloud, other, address) else {
            return ok(format!("{address} is the load balancer's"));
        };
        let text = format!("{address} is the load balancer's, but clients outside the cluster need {needed}");
        let mut finding = seen(Finding::new(Code::D207, text));
        if let Some(entries) = other {
            finding = finding.seen("openstack-ccm", "would publish", all_shown(entries));
        }
        return finding.to(address.to_string()).stops(Stops::Outside).into();
    }
    // The hop of the load balancer judges a floating IP that leads elsewhere or is gone.
    if cloud.astray().contains_key(&address) {
        return skipped(format!("{address} is a floating IP: see the load balancer"));
    }
    let text = format!("{address} is not an address of the load balancer");
    let mut finding = seen(Finding::new(Code::D207, text)).seen("load balancer", "addresses", listed(&known));
    if let Some(entries) = &cloud.would_publish {
        finding = finding.seen("openstack-ccm", "would publish", all_shown(entries));
    }
    if let Some((writer, _)) = last_writer(look) {
        finding = finding.seen(look.object(), "last writer of the status", writer);
    }
    finding.to(address.to_string()).into()
}

/// Returns what clients outside need in the place of an address of the load balancer: a floating IP in the place of the VIP, which only
/// clients in its network reach.
fn needed_in_place(
    look: &Look<'_>,
    cloud: &CloudFacts,
    planned: Option<&Vec<LoadBalancerIngress>>,
    address: IpAddr,
) -> Option<String> {
    let is_behind = is_behind(cloud, address);
    let planned = planned.filter(|entries| is_behind || entries.iter().any(|entry| entry.ip.is_some()));
    let by_cloud = || (is_behind && look.is_external()).then(|| listed(&cloud.floating()));
    planned.map(|entries| all_shown(entries)).or_else(by_cloud)
}

fn modes(look: &Look<'_>) -> Result<Answer, Answer> {
    let missing = "whether clients have to come through the load balancer is not known";
    let path = read(&look.path, missing, Stops::Inside)?;
    Ok(match &path.needs {
        None if look.short_circuit() => {
            ok("nodes may short-circuit: clients need nothing that the load balancer adds").into()
        }
        None => ok("nodes do not short-circuit it").into(),
        Some(needs) => needed(look, path, needs),
    })
}

/// Judges the modes where clients have to come through the load balancer.
fn needed(look: &Look<'_>, path: &PathFact, needs: &str) -> Answer {
    let around: Vec<&LoadBalancerIngress> = look.short_circuited().collect();
    if around.is_empty() {
        return ok(format!("nodes do not short-circuit it, and {needs}")).into();
    }
    if !look.needs_load_balancer() {
        return ok("nodes may short-circuit, and the application takes connections without the header")
            .into();
    }
    if look.cluster.keeps_mode == Ok(false) {
        return dropped(look, needs).into();
    }
    Answer::each(
        around,
        || ok("nodes do not short-circuit it"),
        |entry| short_circuited(look, path, needs, entry),
    )
}

fn short_circuited(look: &Look<'_>, path: &PathFact, needs: &str, entry: &LoadBalancerIngress) -> Check {
    let to = destination(entry).unwrap_or_default();
    if entry.hostname.is_some() {
        let text = format!("{}: nodes short-circuit the address, but {needs}", shown(entry));
        return Finding::new(Code::D203, text)
            .seen(look.object(), FIELD, shown(entry))
            .to(to)
            .fix(remedy(look))
            .into();
    }
    let mut finding =
        Finding::new(Code::D201, format!("{}: nodes short-circuit it, but {needs}", shown(entry)))
            .seen(look.object(), FIELD, shown(entry))
            .seen(look.object(), "the path", path.source.clone());
    if let Some((writer, time)) = last_writer(look) {
        let time = time.map(|time| format!(" at {time}")).unwrap_or_default();
        finding = finding.seen(look.object(), "last writer of the status", format!("{writer}{time}"));
    }
    if let Some((entries, reason, warnings)) = wanted(look) {
        finding =
            finding.seen("openstack-ccm", "would publish", format!("{}: {reason}", all_shown(&entries)));
        for warning in warnings {
            finding = finding.seen("openstack-ccm", "would warn", warning);
        }
    }
    finding.to(to).fix(remedy(look)).into()
}

/// Returns the entries that the controller would publish: from its plan, which knows the addresses, or else from its rules.
fn wanted<'a>(look: &'a Look<'_>) -> Option<(Vec<LoadBalancerIngress>, &'a str, &'a [String])> {
    if !look.is_ours() {
        return None;
    }
    let wanted = look.facts.wanted.as_ref().ok()?;
    let planned = look.facts.cloud.as_ref().ok().and_then(|cloud| cloud.would_publish.clone());
    Some((planned.unwrap_or_else(|| wanted.entries.clone()), &wanted.reason, &wanted.warnings))
}

fn remedy(look: &Look<'_>) -> Fix {
    let ip_mode = "loadbalancer.openstack.org/ip-mode";
    let annotations = look.facts.service.metadata.annotations.iter().flatten();
    if annotations.into_iter().any(|(key, value)| key == ip_mode && value.eq_ignore_ascii_case("vip")) {
        return look.annotate(&format!("{ip_mode}-"));
    }
    match &look.facts.served_by {
        // The controller restores the mode: whoever writes last is another program.
        ServedBy::Ours if look.cluster.controller.as_ref().is_ok_and(|controller| controller.works) => {
            Fix::service(&look.facts.service, "get", &["--output", "yaml", "--show-managed-fields"])
        }
        ServedBy::Ours => {
            "run openstack-ccm as the controller of this Service: it publishes ipMode: Proxy".into()
        }
        ServedBy::AnotherCloud(..) => {
            "run ip-mode-overlay beside the controller of this cloud: it publishes ipMode: Proxy".into()
        }
        ServedBy::Class(class) => {
            let flag = (!class.is_empty()).then(|| format!("--load-balancer-class={class}"));
            let words = ["openstack-ccm".to_owned(), "doctor".to_owned(), look.key()];
            Fix::command(words.into_iter().chain(flag))
        }
    }
}

fn dropped(look: &Look<'_>, needs: &str) -> Finding {
    let text = format!("the API server drops ipMode, so nodes short-circuit, but {needs}");
    Finding::new(Code::D202, text)
        .seen(look.object(), FIELD, all_shown(look.entries))
        .seen("API server", "a status written on trial", "came back without its mode")
        .fix(
            "upgrade the API server to 1.30 or newer, and until then publish a hostname with the annotation \
             loadbalancer.openstack.org/hostname",
        )
}

/// Reports the entries that the controller would publish, where they differ but nothing is defective.
fn would_publish(look: &Look<'_>) -> Answer {
    if !look.is_ours() {
        return skipped("another controller publishes it").into();
    }
    let planned = look.facts.cloud.as_ref().ok().and_then(|cloud| cloud.would_publish.as_ref());
    if let Some(entries) = planned.filter(|_| !look.is_being_deleted()) {
        return ok(format!("openstack-ccm would publish {}", all_shown(entries))).into();
    }
    match &look.facts.wanted {
        Ok(wanted) if wanted.published || wanted.entries.is_empty() => {
            ok("the controller would publish the same").into()
        }
        Ok(wanted) => {
            ok(format!("openstack-ccm would publish {}: {}", all_shown(&wanted.entries), wanted.reason))
                .into()
        }
        // Earlier questions judge the mode and the addresses.
        Err(cause) => skipped(format!("what the controller would publish is not known: {cause}")).into(),
    }
}

/// Finds a writer of the status other than the leader. A program that wrote it before the leader led has ended.
fn writers(look: &Look<'_>) -> Result<Answer, Answer> {
    if !look.is_ours() {
        return Ok(skipped("another controller writes it").into());
    }
    let contested =
        look.facts.events.iter().flatten().find(|event| event.reason == "LoadBalancerStatusContested");
    if let Some(event) = contested {
        let when = event.time.map(|time| format!(" at {time:.0}")).unwrap_or_default();
        let finding = Finding::new(Code::D204, format!("another program wrote the status, too{when}"));
        return Ok(finding.seen(look.object(), "LoadBalancerStatusContested", &event.message).into());
    }
    let controller = read(&look.cluster.controller, "who leads is not known", Stops::Nobody)?;
    let Some(leader) = controller.manager.as_deref().filter(|_| controller.works) else {
        return Ok(skipped("there is no leader whose field manager is known").into());
    };
    let Some((writer, time)) = last_writer(look) else {
        return Ok(skipped("who wrote the status is not recorded").into());
    };
    let is_own = writer.starts_with(leader) || writer.starts_with("ip-mode-overlay");
    let is_old = matches!((time, controller.since), (Some(time), Some(since)) if time <= since + CLOCKS);
    // A user who repaired the status by hand.
    let is_person =
        writer.starts_with("kubectl") && look.facts.wanted.as_ref().is_ok_and(|wanted| wanted.published);
    if is_own || is_old || is_person {
        return Ok(ok(format!("the status was last written by {writer}")).into());
    }
    let time = time.map(|time| format!(" at {time}")).unwrap_or_default();
    let text = format!("{leader} leads, but the status was last written by {writer}{time}");
    Ok(Finding::new(Code::D204, text).seen(look.object(), "metadata.managedFields", writer).into())
}

/// Finds other Services that publish the same address in another mode.
fn shared(look: &Look<'_>) -> Result<Answer, Answer> {
    let missing = "other Services on the address are not known";
    let services = read(&look.cluster.services, missing, Stops::Inside)?;
    let mut found = Vec::new();
    for other in services.iter().filter(|other| name_of(&other.metadata) != look.key()) {
        for theirs in entries(other).iter().filter(|entry| entry.ip.is_some()) {
            let differs = look
                .entries
                .iter()
                .any(|ours| ours.ip == theirs.ip && is_short_circuited(ours) != is_short_circuited(theirs));
            if differs {
                let text = format!("{} publishes {}", name_of(&other.metadata), shown(theirs));
                found.push(
                    Finding::new(Code::D205, text)
                        .seen(format!("Service {}", name_of(&other.metadata)), FIELD, shown(theirs))
                        .seen(look.object(), FIELD, all_shown(look.entries))
                        .into(),
                );
            }
        }
    }
    Ok(Answer::found(found, || ok("no other Service publishes it in another mode")))
}

fn external_ips(look: &Look<'_>) -> Answer {
    let own = std::slice::from_ref(&look.facts.service);
    // Without the Services of the cluster the question about shared addresses is open, too.
    let services = look.cluster.services.as_deref().unwrap_or(own);
    let pods = |service: &Service| {
        (service.metadata.namespace.clone(), service.spec.as_ref().and_then(|spec| spec.selector.clone()))
    };
    let needs = look.needs_load_balancer();
    let mut found = Vec::new();
    for service in services.iter().filter(|other| needs || pods(other) != pods(&look.facts.service)) {
        let spec = service.spec.clone().unwrap_or_default();
        let ports: Vec<Port> = spec.ports.iter().flatten().filter_map(port_of).collect();
        let external: Vec<&String> = external_ips_of(service).collect();
        for flow in look.flows().into_iter().filter(|flow| ports.contains(&flow.port)) {
            let addresses = look.addresses_of(&flow.to);
            let Some(ip) =
                external.iter().copied().find(|ip| ip.parse().is_ok_and(|ip| addresses.contains(&ip)))
            else {
                continue;
            };
            let text = format!(
                "nodes send packets for {ip} to the pods of {}, which has it in externalIPs",
                name_of(&service.metadata)
            );
            let finding = Finding::new(Code::D208, text)
                .seen(format!("Service {}", name_of(&service.metadata)), "spec.externalIPs", ip)
                .fix(without_external_ip(service, ip));
            let is_own = name_of(&service.metadata) == look.key();
            let stops = if is_own { Stops::Bypassing } else { Stops::Inside };
            found.push(finding.at(flow.port).to(flow.to).stops(stops).into());
        }
    }
    Answer::found(found, || ok("no Service has the address in externalIPs"))
}

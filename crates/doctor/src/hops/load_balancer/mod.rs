//! Hop 5: the load balancer: which objects exist and are enabled, and what the controller would change or refuse.

mod planned;

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use openstack_ccm_core::text::some_of;
use openstack_ccm_openstack_api::dry_run::Kind;
use openstack_ccm_openstack_api::octavia::{LoadBalancer, OperatingStatus, ProvisioningStatus};

use super::controller::age_while_made;
use super::look::Look;
use crate::code::{Code, Stops};
use crate::facts::{CloudFacts, Forecast, PoolFact};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::question::{Answer, questions, read};
pub(super) use planned::only_names;
use planned::{only_vip, planned, repairs};

/// How long Octavia may stay in a pending status; its own limits are far shorter.
const PENDING: SignedDuration = SignedDuration::from_mins(15);

/// Warnings of the controller that other hops judge, or that have a code of their own.
const ELSEWHERE: [&str; 7] = [
    "LoadBalancerAddressInExternalIPs",
    "LoadBalancerSourceRangesLackCluster",
    "LoadBalancerLocalWithoutMonitor",
    "LoadBalancerWithoutNodePorts",
    "LoadBalancerIPModeNotHonoured",
    "LoadBalancerBypassRequested",
    UNSUPPORTED,
];
const UNSUPPORTED: &str = "LoadBalancerSettingNotSupported";

questions! {
    Questions at LoadBalancer {
        /// How far the controller gets.
        forecast,
        /// Whether the load balancer exists.
        exists,
        /// Whether the published addresses lead to the load balancer.
        attached,
        /// `admin_state_up` of load balancer, listeners and pools.
        enabled,
        /// `provisioning_status` of all objects.
        provisioning,
        /// `operating_status` of load balancer, listeners and pools.
        operating,
        /// Whether each port has a listener that leads to a pool.
        listeners,
        /// Whether the listeners accept clients of each address family that is published.
        families,
        /// Whether the listeners are as the Service asks for, in all attributes that affect packets.
        planned,
        /// The other changes that the controller would make.
        repairs,
        /// The warnings that the controller would write.
        warnings,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Result<Questions, Answer> {
    let cloud = look.cloud()?;
    let Some(load_balancer) = &cloud.load_balancer else {
        let none = skipped("there is no load balancer");
        let exists = match &cloud.forecast {
            Forecast::Unknown(cause) => {
                unknown(format!("whether there is a load balancer is not known: {cause}"))
            }
            _ if age_while_made(look).is_some() => unknown("the load balancer has not been created yet"),
            _ => Finding::new(Code::D506, "the cloud has no load balancer for the Service")
                .seen(look.object(), "load balancer", "none was found")
                .into(),
        };
        return Ok(Questions {
            forecast: forecast(look, cloud),
            exists: exists.into(),
            warnings: warnings(look, cloud),
            ..Questions::all(none)
        });
    };
    let parts = parts(look, cloud, load_balancer);
    Ok(Questions {
        forecast: forecast(look, cloud),
        exists: summary(cloud, load_balancer).into(),
        attached: attached(look, cloud),
        enabled: enabled(cloud, &parts),
        provisioning: provisioning(look, load_balancer, &parts),
        operating: operating(cloud, &parts),
        listeners: listeners(look, cloud).into(),
        families: families(look, cloud),
        planned: planned(look, cloud),
        repairs: repairs(look, cloud),
        warnings: warnings(look, cloud),
    })
}

/// Judges what stops the controller.
fn forecast(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let check = match &cloud.forecast {
        Forecast::Settled => ok("nothing prevents the controller from serving the Service"),
        Forecast::Waits(cause) => skipped(format!("the controller waits: {cause}")),
        Forecast::Keeps(cause) => Finding::new(
            Code::D512,
            format!("a setting is invalid: {cause}; the load balancer keeps its old value"),
        )
        .seen(look.object(), "openstack-ccm", cause)
        .into(),
        Forecast::Refused(cause) => {
            Finding::new(Code::D505, format!("the controller cannot serve the Service: {cause}"))
                .seen(look.object(), "openstack-ccm", cause)
                // An existing load balancer goes on serving.
                .stops(if cloud.load_balancer.is_some() { Stops::Nobody } else { Stops::Through })
                .into()
        }
        Forecast::Unknown(cause) => unknown(format!("what the controller would do is not known: {cause}")),
    };
    check.into()
}

/// `load balancer kube_service_… with 2 listeners and 2 pools in it (amphora)`
fn summary(cloud: &CloudFacts, load_balancer: &LoadBalancer) -> Check {
    let provider = load_balancer.provider.as_deref().unwrap_or("provider unknown");
    let name = if load_balancer.name.is_empty() { &load_balancer.id } else { &load_balancer.name };
    let count =
        |count: usize, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
    let (listeners, pools) = (count(cloud.listeners().len(), "listener"), count(cloud.pools().len(), "pool"));
    ok(format!("load balancer {name} with {listeners} and {pools} in it ({provider})"))
}

/// Judges whether the floating IPs of the Service lead to this load balancer.
fn attached(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let vip = only_vip(look, cloud);
    let astray = cloud.astray();
    let found = astray.iter().filter_map(|(address, where_to)| {
        let text = format!("{address} is not attached to the load balancer: {where_to}");
        let finding = Finding::new(Code::D509, text);
        let leads_elsewhere =
            |finding: Finding| finding.seen("floating IP", address.to_string(), where_to).into();
        if look.addresses().any(|published| published == *address) {
            let finding = finding.seen(look.object(), "status.loadBalancer.ingress", address.to_string());
            // The published address leads nowhere, for clients from everywhere.
            return Some(leads_elsewhere(finding.stops(Stops::Through).to(address.to_string())));
        }
        // Clients in the network of the VIP need no floating IP.
        Some(leads_elsewhere(finding.stops(Stops::Outside).to(vip?.to_string())))
    });
    Answer::found(found.collect(), || ok("no floating IP of the Service leads elsewhere"))
}

/// A load balancer, or one of its children.
struct Part<'a> {
    kind: Kind,
    id: &'a str,
    name: String,
    provisioning: &'a ProvisioningStatus,
    operating: Option<&'a OperatingStatus>,
    enabled: bool,
    /// The ports whose packets meet it.
    ports: Vec<Port>,
}

impl Part<'_> {
    /// `pool 1234 (name)`
    fn title(&self) -> String {
        let Self { kind, id, name, .. } = self;
        if name.is_empty() { format!("{kind} {id}") } else { format!("{kind} {id} ({name})") }
    }

    fn at_ports(&self, finding: Finding) -> Finding {
        match self.kind {
            Kind::LoadBalancer => finding,
            _ => finding.at_each(self.ports.iter().copied()),
        }
    }

    /// Members have their own hop.
    fn is_here(&self) -> bool {
        matches!(self.kind, Kind::LoadBalancer | Kind::Listener | Kind::Pool)
    }
}

/// Lists the parts that packets of the Service meet; other Services may have listeners on this load balancer.
fn parts<'a>(look: &Look<'_>, cloud: &'a CloudFacts, one: &'a LoadBalancer) -> Vec<Part<'a>> {
    let all: Vec<Port> = look.ports().map(|(port, _)| port).collect();
    let below = |kind: Kind,
                 id: &'a str,
                 name: String,
                 provisioning: &'a ProvisioningStatus,
                 ports: &[Port]| {
        Part { kind, id, name, provisioning, operating: None, enabled: true, ports: ports.to_vec() }
    };
    let mut parts = vec![Part {
        operating: Some(&one.operating_status),
        enabled: one.admin_state_up,
        ..below(Kind::LoadBalancer, &one.id, one.name.clone(), &one.provisioning_status, &all)
    }];
    for listener in cloud.listeners() {
        let is_it = |port: &&Port| cloud.listener(**port).is_some_and(|one| one.id == listener.id);
        let ports: Vec<Port> = all.iter().filter(is_it).copied().collect();
        let name = listener.name.clone();
        parts.push(Part {
            operating: listener.operating_status.as_ref(),
            enabled: listener.admin_state_up,
            ..below(Kind::Listener, &listener.id, name, &listener.provisioning_status, &ports)
        });
    }
    for PoolFact { pool, members, monitor } in cloud.pools() {
        let leads_there = |port: &&Port| cloud.pool(**port).is_some_and(|one| one.pool.id == pool.id);
        let ports: Vec<Port> = all.iter().filter(leads_there).copied().collect();
        parts.push(Part {
            operating: pool.operating_status.as_ref(),
            enabled: pool.admin_state_up,
            ..below(Kind::Pool, &pool.id, pool.name.clone(), &pool.provisioning_status, &ports)
        });
        let of_members = members.iter().map(|fact| {
            below(Kind::Member, &fact.member.id, fact.name(), &fact.member.provisioning_status, &ports)
        });
        let of_monitor = monitor
            .iter()
            .map(|one| below(Kind::HealthMonitor, &one.id, String::new(), &one.provisioning_status, &ports));
        parts.extend(of_members.chain(of_monitor));
    }
    parts.retain(|part| !part.ports.is_empty());
    parts
}

fn enabled(cloud: &CloudFacts, parts: &[Part<'_>]) -> Answer {
    let found = parts.iter().filter(|part| !part.enabled).map(|part| {
        let kind = if part.kind == Kind::LoadBalancer { String::new() } else { part.kind.to_string() };
        let words = ["openstack", "loadbalancer", &kind, "set", "--enable", part.id];
        let fix = Fix::command(words.into_iter().filter(|word| !word.is_empty()));
        let finding = Finding::new(Code::D510, format!("{} is disabled", part.title()));
        part.at_ports(finding.seen(part.title(), "admin_state_up", "false")).fix(fix).into()
    });
    Answer::found(found.collect(), || match &cloud.children {
        Err(cause) => unknown(format!("listeners and pools cannot be read: {cause}")),
        Ok(_) => ok("load balancer, listeners and pools are enabled"),
    })
}

fn provisioning(look: &Look<'_>, load_balancer: &LoadBalancer, parts: &[Part<'_>]) -> Answer {
    let mut found: Vec<Check> = Vec::new();
    for part in parts {
        if *part.provisioning == ProvisioningStatus::Error {
            let text = format!("{} is in ERROR", part.title());
            let whole = format!("ERROR (load balancer: {})", load_balancer.provisioning_status);
            let finding = Finding::new(Code::D501, text).seen(part.title(), "provisioning_status", whole);
            found.push(part.at_ports(finding).into());
        } else if part.provisioning.is_pending() {
            found.push(pending(look, load_balancer, part));
        }
    }
    Answer::found(found, || ok("all of it is ACTIVE"))
}

/// Judges a part that Octavia works on: for as long as it has worked on the load balancer, by the time that it shows.
fn pending(look: &Look<'_>, load_balancer: &LoadBalancer, part: &Part<'_>) -> Check {
    let age = load_balancer
        .updated_at
        .as_deref()
        .and_then(time)
        .map(|since| look.cluster.time.duration_since(since));
    let (title, status) = (part.title(), part.provisioning);
    match age {
        Some(age) if age >= PENDING => {
            Finding::new(Code::D502, format!("{title} has been {status} for {} minutes", age.as_mins()))
                .seen(title, "provisioning_status", status.as_str())
                .into()
        }
        _ => unknown(format!("{title} is {status}: run doctor again when Octavia has finished")),
    }
}

/// Parses a time as Octavia writes it: in UTC, but without a time zone.
fn time(text: &str) -> Option<Timestamp> {
    let time: jiff::civil::DateTime = text.trim_end_matches('Z').parse().ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

/// Finds parts that are offline, because Octavia hears nothing from where they run, or in ERROR. What is disabled takes others with
/// it, and so do members.
fn operating(cloud: &CloudFacts, parts: &[Part<'_>]) -> Answer {
    let any_disabled = parts.iter().any(|part| !part.enabled);
    let off = parts.iter().filter(|part| part.is_here() && part.operating == Some(&OperatingStatus::Offline));
    let found = off.filter(|_| !any_disabled).map(|part| {
        unknown(format!("{} is OFFLINE: Octavia has no status report about it", part.title()))
            .about(Scope { ports: Some(part.ports.iter().copied().collect()), to: None }, Stops::Through)
    });
    let by_members =
        cloud.pools().iter().flat_map(|pool| &pool.members).any(|member| member.idle().is_some());
    let in_error = parts.iter().filter(|part| part.operating == Some(&OperatingStatus::Error));
    let in_error = in_error.filter(|_| !any_disabled && !by_members).map(|part| {
        let finding = Finding::new(Code::D513, format!("{} reports ERROR", part.title()));
        part.at_ports(finding.seen(part.title(), "operating_status", "ERROR")).into()
    });
    Answer::found(found.chain(in_error).collect(), || ok("no enabled part is OFFLINE or in ERROR"))
}

fn listeners(look: &Look<'_>, cloud: &CloudFacts) -> Result<Answer, Answer> {
    read(&cloud.children, "the listeners cannot be read", Stops::All)?;
    let of_ports = Answer::each(
        look.ports(),
        || unknown("the Service has no ports"),
        |(port, _)| {
            let missing = |text: String| -> Check {
                Finding::new(Code::D503, text)
                    .seen(look.object(), "spec.ports", port.to_string())
                    .at(port)
                    .into()
            };
            if cloud.listener(port).is_none() {
                return missing(format!("the load balancer has no listener for port {port}"));
            }
            match cloud.pool(port) {
                Some(_) => ok(format!("listener {port} leads to a pool")),
                None => missing(format!("the listener of port {port} has no pool")),
            }
        },
    );
    Ok(of_ports)
}

/// Finds listeners whose `allowed_cidrs` are of one address family, while an address of the other family is published.
fn families(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let mut found: Vec<Check> = Vec::new();
    for flow in look.flows() {
        let Ok(address) = flow.to.parse::<IpAddr>() else { continue };
        let Some(listener) = cloud.listener(flow.port) else { continue };
        let of_family = |network: &String| network.contains(':') == address.is_ipv6();
        if listener.allowed_cidrs.is_empty() || listener.allowed_cidrs.iter().any(of_family) {
            continue;
        }
        let family = if address.is_ipv6() { "IPv6" } else { "IPv4" };
        let text = format!("the listener of port {} accepts no {family} clients", flow.port);
        let finding = Finding::new(Code::D511, text)
            .seen(format!("listener {}", listener.id), "allowed_cidrs", some_of(&listener.allowed_cidrs, 5))
            .at(flow.port)
            .to(flow.to)
            .stops(Stops::Through)
            .surely(true);
        found.push(finding.into());
    }
    Answer::found(found, || ok("the listeners accept clients of each published IP family"))
}

fn warnings(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let one = |(reason, message): &(String, String)| -> Option<Check> {
        if reason == UNSUPPORTED {
            let provider = cloud.load_balancer.as_ref().and_then(|one| one.provider.as_deref());
            let text = format!(
                "the provider {} does not support everything that the Service asks for",
                provider.unwrap_or_default()
            );
            return Some(Finding::new(Code::D504, text).seen(look.object(), reason, message).into());
        }
        let known = ELSEWHERE.contains(&reason.as_str());
        (!known).then(|| Finding::new(Code::D508, format!("{reason}: {message}")).into())
    };
    Answer::found(cloud.warnings.iter().filter_map(one).collect(), || ok("the controller warns of nothing"))
}

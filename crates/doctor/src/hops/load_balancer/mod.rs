//! Hop 5: the load balancer: which objects exist and are enabled, and what the controller would change or refuse.

mod planned;

use std::net::IpAddr;

use jiff::SignedDuration;
use openstack_ccm_core::text::some_of;

use super::look::{Look, listener_of, pool_of};
use crate::code::{Code, Stops};
use crate::facts::{CloudFacts, CloudObject, Forecast};
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::question::{Answer, questions};
use planned::{only_vip, planned, repairs};

/// How long Octavia may stay in a pending status; its own limits are far shorter.
const PENDING: SignedDuration = SignedDuration::from_mins(15);

/// Warnings of the controller that other hops judge, or that have a code of their own.
const ELSEWHERE: [&str; 6] = [
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

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let cloud = match look.cloud() {
        Ok(cloud) => cloud,
        Err(check) => return Questions::all(&check),
    };
    let Some(load_balancer) = &cloud.load_balancer else {
        let none = skipped("there is no load balancer");
        let exists = match &cloud.forecast {
            Forecast::Unknown(cause) => {
                unknown(format!("whether there is a load balancer is not known: {cause}"))
            }
            _ if look.age_while_made().is_some() => unknown("the load balancer has not been created yet"),
            _ => Finding::new(Code::D506, "the cloud has no load balancer for the Service")
                .seen(look.object(), "load balancer", "none was found")
                .into(),
        };
        return Questions {
            forecast: forecast(look, cloud),
            exists: exists.into(),
            warnings: warnings(look, cloud),
            ..Questions::all(&none)
        };
    };
    Questions {
        forecast: forecast(look, cloud),
        exists: summary(cloud, load_balancer).into(),
        attached: attached(look, cloud),
        enabled: enabled(look, cloud, load_balancer),
        provisioning: provisioning(look, cloud, load_balancer),
        operating: operating(look, cloud, load_balancer),
        listeners: listeners(look, cloud),
        families: families(look, cloud),
        planned: planned(look, cloud),
        repairs: repairs(look, cloud),
        warnings: warnings(look, cloud),
    }
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

/// `load balancer kube_service_… and 4 objects in it (amphora)`
fn summary(cloud: &CloudFacts, load_balancer: &CloudObject) -> Check {
    let count = cloud.children.objects.len();
    let objects = if count == 1 { "1 object".to_owned() } else { format!("{count} objects") };
    let provider = if cloud.provider.is_empty() { "provider unknown" } else { &cloud.provider };
    let name = if load_balancer.name.is_empty() { &load_balancer.id } else { &load_balancer.name };
    ok(format!("load balancer {name} with {objects} in it ({provider})"))
}

/// Judges whether the floating IPs of the Service lead to this load balancer.
fn attached(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let vip = only_vip(look, cloud);
    let found = cloud.astray.iter().filter_map(|(address, where_to)| {
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

/// Returns the ports whose packets meet an object: all ports, except for a listener or a pool.
fn ports_of(look: &Look<'_>, cloud: &CloudFacts, object: &CloudObject) -> Vec<Port> {
    let meets = |port: &Port| {
        let listener = listener_of(cloud, *port);
        match object.kind {
            "listener" => listener.is_some_and(|listener| listener.id == object.id),
            "pool" => listener
                .and_then(|listener| pool_of(cloud, listener))
                .is_some_and(|pool| pool.id == object.id),
            _ => true,
        }
    };
    look.ports().map(|(port, _)| port).filter(meets).collect()
}

/// Returns the objects that packets meet, except members, which have their own hop.
fn met<'a>(
    look: &Look<'_>,
    cloud: &'a CloudFacts,
    load_balancer: &'a CloudObject,
) -> Vec<(&'a CloudObject, Vec<Port>)> {
    let children = cloud.children.objects.iter().filter(|object| matches!(object.kind, "listener" | "pool"));
    std::iter::once(load_balancer)
        .chain(children)
        .map(|object| (object, ports_of(look, cloud, object)))
        // Other Services may have listeners on this load balancer.
        .filter(|(_, ports)| !ports.is_empty())
        .collect()
}

fn at_ports(finding: Finding, ports: &[Port]) -> Finding {
    ports.iter().fold(finding, |finding, port| finding.at(*port))
}

fn enabled(look: &Look<'_>, cloud: &CloudFacts, load_balancer: &CloudObject) -> Answer {
    let disabled = met(look, cloud, load_balancer).into_iter().filter(|(object, _)| object.disabled);
    let found = disabled.map(|(object, ports)| {
        let kind = if object.kind == "load balancer" { "" } else { object.kind };
        let words = ["openstack", "loadbalancer", kind, "set", "--enable", &object.id];
        let fix = Fix::command(words.into_iter().filter(|word| !word.is_empty()));
        let finding = Finding::new(Code::D510, format!("{} is disabled", object.title()));
        at_ports(finding.seen(object.title(), "admin_state_up", "false"), &ports).fix(fix).into()
    });
    Answer::found(found.collect(), || match &cloud.children.trouble {
        Some(trouble) => unknown(format!("listeners and pools cannot be read: {trouble}")),
        None => ok("load balancer, listeners and pools are enabled"),
    })
}

fn provisioning(look: &Look<'_>, cloud: &CloudFacts, load_balancer: &CloudObject) -> Answer {
    let objects = std::iter::once(load_balancer).chain(&cloud.children.objects);
    let mut found: Vec<Check> = Vec::new();
    for object in objects {
        let status = object.provisioning.as_str();
        if status == "ERROR" {
            let text = format!("{} is in ERROR", object.title());
            let below = format!("{} (load balancer: {})", status, load_balancer.provisioning);
            let finding = Finding::new(Code::D501, text).seen(object.title(), "provisioning_status", below);
            let ports = ports_of(look, cloud, object);
            found.push(
                at_ports(finding, if matches!(object.kind, "listener" | "pool") { &ports } else { &[] })
                    .into(),
            );
        } else if status.starts_with("PENDING") {
            found.push(pending(look, object, load_balancer));
        }
    }
    Answer::found(found, || ok("all of it is ACTIVE"))
}

fn pending(look: &Look<'_>, object: &CloudObject, load_balancer: &CloudObject) -> Check {
    // The status tree has no times: its objects have been pending for as long as the load balancer has.
    let since = object.updated.or(load_balancer.updated);
    let age = since.map(|since| look.cluster.time.duration_since(since));
    match age {
        Some(age) if age >= PENDING => {
            let text =
                format!("{} has been {} for {} minutes", object.title(), object.provisioning, age.as_mins());
            Finding::new(Code::D502, text)
                .seen(object.title(), "provisioning_status", object.provisioning.clone())
                .into()
        }
        _ => unknown(format!(
            "{} is {}: run doctor again when Octavia has finished",
            object.title(),
            object.provisioning
        )),
    }
}

/// Finds objects that are enabled but offline: Octavia hears nothing from where they run.
fn operating(look: &Look<'_>, cloud: &CloudFacts, load_balancer: &CloudObject) -> Answer {
    let is_off = |object: &CloudObject| object.operating == "OFFLINE" && !object.disabled;
    let all_disabled = load_balancer.disabled;
    let off =
        met(look, cloud, load_balancer).into_iter().filter(|(object, _)| is_off(object) && !all_disabled);
    // Objects that are offline only because another reported object is disabled are not reported again.
    let found = off
        .filter(|(object, ports)| {
            object.kind == "load balancer" || !ports.iter().all(|port| is_disabled(cloud, *port))
        })
        .map(|(object, ports)| {
            unknown(format!("{} is OFFLINE: Octavia has no status report about it", object.title()))
                .about(Scope { ports: Some(ports.into_iter().collect()), to: None }, Stops::Through)
        });
    let any_disabled = cloud.children.objects.iter().any(|object| object.disabled);
    let found: Vec<Check> = if any_disabled { Vec::new() } else { found.collect() };
    Answer::found(found, || ok("no enabled part is OFFLINE"))
}

fn is_disabled(cloud: &CloudFacts, port: Port) -> bool {
    let Some(listener) = listener_of(cloud, port) else { return false };
    listener.disabled || pool_of(cloud, listener).is_some_and(|pool| pool.disabled)
}

fn listeners(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    if let Some(trouble) = &cloud.children.trouble {
        return unknown(format!("the listeners cannot be read: {trouble}")).into();
    }
    Answer::each(
        look.ports(),
        || unknown("the Service has no ports"),
        |(port, _)| {
            let missing = |text: String| -> Check {
                Finding::new(Code::D503, text)
                    .seen(look.object(), "spec.ports", port.to_string())
                    .at(port)
                    .into()
            };
            let Some(listener) = listener_of(cloud, port) else {
                return missing(format!("the load balancer has no listener for port {port}"));
            };
            match pool_of(cloud, listener) {
                Some(_) => ok(format!("listener {port} leads to a pool")),
                None => missing(format!("the listener of port {port} has no pool")),
            }
        },
    )
}

/// Finds listeners whose `allowed_cidrs` are of one address family, while an address of the other family is published.
fn families(look: &Look<'_>, cloud: &CloudFacts) -> Answer {
    let mut found: Vec<Check> = Vec::new();
    for flow in look.flows() {
        let Ok(address) = flow.to.parse::<IpAddr>() else { continue };
        let Some(listener) = listener_of(cloud, flow.port) else { continue };
        let of_family = |network: &String| network.contains(':') == address.is_ipv6();
        if listener.allowed.is_empty() || listener.allowed.iter().any(of_family) {
            continue;
        }
        let family = if address.is_ipv6() { "IPv6" } else { "IPv4" };
        let text = format!("the listener of port {} accepts no {family} clients", flow.port);
        let finding = Finding::new(Code::D511, text)
            .seen(listener.title(), "allowed_cidrs", some_of(&listener.allowed, 5))
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
            let text = format!(
                "the provider {} does not support everything that the Service asks for",
                cloud.provider
            );
            return Some(Finding::new(Code::D504, text).seen(look.object(), reason, message).into());
        }
        let known = ELSEWHERE.contains(&reason.as_str());
        (!known).then(|| Finding::new(Code::D508, format!("{reason}: {message}")).into())
    };
    Answer::found(cloud.warnings.iter().filter_map(one).collect(), || ok("the controller warns of nothing"))
}

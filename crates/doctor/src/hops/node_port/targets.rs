//! Judges whether endpoints have the ports of the Service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use openstack_ccm_core::text::some_of;

use crate::backend::{is_envoy_gateway, listener_ports};
use crate::code::{Code, Stops};
use crate::facts::MemberFact;
use crate::finding::{Finding, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::hops::behind::{self, numbers, used};
use crate::hops::look::Look;
use crate::question::Answer;

/// Returns whether the slice is of an address family.
fn is_of(slice: &EndpointSlice, ipv6: bool) -> bool {
    (slice.address_type == "IPv6") == ipv6
}

/// Returns the address families of packets to a port at the nodes: the families of its members and of addresses that nodes short-circuit.
fn families(look: &Look<'_>, port: Port) -> BTreeSet<bool> {
    let mut families: BTreeSet<bool> = BTreeSet::new();
    if let Ok(cloud) = &look.facts.cloud {
        let members = cloud.pool(port).into_iter().flat_map(|pool| &pool.members);
        families.extend(members.filter_map(MemberFact::address).map(|address| address.is_ipv6()));
    }
    let around = look.short_circuited().filter_map(|entry| entry.ip.as_ref()?.parse::<IpAddr>().ok());
    families.extend(around.map(|address| address.is_ipv6()));
    // Service proxies open node ports in the families of the Service only.
    let of_service = look.facts.service.spec.as_ref().and_then(|spec| spec.ip_families.as_deref());
    match of_service {
        Some([only]) if families.is_empty() => BTreeSet::from([only == "IPv6"]),
        _ => families,
    }
}

pub(super) fn targets(look: &Look<'_>, slices: &[EndpointSlice]) -> Answer {
    Answer::each(
        look.ports(),
        || unknown("the Service has no ports"),
        |(port, spec)| {
            let with_port: Vec<&EndpointSlice> = used(slices)
                .map(|(slice, _)| slice)
                .filter(|slice| !numbers(slice, port, spec).is_empty())
                .collect();
            let families = families(look, port);
            let lacking: Vec<&str> = families
                .iter()
                .filter(|ipv6| !with_port.iter().any(|slice| is_of(slice, **ipv6)))
                .map(|ipv6| if *ipv6 { "IPv6" } else { "IPv4" })
                .collect();
            if !with_port.is_empty() && lacking.is_empty() {
                return ok(format!("port {port}: endpoints have it"));
            }
            let target = match &spec.target_port {
                Some(IntOrString::Int(number)) => number.to_string(),
                Some(IntOrString::String(name)) => name.clone(),
                None => spec.port.to_string(),
            };
            let text = match lacking.as_slice() {
                [family] if !with_port.is_empty() => {
                    format!("port {port}: no {family} endpoint has this port")
                }
                _ => format!("port {port}: no endpoint has this port (targetPort {target})"),
            };
            let shown: BTreeSet<String> = used(slices)
                .flat_map(|(slice, _)| slice.ports.iter().flatten())
                .map(|one| {
                    let name = one.name.clone().unwrap_or_default();
                    format!(
                        "{name} {}/{}",
                        one.port.unwrap_or_default(),
                        one.protocol.as_deref().unwrap_or("TCP")
                    )
                    .trim()
                    .to_owned()
                })
                .collect();
            let shown: Vec<String> = shown.into_iter().collect();
            let shown = if shown.is_empty() { "none".to_owned() } else { some_of(&shown, 5) };
            Finding::new(Code::D804, text)
                .seen(look.object(), "targetPort", target)
                .seen("EndpointSlices", "ports", shown)
                .at(port)
                .surely(with_port.is_empty() || families.len() == 1)
                .into()
        },
    )
}

/// Judges the ports that containers declare. A container need not declare its ports; if it declares only others, that is a doubt.
pub(super) fn declared(look: &Look<'_>) -> Answer {
    let Ok(backend) = &look.facts.backend else {
        return skipped("no pod could be looked at").into();
    };
    let mut declared: BTreeSet<(i32, &str)> = backend
        .pods
        .iter()
        .flat_map(behind::declared)
        .map(|port| (port.container_port, port.protocol.as_deref().unwrap_or("TCP")))
        .collect();
    // Envoy Gateway's pods listen as their Gateway says.
    let listening = backend.pods.iter().filter(|pod| is_envoy_gateway(pod));
    declared.extend(listening.flat_map(|pod| listener_ports(backend, pod)).map(|port| (port, "TCP")));
    if declared.is_empty() {
        return skipped("the containers declare no ports").into();
    }
    Answer::each(
        look.ports(),
        || skipped("the Service has no ports"),
        |(port, spec)| {
            let mut numbers: BTreeSet<i32> =
                look.targets(port).into_iter().map(|target| target.number).collect();
            if let Some(IntOrString::Int(number)) = &spec.target_port {
                numbers.insert(*number);
            }
            let foreign: Vec<String> = numbers
                .iter()
                .filter(|number| !declared.contains(&(**number, port.protocol.as_str())))
                .map(ToString::to_string)
                .collect();
            if foreign.is_empty() {
                return ok(format!("port {port}: a container declares its target port"));
            }
            let known: Vec<String> =
                declared.iter().map(|(number, protocol)| format!("{number}/{protocol}")).collect();
            let text = format!(
                "port {port} leads to {}, but the containers declare only {}: whether anything listens \
                 there is not known",
                foreign.join(", "),
                some_of(&known, 5)
            );
            unknown(text).about(Scope::port(port), Stops::All)
        },
    )
}

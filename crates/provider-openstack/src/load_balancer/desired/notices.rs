//! Warnings about what a Service says of itself, or asks for, and this load balancer cannot do.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{IpFamily, Protocol, ServicePort};
use openstack_ccm_openstack_api::octavia::{Fields as _, PoolProtocol};

use super::health_monitor;
use super::sources::Sources;
use super::tls::NOT_SUPPORTED;
use crate::load_balancer::annotations::{
    Annotation, FLOATING_NETWORK_ID, FLOATING_SUBNET, FLOATING_SUBNET_ID, FLOATING_SUBNET_TAGS,
};
use crate::load_balancer::settings::node_address::family_name;
use crate::load_balancer::settings::{Exposure, Kind, Settings, UserTags, names_of};

/// OCCM's reason for the same. Sent only if the Service has settings for a floating IP, since an IPv6 address normally needs none.
const FLOATING_IP_SKIPPED: &str = "LoadBalancerFloatingIPSkipped";
/// Some ports can be reached at addresses of one family only.
const PORTS_SINGLE_STACK: &str = "LoadBalancerPortsSingleStack";
/// The load balancer speaks another protocol than the pods.
const MISMATCH: &str = "LoadBalancerAppProtocolMismatch";

/// HTTP/2 without TLS, as Kubernetes names it.
const H2C: &str = "kubernetes.io/h2c";
/// Protocols within TLS, as IANA and Kubernetes name them.
const WITHIN_TLS: [&str; 2] = ["https", "kubernetes.io/wss"];

pub(super) fn of_families(sources: Sources<'_>) -> impl Iterator<Item = Notice> {
    [floating_ip_skipped(sources), ports_of_one_family(sources)].into_iter().flatten()
}

fn floating_ip_skipped(sources: Sources<'_>) -> Option<Notice> {
    let annotations = &sources.intent.service.annotations;
    let asking = [FLOATING_NETWORK_ID, FLOATING_SUBNET_ID, FLOATING_SUBNET, FLOATING_SUBNET_TAGS];
    let asked = asking.iter().find(|annotation| annotations.contains_key(annotation.key))?;
    let external = matches!(sources.settings.exposure, Exposure::External(_));
    let ipv4 = sources.facts.vip_families().any(|family| family == IpFamily::V4);
    (external && !ipv4).then(|| {
        let message = format!(
            "annotation {} has no effect: the load balancer has an IPv6 address, and floating IPs are IPv4 only; remove the \
             annotation",
            asked.key
        );
        Notice::warning(FLOATING_IP_SKIPPED, message)
    })
}

/// Warns about UDP and SCTP ports: Octavia translates between families for TCP only, and forwards datagrams within their own
/// family.
fn ports_of_one_family(sources: Sources<'_>) -> Option<Notice> {
    let members = sources.settings.family?;
    let other = sources.facts.vip_families().find(|family| *family != members)?;
    let ports = names_of(&sources.intent.service.ports, |port| port.protocol != Protocol::Tcp)?;
    let message = format!(
        "the members have {} addresses, and Octavia translates between IP families for TCP only, so {ports} cannot be reached on the {} \
         address",
        family_name(members),
        family_name(other)
    );
    Some(Notice::warning(PORTS_SINGLE_STACK, message))
}

/// Compares `spec.ports[].appProtocol`, which names the protocol of the pods, with the protocol of the load balancer. The field sets
/// nothing here, since annotations choose the protocols, and Services carry it for other consumers. But where the load balancer
/// speaks HTTP, the field may show that this cannot work.
pub(super) fn of_application_protocols(sources: Sources<'_>) -> Option<Notice> {
    let ports = &sources.intent.service.ports;
    let mismatches: Vec<String> = ports.iter().filter_map(|port| mismatch(sources.settings, port)).collect();
    (!mismatches.is_empty()).then(|| Notice::warning(MISMATCH, mismatches.join("; ")))
}

fn mismatch(settings: &Settings, port: &ServicePort) -> Option<String> {
    let says = port.app_protocol.as_deref()?;
    if settings.pool_protocol(port) != PoolProtocol::Http {
        return None;
    }
    let place = format!("port {}/{} has appProtocol {says:?}", port.port, port.protocol);
    if says == H2C {
        Some(format!(
            "{place}, but Octavia speaks HTTP/1.1 to the nodes: move the port to a Service without TLS termination and without inserted \
             headers, so the load balancer passes the stream through unchanged"
        ))
    } else if WITHIN_TLS.contains(&says) && settings.tls_of(port).is_none() {
        let keys: Vec<&str> =
            settings.inserted_headers(port).iter().map(|header| header.annotation().key).collect();
        Some(format!(
            "{place}, but with {} the load balancer expects plain HTTP on this port, so TLS connections fail: move the port to a Service \
             without this annotation",
            keys.join(" and ")
        ))
    } else {
        None
    }
}

/// Returns the warning if Octavia does not support the user's tags.
pub(super) fn of_tags(sources: Sources<'_>) -> Option<Notice> {
    let UserTags { load_balancer, listener, pool, .. } = &sources.settings.user_tags;
    let asked = [load_balancer, listener, pool].iter().any(|tags| !tags.is_empty());
    (asked && !sources.facts.features.tags).then(|| {
        let message =
            "tags of load balancer, listeners and pools are ignored: they require Octavia API 2.5 or later";
        Notice::warning(NOT_SUPPORTED, message)
    })
}

/// Returns the notice about listener limits and SCTP monitors, which the provider ovn ignores, since it only forwards packets. Source
/// ranges, flavors and zones have their own notices.
pub(super) fn of_ovn(sources: Sources<'_>) -> Option<Notice> {
    let (settings, features) = (sources.settings, sources.facts.features);
    if !features.keeps_client_addresses() {
        return None;
    }
    let limits = settings.limits.values();
    let limits = limits.iter().filter_map(|(name, value)| Some((Annotation::of(Kind::Limit, name)?, value)));
    let set =
        limits.filter(|(annotation, value)| annotation.default_in_code().parse().ok() != value.as_i64());
    let keys: Vec<&str> = set.map(|(annotation, _)| annotation.key).collect();
    let keys = (!keys.is_empty()).then(|| format!("{} without effect", keys.join(", ")));
    let monitored = settings.health_monitor.is_some();
    let unchecked = names_of(&sources.intent.service.ports, |port| {
        monitored && health_monitor::has_no_check(sources, port)
    });
    let unchecked = unchecked.map(|ports| format!("no health monitor for {ports}"));
    let said: Vec<String> = keys.into_iter().chain(unchecked).collect();
    (!said.is_empty()).then(|| {
        let message = format!("provider ovn only forwards packets: {}", said.join("; "));
        Notice::warning(NOT_SUPPORTED, message)
    })
}

//! Builds the desired state: the whole tree of a load balancer and its floating IP. Pure.
//!
//! A tree that Octavia refuses leaves a port and an address behind in Neutron, and a member on an unknown subnet breaks the load
//! balancer for good. So everything that Octavia checks is checked here first.

mod affinity;
mod capability;
mod current;
mod health_monitor;
mod kept_members;
mod members;
mod metrics;
mod notices;
mod port;
pub(crate) mod recreation;
pub(crate) mod removed_members;
mod source_ranges;
mod sources;
#[cfg(test)]
mod tests;
mod tls;
mod validate;

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{IpFamily, Service};

use super::annotations::{FLOATING_IP, PORT_ID};
use super::names::Names;
use super::settings::node_address::family_of;
use super::settings::{Aspect, Exposure, Faults, ReleaseSettings, Settings};
use crate::load_balancer::objects::{
    AdditionalVip, Desired, DesiredListener, Facts, Features, FloatingIpGoal, FloatingIpMarks,
    FloatingIpSpec, ListenerKey, LoadBalancerSpec, ObservedLoadBalancer, Ownership, Reclaim, Recovery,
    ReleaseTerms, ResolvedVip, Tags, Vip,
};

pub(crate) use capability::faults;
pub(crate) use sources::Sources;

/// OCCM uses the same reason.
const ZONES_IGNORED: &str = "LoadBalancerAvailabilityZonesIgnored";
const FLAVOR_IGNORED: &str = "LoadBalancerFlavorIgnored";

/// Builds the desired state for a new load balancer.
///
/// # Errors
/// [`FailureClass::UserInput`](openstack_ccm_core::failure::FailureClass::UserInput) with everything that
/// the Service asks for and this cloud does not support, or that contradicts itself.
pub(crate) fn desired(sources: Sources<'_>) -> Result<Desired, Failure> {
    let mut faults = Faults::default();
    faults.extend(self::faults(sources, false));
    if let Some(failure) = faults.failure() {
        return Err(failure);
    }
    checked(build(sources)?, sources)
}

/// Builds the desired state of an existing load balancer. Invalid aspects ([`Settings::unreadable`]) keep their current
/// state.
///
/// # Errors
/// `spec.ports` is empty, or has a port twice; a bug of this controller.
pub(crate) fn of_existing(sources: Sources<'_>, existing: &ObservedLoadBalancer) -> Result<Desired, Failure> {
    let mut desired = build(sources)?;
    if existing.ownership == Ownership::Guest {
        // A guest adds no user tags.
        desired.load_balancer.tags = sources.tags(&Tags::new());
        let metrics = desired.metrics.take();
        desired.notices.extend(metrics.map(|_| metrics::not_for_guests()));
    } else {
        desired.metrics = desired.metrics.or_else(|| metrics::current(sources, existing));
    }
    kept_members::apply(&mut desired, sources, existing);
    current::apply(&mut desired, sources, existing);
    checked(desired, sources)
}

fn checked(desired: Desired, sources: Sources<'_>) -> Result<Desired, Failure> {
    let families: Vec<IpFamily> = sources.facts.vip_families().collect();
    validate::tree(&desired, &families)?;
    Ok(desired)
}

fn build(sources: Sources<'_>) -> Result<Desired, Failure> {
    let mut notices = Vec::new();
    let load_balancer = load_balancer(sources, &mut notices);
    let listeners = listeners(sources, &mut notices)?;
    notices.extend(notices::of_families(sources));
    notices.extend(members::without_node_ports(sources));
    notices.extend(tls::notices(sources));
    notices.extend(affinity::notice(sources));
    notices.extend(notices::of_application_protocols(sources));
    notices.extend(health_monitor::notice(sources));
    notices.extend(notices::of_tags(sources));
    notices.extend(notices::of_ovn(sources));
    let serial = sources.settings.serial_api_calls;
    let additive = sources.facts.features.additive_batches;
    let floating_ip = floating_ip(sources);
    let metrics = metrics::listener(sources, &mut notices);
    let recovery = Recovery::default();
    let keeps_members = false;
    Ok(Desired {
        load_balancer,
        listeners,
        metrics,
        floating_ip,
        serial,
        additive,
        keeps_members,
        replaced_servers: BTreeSet::new(),
        recovery,
        notices,
    })
}

fn load_balancer(sources: Sources<'_>, notices: &mut Vec<Notice>) -> LoadBalancerSpec {
    let Sources { settings, names, facts, .. } = sources;
    let (flavor, zone) = (settings.flavor_id.clone(), settings.availability_zone.clone());
    let Features { flavors, availability_zones, .. } = facts.features;
    if let Some(flavor) = flavor.as_ref().filter(|_| !flavors) {
        let message = format!(
            "flavor-id {flavor} is ignored: this Octavia, or the load balancer's provider, does not support flavors"
        );
        notices.push(Notice::warning(FLAVOR_IGNORED, message));
    }
    if let Some(zone) = zone.as_ref().filter(|_| !availability_zones) {
        let message = format!(
            "availability-zone {zone} is ignored: this Octavia, or the load balancer's provider, does not support availability zones"
        );
        notices.push(Notice::warning(ZONES_IGNORED, message));
    }
    LoadBalancerSpec {
        name: names.load_balancer().to_owned(),
        description: names.description(),
        provider: settings.provider.clone(),
        vip: vip(settings, facts),
        flavor_id: flavor.filter(|_| flavors),
        availability_zone: zone.filter(|_| availability_zones),
        tags: sources.tags(&settings.user_tags.load_balancer),
    }
}

fn vip(settings: &Settings, facts: &Facts) -> Vip {
    let asked = match facts.additional_vips.as_slice() {
        [] => settings.vip.address,
        _ => settings.vip.address_of(facts.vip_family),
    };
    let previous = facts.previous_vip_address.filter(|previous| family_of(*previous) == facts.vip_family);
    let address = asked.or(previous);
    match &settings.vip.port_id {
        // The address of the previous load balancer belonged to its own port, which is deleted.
        Some(port_id) => Vip { port_id: Some(port_id.clone()), address: asked, ..Vip::default() },
        None => Vip {
            port_id: None,
            subnet_id: facts.vip_subnet_id.clone(),
            network_id: facts.vip_network_id.clone(),
            address,
            additional: facts.additional_vips.iter().map(|vip| additional_vip(settings, vip)).collect(),
        },
    }
}

fn additional_vip(settings: &Settings, vip: &ResolvedVip) -> AdditionalVip {
    let address = settings.vip.address_of(vip.family).or(vip.previous_address);
    AdditionalVip { subnet_id: vip.subnet_id.clone(), address }
}

fn listeners(
    sources: Sources<'_>,
    notices: &mut Vec<Notice>,
) -> Result<BTreeMap<ListenerKey, DesiredListener>, Failure> {
    let ports = &sources.intent.service.ports;
    if ports.is_empty() {
        return Err(Failure::user_input("the Service has no ports: add one to spec.ports"));
    }
    let nodes = members::backends(sources, notices);
    let allowed_cidrs = source_ranges::allowed_cidrs(sources, notices);
    let mut listeners = BTreeMap::new();
    for (index, port) in ports.iter().enumerate() {
        let key = ListenerKey::new(port.protocol, port.port);
        let listener = port::listener(sources, index, port, &nodes, allowed_cidrs.as_ref());
        if listeners.insert(key, listener).is_some() {
            return Err(Failure::user_input(format!(
                "spec.ports lists {key} twice: remove one of the two entries"
            )));
        }
    }
    Ok(listeners)
}

fn floating_ip(sources: Sources<'_>) -> FloatingIpGoal {
    let Sources { settings, names, facts, .. } = sources;
    let ipv4 = facts.vip_families().any(|family| family == IpFamily::V4);
    match (&settings.exposure, ipv4) {
        (Exposure::Internal, _) => {
            FloatingIpGoal::Internal { keep: settings.keep_floating_ip, takes_off_others: false }
        }
        (Exposure::External(_), false) => FloatingIpGoal::NotNeeded,
        (Exposure::External(floating_ip), true) => FloatingIpGoal::External(FloatingIpSpec {
            network_id: facts.floating_network_id.clone(),
            subnet: facts.floating_subnet.clone(),
            address: floating_ip.address,
            asked_by: if floating_ip.is_annotated { FLOATING_IP.key } else { "spec.loadBalancerIP" },
            exchanges: true,
            description: names.floating_ip_description(),
            tags: facts.features.floating_ip_marks.of_tags(names.identity_tags(), &settings.user_tags.all),
            takes_tags: facts.features.floating_ip_marks == FloatingIpMarks::Tags,
            keep: settings.keep_floating_ip,
            unreadable: settings.is_unreadable(Aspect::FloatingIp),
        }),
    }
}

/// Returns the terms of a release. Invalid annotations do not prevent it.
pub(crate) fn release_terms(
    service: &Service,
    names: &Names,
    settings: &ReleaseSettings,
    marks: FloatingIpMarks,
) -> ReleaseTerms {
    let service_tag = names.service_tag();
    let common_tags: Tags = names.identity_tags().into_iter().filter(|tag| *tag != service_tag).collect();
    ReleaseTerms {
        tags: &names.tags() - &common_tags,
        common_tags,
        floating_ip_tags: marks.of_tags(names.identity_tags(), &Tags::new()),
        reclaim: if settings.retain { Reclaim::Retain } else { Reclaim::Delete },
        keep_floating_ip: settings.keep_floating_ip,
        vip_port_id: service.annotations.get(PORT_ID.key).cloned(),
        retained_vip_ports: BTreeSet::new(),
        cascade: settings.cascade_delete,
    }
}

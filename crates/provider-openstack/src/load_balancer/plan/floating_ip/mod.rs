//! Decides which floating IP the VIP gets, keeps or loses.

mod unavailable;

use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, FailureClass};

use super::draft::{Draft, tags_of_own};
use super::refusals::{floating_ip_tag, is_for_good};
use crate::load_balancer::annotations::KEEP_FLOATING_IP;
use crate::load_balancer::names;
use crate::load_balancer::objects::step::{FloatingIpStep, FormerFloatingIp, Handle, Step};
use crate::load_balancer::objects::{
    FloatingIpGoal, FloatingIpSpec, ObservedFloatingIp, Ownership, ReleaseTerms, Tags,
};
pub(super) use unavailable::refusal;
use unavailable::{is_elsewhere, only_astray, unavailable, unset_port};

/// The user asked for an external Service, but there is no external network. OCCM's reason for the same.
const FORCED_INTERNAL: &str = "LoadBalancerForcedInternal";
/// `spec.loadBalancerIP` names another address than the floating IP that stays.
const ADDRESS_IGNORED: &str = "LoadBalancerIPIgnored";
/// A floating IP of the Service is attached elsewhere, and stays there.
const LEFT_IN_USE: &str = "FloatingIPLeftInUse";

/// Another client attached a floating IP to an internal Service.
pub(crate) const ON_INTERNAL: &str = "FloatingIPOnInternalService";

/// The VIP port, to which floating IPs are attached.
#[derive(Debug)]
pub(super) struct VipPort {
    pub(super) port: Handle,
    /// Address of the port, once it has one.
    pub(super) address: Option<IpAddr>,
    /// Ownership of the load balancer: a guest leaves its floating IP alone.
    pub(super) ownership: Ownership,
    /// Describes the load balancer if Octavia shows it without its VIP port.
    pub(super) without_port: Option<String>,
}

impl VipPort {
    /// Returns whether a floating IP leads to this port. Where Neutron shows no port, the fixed address counts for one that is
    /// ours.
    fn carries(&self, floating_ip: &ObservedFloatingIp) -> bool {
        let has_address = self.address.is_some() && floating_ip.fixed_address == self.address;
        is_on(floating_ip, self.port.id())
            || (floating_ip.ours && floating_ip.port_id.is_none() && has_address)
    }
}

/// Plans the floating IP of a served Service, and determines the address of the Service.
pub(super) fn serve(
    draft: &mut Draft,
    goal: &FloatingIpGoal,
    candidates: &[ObservedFloatingIp],
    vip: &VipPort,
) {
    let attached = candidates.iter().find(|candidate| vip.carries(candidate));
    match goal {
        FloatingIpGoal::NotNeeded => draft.plan.address = vip.address,
        FloatingIpGoal::Unknown { address } => draft.plan.address = *address,
        FloatingIpGoal::Internal { keep, takes_off_others } => {
            match attached {
                Some(own) if own.ours || *takes_off_others || vip.ownership != Ownership::Sole => {
                    take_off(draft, own, *keep, vip.ownership);
                }
                Some(other) if !keep => draft.warn(ON_INTERNAL, exposed(other)),
                Some(_) | None => {}
            }
            draft.plan.address = vip.address;
        }
        FloatingIpGoal::External(spec) => match attached {
            Some(attached) => keep_or_swap(draft, spec, attached, candidates, vip),
            None => obtain(draft, spec, candidates, vip),
        },
    }
}

/// Returns the warning about a floating IP that another client attached to an internal Service: it may be intended, so it stays.
fn exposed(attached: &ObservedFloatingIp) -> String {
    let ObservedFloatingIp { id, address, .. } = attached;
    format!(
        "the Service is internal, but another client attached floating IP {address} ({id}) to the load balancer, which makes the load \
         balancer reachable from outside: detach the floating IP with `{}`, or confirm it with the annotation {}: \"true\"",
        unset_port(id),
        KEEP_FLOATING_IP.key
    )
}

/// Detaches a floating IP from the VIP, unless other Services may be published with it. One that is ours is deleted, unless it has
/// to be kept.
fn take_off(draft: &mut Draft, attached: &ObservedFloatingIp, keep: bool, ownership: Ownership) {
    let ObservedFloatingIp { id, address, .. } = attached.clone();
    match ownership {
        Ownership::Sole => {}
        Ownership::Shared => {
            let message = format!(
                "the Service is internal, but floating IP {address} ({id}) stays attached because other Services use the load \
                 balancer, so the load balancer remains reachable from outside"
            );
            return draft.warn(LEFT_IN_USE, message);
        }
        Ownership::Guest => return,
    }
    draft.step(if attached.ours && !keep {
        Step::FloatingIp(FloatingIpStep::Delete { id, address })
    } else {
        Step::FloatingIp(FloatingIpStep::Detach { id, address })
    });
}

/// Keeps an attached floating IP, whoever made it. Only one that is ours is exchanged, and only for the address that the user asked
/// for, when that is sure to be available.
fn keep_or_swap(
    draft: &mut Draft,
    spec: &FloatingIpSpec,
    attached: &ObservedFloatingIp,
    candidates: &[ObservedFloatingIp],
    vip: &VipPort,
) {
    draft.plan.address = Some(attached.address);
    if let Some(asked) = spec.address.filter(|asked| *asked != attached.address) {
        let free = candidates.iter().find(|candidate| {
            candidate.address == asked
                && candidate.port_id.is_none()
                && !candidate.in_use
                && candidate.claimed_by.is_none()
                // A router may not connect the VIP to another external network.
                && candidate.network_id == attached.network_id
        });
        match free {
            Some(free) if spec.exchanges && attached.ours && vip.ownership == Ownership::Sole => {
                attach(draft, spec, free, vip, Some(attached));
                if let Some(failure) = draft.refusals.of(&attach_step(free, vip, None)) {
                    let mut tags = spec.tags.clone();
                    tags.extend((spec.takes_tags && is_for_good(failure)).then(|| floating_ip_tag(free)));
                    draft.plan.address = Some(attached.address);
                    return tag(draft, attached, &tags);
                }
                if !spec.keep {
                    let ObservedFloatingIp { id, address, .. } = attached.clone();
                    draft.step(Step::FloatingIp(FloatingIpStep::Delete { id, address }));
                }
                return;
            }
            Some(_) | None => {
                let has = attached.address;
                let way = if !spec.exchanges {
                    "the setting was made before this controller started watching the Service, so it is not applied; to apply the \
                     setting, remove it and set it again, otherwise remove it"
                        .to_owned()
                } else if vip.ownership == Ownership::Sole {
                    format!(
                        "to change the address, create floating IP {asked} in the project, on the same network, or detach {has}"
                    )
                } else {
                    "other Services use the load balancer".to_owned()
                };
                let message = format!(
                    "{} is {asked}, but the load balancer keeps floating IP {has}: {way}",
                    spec.asked_by
                );
                draft.warn(ADDRESS_IGNORED, message);
            }
        }
    }
    tag(draft, attached, &spec.tags);
}

/// Gives the VIP a floating IP: the one that the user asked for, the Service's own former one, or a new one.
fn obtain(draft: &mut Draft, spec: &FloatingIpSpec, candidates: &[ObservedFloatingIp], vip: &VipPort) {
    if vip.ownership == Ownership::Guest {
        return draft.block(Failure::user_input(
            "the load balancer was not created for this Service and has no floating IP: make the Service internal with the annotation \
             service.beta.kubernetes.io/openstack-internal-load-balancer, or attach a floating IP to the load balancer",
        ));
    }
    if let Some(load_balancer) = &vip.without_port {
        return draft.block(Failure::new(
            FailureClass::Unavailable,
            format!(
                "Octavia shows {load_balancer} without a VIP port (vip_port_id), so no floating IP can be attached: have an \
                 administrator check the load balancer in Octavia, or make the Service internal"
            ),
        ));
    }
    if let Some(elsewhere) = only_astray(candidates) {
        return draft.block(Failure::user_input(is_elsewhere(elsewhere)));
    }
    if spec.unreadable {
        return draft.block(Failure::user_input(
            "the load balancer has no floating IP, and none is attached until the Service's floating IP settings are corrected",
        ));
    }
    let own = candidates
        .iter()
        .filter(|own| own.ours && own.port_id.is_none() && spec.address != Some(own.address))
        .min_by_key(|own| &own.id);
    let found = match spec.address {
        Some(asked) => candidates.iter().find(|candidate| candidate.address == asked),
        None => own,
    };
    match (found, &spec.network_id) {
        (Some(found), _) => match (unavailable(found, spec.asked_by), own) {
            (None, _) => {
                let own = own.filter(|own| own.id != found.id);
                attach(draft, spec, found, vip, own);
                let is_refused = draft.refusals.of(&attach_step(found, vip, None)).is_some();
                match own {
                    Some(own) if is_refused => attach(draft, spec, own, vip, None),
                    None if is_refused => draft.plan.address = None,
                    _ => {}
                }
            }
            // The Service keeps its present floating IP.
            (Some(why), Some(own)) => {
                draft.warn(ADDRESS_IGNORED, why.message);
                attach(draft, spec, own, vip, None);
            }
            (Some(why), None) => draft.block(why),
        },
        (None, Some(network_id)) => create(draft, spec, network_id, vip),
        (None, None) => {
            draft.warn(
                FORCED_INTERNAL,
                "no external network for a floating IP was found, so the Service is internal: have an administrator share an external \
                 network with the project, or name one with floating-network-id in cloud.conf or with \
                 loadbalancer.openstack.org/floating-network-id on the Service",
            );
            draft.plan.address = vip.address;
        }
    }
}

fn attach(
    draft: &mut Draft,
    spec: &FloatingIpSpec,
    found: &ObservedFloatingIp,
    vip: &VipPort,
    former: Option<&ObservedFloatingIp>,
) {
    draft.step(attach_step(found, vip, former));
    draft.plan.address = Some(found.address);
    let port_id = vip.port.id().map(str::to_owned);
    tag(draft, &ObservedFloatingIp { port_id, ..found.clone() }, &spec.tags);
}

fn attach_step(found: &ObservedFloatingIp, vip: &VipPort, former: Option<&ObservedFloatingIp>) -> Step {
    let ObservedFloatingIp { id, address, .. } = found.clone();
    let instead_of =
        former.cloned().map(|former| FormerFloatingIp { id: former.id, address: former.address });
    Step::FloatingIp(FloatingIpStep::Attach {
        id,
        address,
        port: vip.port.clone(),
        vip: vip.address,
        instead_of,
    })
}

fn create(draft: &mut Draft, spec: &FloatingIpSpec, network_id: &str, vip: &VipPort) {
    let step = Step::FloatingIp(FloatingIpStep::Create {
        network_id: network_id.to_owned(),
        subnet: spec.subnet.clone(),
        address: spec.address,
        description: spec.description.clone(),
        tags: spec.tags.clone(),
        port: vip.port.clone(),
        vip: vip.address,
    });
    draft.plan.address = spec.address.filter(|_| draft.refusals.of(&step).is_none());
    draft.step(step);
}

/// Tags a floating IP that is ours; foreign ones are never tagged.
fn tag(draft: &mut Draft, floating_ip: &ObservedFloatingIp, wanted: &Tags) {
    if let Some(tags) = tags_of_own(&floating_ip.tags, wanted).filter(|_| floating_ip.ours) {
        draft.identify(tag_step(floating_ip, tags));
    }
}

/// Tags the floating IP on the VIP port, if it is ours, before the load balancer and the port are deleted: afterwards only the tags
/// identify it.
pub(super) fn mark(
    draft: &mut Draft,
    wanted: &Tags,
    candidates: &[ObservedFloatingIp],
    vip_port_id: Option<&str>,
) {
    for attached in candidates.iter().filter(|candidate| is_on(candidate, vip_port_id)) {
        tag(draft, attached, wanted);
    }
}

/// Removes the owner tags of a floating IP that outlives its Service, so that any Service of the project may use it.
fn set_free(draft: &mut Draft, floating_ip: &ObservedFloatingIp) {
    let tags: Tags = floating_ip.tags.iter().filter(|tag| !names::is_own_tag(tag)).cloned().collect();
    if tags != floating_ip.tags {
        draft.step(tag_step(floating_ip, tags));
    }
}

fn tag_step(floating_ip: &ObservedFloatingIp, tags: Tags) -> Step {
    let ObservedFloatingIp { id, description, port_id, .. } = floating_ip.clone();
    Step::FloatingIp(FloatingIpStep::Tag { id, tags, description, port_id })
}

/// Returns whether a floating IP is attached to the port.
pub(super) fn is_on(floating_ip: &ObservedFloatingIp, port_id: Option<&str>) -> bool {
    port_id.is_some() && floating_ip.port_id.as_deref() == port_id
}

/// Deletes the floating IPs that are ours, or only removes their owner tags if they have to be kept. This comes after the load
/// balancer: giving up an address before its load balancer is sure to go may lose it for nothing.
pub(super) fn release(
    draft: &mut Draft,
    terms: &ReleaseTerms,
    candidates: &[ObservedFloatingIp],
    vip_port_id: Option<&str>,
) {
    let stays = |candidate: &ObservedFloatingIp| {
        candidate.port_id.as_ref().is_some_and(|port| terms.retained_vip_ports.contains(port))
    };
    for floating_ip in candidates.iter().filter(|candidate| candidate.ours && !stays(candidate)) {
        if terms.keep_floating_ip {
            set_free(draft, floating_ip);
            continue;
        }
        let ObservedFloatingIp { id, address, port_id, .. } = floating_ip.clone();
        let ports = [vip_port_id, terms.vip_port_id.as_deref()];
        match port_id {
            Some(port) if !ports.contains(&Some(port.as_str())) => {
                draft.warn(
                    LEFT_IN_USE,
                    format!(
                        "the Service's floating IP {address} ({id}) is not deleted and stays attached to port {port}, because that \
                         port is in use, for example by another Service on the same load balancer"
                    ),
                );
            }
            Some(_) | None => draft.step(Step::FloatingIp(FloatingIpStep::Delete { id, address })),
        }
    }
}

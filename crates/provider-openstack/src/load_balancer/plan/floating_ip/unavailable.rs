//! Says why a floating IP that the user asked for, or that is the Service's own, is not available to the load balancer.

use openstack_ccm_core::command::command;
use openstack_ccm_core::failure::Failure;

use crate::load_balancer::names;
use crate::load_balancer::objects::{FloatingIpGoal, ObservedFloatingIp};

/// Returns the command that detaches a floating IP from its port.
pub(super) fn unset_port(id: &str) -> String {
    command(["openstack", "floating", "ip", "unset", "--port", id])
}

/// Returns the Service's own floating IP that is attached elsewhere, unless the Service has a detached one.
pub(super) fn only_astray(candidates: &[ObservedFloatingIp]) -> Option<&ObservedFloatingIp> {
    let has_free = candidates.iter().any(|own| own.ours && own.port_id.is_none());
    candidates.iter().find(|own| own.is_astray() && !has_free)
}

/// A second floating IP would be one too many, and only the user knows which of them is meant.
pub(super) fn is_elsewhere(own: &ObservedFloatingIp) -> String {
    let ObservedFloatingIp { id, address, port_id, device, .. } = own;
    let device = device.as_ref().map(|device| format!(", which belongs to {device}")).unwrap_or_default();
    format!(
        "the Service's floating IP {address} ({id}) is attached to port {}{device}, not to the Service's load balancer: detach the \
         floating IP with `{}`; until then, no other floating IP is created",
        port_id.as_deref().unwrap_or_default(),
        unset_port(id)
    )
}

/// Returns why the floating IP that the user asked for is unavailable to a Service without one: then no load balancer is created.
pub(in crate::load_balancer::plan) fn refusal(
    goal: &FloatingIpGoal,
    candidates: &[ObservedFloatingIp],
) -> Option<Failure> {
    let FloatingIpGoal::External(spec) = goal else { return None };
    if let Some(elsewhere) = only_astray(candidates) {
        return Some(Failure::user_input(is_elsewhere(elsewhere)));
    }
    let asked = candidates.iter().find(|candidate| spec.address == Some(candidate.address))?;
    let has_own = candidates.iter().any(|own| own.ours && own.id != asked.id);
    unavailable(asked, spec.asked_by).filter(|_| !has_own)
}

/// Returns why a floating IP that the user asked for is unavailable, if it is.
pub(super) fn unavailable(found: &ObservedFloatingIp, asked_by: &str) -> Option<Failure> {
    if let Some(user) = found.user.as_ref().filter(|_| found.port_id.is_some() || found.claimed_by.is_some())
    {
        let address = found.address;
        return Some(Failure::user_input(format!("{asked_by} {address} is the floating IP of {user}")));
    }
    if found.claimed_by.is_some() {
        return Some(claimed(found, asked_by));
    }
    if found.in_use && found.port_id.is_none() {
        return Some(Failure::user_input(format!(
            "{asked_by} {} is a floating IP that a router or a port forwarding already uses: remove that use, or choose another \
             address",
            found.address
        )));
    }
    let port = found.port_id.as_ref()?;
    // The load balancer may be of another namespace, which Events do not name.
    let place =
        if found.is_on_load_balancer() { "a load balancer".to_owned() } else { format!("port {port}") };
    Some(Failure::user_input(format!(
        "{asked_by} {} is a floating IP that is already attached to {place}: detach the floating IP, or choose another address",
        found.address
    )))
}

/// Says that the floating IP that the user asked for was made for another Service.
fn claimed(floating_ip: &ObservedFloatingIp, asked_by: &str) -> Failure {
    let ObservedFloatingIp { id, address, claimed_by, .. } = floating_ip;
    let tag = claimed_by.as_deref().unwrap_or_default();
    if names::describes_floating_ip(tag) {
        return Failure::user_input(format!(
            "{asked_by} {address} is the floating IP of another Service (description {tag:?}): remove the setting or choose another \
             address"
        ));
    }
    Failure::user_input(format!(
        "{asked_by} {address} is the floating IP of another Service (tag {tag}): remove the setting or choose another address; if \
         that Service is gone, remove the tag with {}",
        command(["openstack", "floating", "ip", "unset", "--tag", tag, id])
    ))
}

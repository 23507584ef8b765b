//! Decides what to do about a load balancer in ERROR.
//!
//! ERROR says that Octavia's last work on a load balancer failed, and nothing about traffic, which may continue. So only one that
//! Octavia has never built is recreated unasked; any other stays as it is, unless the operator configured otherwise.

use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, Hold};
use openstack_ccm_openstack_api::octavia::OperatingStatus;

use super::converge::{converge, create_tree, vip_port};
use super::draft::Draft;
use super::types::{Plan, Then};
use super::{children, floating_ip};
use crate::config::ErrorRecovery;
use crate::load_balancer::names;
use crate::load_balancer::objects::step::{LoadBalancerStep, Step};
use crate::load_balancer::objects::{
    Children, Desired, Failover, FloatingIpGoal, Observed, ObservedLoadBalancer, Ownership, Recovery, Tags,
};

/// The load balancer broke and is recreated.
const REPLACED: &str = "LoadBalancerReplaced";
/// The load balancer is in ERROR and stays as it is.
const IN_ERROR: &str = "LoadBalancerInError";
/// Octavia is asked to fail the load balancer over.
const FAILOVER: &str = "LoadBalancerFailover";

/// The remedy for a load balancer in ERROR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Delete the load balancer and create another one.
    Replace,
    /// Octavia's failover.
    FailOver,
    /// Do nothing unasked, for this reason.
    Leave(String),
}

/// Returns whether the creation of a load balancer in ERROR failed, so that it has never served.
///
/// Octavia creates a load balancer as OFFLINE, with children in PENDING_CREATE, and only a finished build changes either; after a
/// failed creation they stay so for ever (measured on Octavia 19). Other providers' drivers may put the children into ERROR, which
/// counts if the Service was never published. A Service that was ready, by its own record, outweighs both.
pub(crate) fn was_never_built(recovery: &Recovery, broken: &ObservedLoadBalancer) -> bool {
    let built = |below: &Children| !below.none_was_built(!recovery.was_published);
    !recovery.was_ready
        && broken.operating == OperatingStatus::Offline
        && !broken.children.as_ref().is_none_or(built)
}

pub(super) fn remedy(desired: &Desired, observed: &Observed, broken: &ObservedLoadBalancer) -> Remedy {
    let recovery = &desired.recovery;
    if let Some(stranger) = of_somebody_else(broken) {
        return Remedy::Leave(stranger.to_owned());
    }
    let obstacle = obstacle_to_replacement(desired, observed, broken);
    if was_never_built(recovery, broken) {
        return obstacle.map_or(Remedy::Replace, Remedy::Leave);
    }
    match recovery.choice {
        ErrorRecovery::Report => Remedy::Leave("it might still forward traffic".to_owned()),
        ErrorRecovery::Failover => fail_over(recovery),
        ErrorRecovery::Replace => {
            obstacle.or_else(|| reason_to_keep(recovery, broken)).map_or(Remedy::Replace, Remedy::Leave)
        }
    }
}

fn fail_over(recovery: &Recovery) -> Remedy {
    match &recovery.failover {
        Failover::NotAsked => Remedy::FailOver,
        Failover::Asked => Remedy::Leave("a failover did not repair it".to_owned()),
        Failover::Refused(answer) => Remedy::Leave(format!("Octavia refused to fail it over ({answer})")),
    }
}

fn of_somebody_else(broken: &ObservedLoadBalancer) -> Option<&'static str> {
    if broken.ownership == Ownership::Guest {
        return Some("it was not created for this Service");
    }
    broken.is_retained().then_some("it was retained when its previous Service was deleted")
}

/// Returns why a load balancer that could be replaced is kept.
fn reason_to_keep(recovery: &Recovery, broken: &ObservedLoadBalancer) -> Option<String> {
    if recovery.retained {
        return Some("its reclaim-policy is retain".to_owned());
    }
    match broken.operating {
        OperatingStatus::Offline | OperatingStatus::Error => recovery.no_replacement.clone(),
        _ => Some("its operating status says that it forwards traffic".to_owned()),
    }
}

/// Returns why a load balancer in ERROR cannot be deleted.
fn obstacle_to_replacement(
    desired: &Desired,
    observed: &Observed,
    broken: &ObservedLoadBalancer,
) -> Option<String> {
    if broken.ownership == Ownership::Shared {
        return Some("other Services use it too".to_owned());
    }
    let Some(below) = &broken.children else { return Some("its children are not known".to_owned()) };
    if let Some(foreign) = children::first_foreign(below) {
        return Some(format!("it has {foreign}, which does not belong to this Service"));
    }
    let own_port = desired.load_balancer.vip.port_id.is_some()
        && desired.load_balancer.vip.port_id == broken.vip_port_id;
    let vip_port_id = broken.vip_port_id.as_deref();
    let mut on_vip = observed.floating_ips.iter().filter(|one| floating_ip::is_on(one, vip_port_id));
    let foreign = on_vip.find(|floating_ip| !floating_ip.ours);
    foreign.filter(|_| !own_port).map(|foreign| {
        format!(
            "it has floating IP {}, which does not belong to this Service and would be lost",
            foreign.address
        )
    })
}

/// Plans the remedy: Octavia refuses every change of a load balancer in ERROR except deletion and failover.
pub(super) fn recover(
    mut draft: Draft,
    desired: &Desired,
    observed: &Observed,
    broken: &ObservedLoadBalancer,
) -> Plan {
    match remedy(desired, observed, broken) {
        Remedy::Replace => replace(draft, desired, observed, broken),
        Remedy::Leave(reason) => leave(draft, desired, observed, broken, &reason),
        Remedy::FailOver => {
            draft.warn(
                FAILOVER,
                format!("{}; Octavia is asked to fail the load balancer over", statuses(broken)),
            );
            draft.step(Step::LoadBalancer(LoadBalancerStep::Failover { id: broken.id.clone() }));
            // This is reported where Octavia refuses.
            draft.block(in_error(broken));
            draft.finish()
        }
    }
}

fn statuses(broken: &ObservedLoadBalancer) -> String {
    let ObservedLoadBalancer { status, operating, .. } = broken;
    format!("{broken} has the provisioning status {status} and the operating status {operating}")
}

/// Deletes the load balancer, and creates another one with the same address.
fn replace(mut draft: Draft, desired: &Desired, observed: &Observed, broken: &ObservedLoadBalancer) -> Plan {
    draft.plan.heals = true;
    draft.warn(REPLACED, format!("{}; the load balancer is deleted and recreated", statuses(broken)));
    if let FloatingIpGoal::External(spec) = &desired.floating_ip {
        // The floating IP is detached when the port is deleted, and is attached to the port of the next load balancer. Until then
        // its tags record the VIP.
        let vips = broken.vip_addresses().filter(IpAddr::is_ipv4).map(names::previous_vip_tag);
        let tags: Tags = spec.tags.iter().cloned().chain(vips).collect();
        floating_ip::mark(&mut draft, &tags, &observed.floating_ips, broken.vip_port_id.as_deref());
    }
    draft.step(Step::LoadBalancer(LoadBalancerStep::Delete { id: broken.id.clone(), cascade: true }));
    let mut anew = desired.load_balancer.clone();
    let same_subnet = anew.vip.subnet_id.is_some() && anew.vip.subnet_id == broken.vip_subnet_id;
    if anew.vip.port_id.is_none() && same_subnet {
        anew.vip.address = anew.vip.address.or(broken.vip_address);
        for vip in &mut anew.vip.additional {
            let same = broken.additional_vips.iter().find(|(subnet_id, _)| *subnet_id == vip.subnet_id);
            vip.address = vip.address.or(same.map(|(_, address)| *address));
        }
    }
    create_tree(&mut draft, desired, anew);
    draft.plan.repairs = (0..draft.plan.steps.len()).collect();
    draft.finish()
}

/// Leaves the load balancer as it is. Octavia does not lock Neutron, so the floating IP still follows the Service.
fn leave(
    mut draft: Draft,
    desired: &Desired,
    observed: &Observed,
    broken: &ObservedLoadBalancer,
    reason: &str,
) -> Plan {
    let id = &broken.id;
    let obstacle = obstacle_to_replacement(desired, observed, broken);
    let deletion = if of_somebody_else(broken).is_some() || obstacle.is_some() {
        String::new()
    } else {
        format!(
            "; if no client uses the load balancer, delete it (openstack loadbalancer delete --cascade {id}), and it is recreated"
        )
    };
    let statuses = statuses(broken);
    let message = format!(
        "{statuses}; openstack-ccm takes no action now ({reason}): have an administrator fail the load balancer over (openstack \
         loadbalancer failover {id}){deletion}"
    );
    draft.warn(IN_ERROR, message);
    floating_ip::serve(&mut draft, &desired.floating_ip, &observed.floating_ips, &vip_port(broken));
    if draft.blocked.take().is_some() {
        draft.plan.steps.clear();
    }
    let failure = in_error(broken);
    let agrees = agrees(desired, observed, broken);
    let plan = draft.finish();
    Plan { then: if agrees { Then::Held(failure) } else { Then::Blocked(failure) }, ..plan }
}

fn in_error(broken: &ObservedLoadBalancer) -> Failure {
    let message = format!(
        "{broken} is in ERROR, so changes of the Service or of nodes cannot be applied until the load balancer is \
         repaired or recreated"
    );
    Failure::held(Hold::LoadBalancerInError, message)
}

/// Returns whether a healthy load balancer would only need marks, and repairs of what failed.
fn agrees(desired: &Desired, observed: &Observed, broken: &ObservedLoadBalancer) -> bool {
    let plan = converge(
        Draft { serial: desired.serial, additive: desired.additive, ..Draft::default() },
        desired,
        observed,
        broken,
    );
    let harmless = |(place, step): (usize, &Step)| match step {
        Step::FloatingIp(_) | Step::LoadBalancer(LoadBalancerStep::Update { .. }) => true,
        _ => plan.repairs.contains(&place),
    };
    plan.then == Then::Done && plan.steps.iter().enumerate().all(harmless)
}

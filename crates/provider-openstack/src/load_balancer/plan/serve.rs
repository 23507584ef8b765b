//! Plans how to serve a Service.

use std::borrow::Cow;
use std::collections::BTreeSet;

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::converge::{converge, create_tree, new_vip_port, vip_port};
use super::draft::Draft;
use super::floating_ip::{self, VipPort};
use super::held_back::hold_back;
use super::recovery;
use super::refusals::Refusals;
use super::types::{Plan, Wait};
use crate::load_balancer::objects::step::Handle;
use crate::load_balancer::objects::{Desired, ListenerKey, Observed, Ownership};

/// Plans how to reach the desired state, where nothing was refused.
#[cfg(test)]
pub(crate) fn serve(desired: &Desired, observed: &Observed) -> Plan {
    serve_beside(desired, observed, &Refusals::default())
}

/// Plans how to reach the desired state, as far as the cloud does not refuse it.
pub(crate) fn serve_beside(desired: &Desired, observed: &Observed, refusals: &Refusals) -> Plan {
    let active = observed.load_balancer.as_ref().filter(|there| there.status == ProvisioningStatus::Active);
    let (desired, held) = match active {
        Some(there) => hold_back(desired, there, refusals),
        None => (Cow::Borrowed(desired), Vec::new()),
    };
    let mut plan = whole(&desired, observed, refusals, BTreeSet::new());
    if !plan.stuck.is_empty() {
        // A listener that cannot be replaced still follows the Service in everything but its protocol.
        let stuck = plan.stuck.clone();
        plan = whole(&desired, observed, refusals, stuck);
    }
    plan.refused.splice(0..0, held);
    plan
}

fn whole(desired: &Desired, observed: &Observed, refusals: &Refusals, stuck: BTreeSet<ListenerKey>) -> Plan {
    let plan = Plan { notices: desired.notices.clone(), ..Plan::default() };
    let mut draft = Draft {
        plan,
        serial: desired.serial,
        additive: desired.additive,
        refusals: refusals.clone(),
        replaced_servers: desired.replaced_servers.clone(),
        stuck,
        ..Draft::default()
    };
    let Some(load_balancer) = &observed.load_balancer else { return create(draft, desired, observed) };
    match &load_balancer.status {
        ProvisioningStatus::Deleted => create(draft, desired, observed),
        ProvisioningStatus::Active => converge(draft, desired, observed, load_balancer),
        ProvisioningStatus::Error => recovery::recover(draft, desired, observed, load_balancer),
        ProvisioningStatus::PendingDelete => draft.wait(Wait::load_balancer(load_balancer)),
        // The VIP port exists from the start, so the floating IP need not wait.
        ProvisioningStatus::PendingCreate
        | ProvisioningStatus::PendingUpdate
        | ProvisioningStatus::Other(_) => {
            let vip = vip_port(load_balancer);
            floating_ip::serve(&mut draft, &desired.floating_ip, &observed.floating_ips, &vip);
            if draft.blocked.is_some() {
                draft.plan.steps.clear();
            }
            draft.wait(Wait::load_balancer(load_balancer))
        }
    }
}

fn create(mut draft: Draft, desired: &Desired, observed: &Observed) -> Plan {
    if let Some(refusal) = floating_ip::refusal(&desired.floating_ip, &observed.floating_ips) {
        draft.block(refusal);
        return draft.finish();
    }
    create_tree(&mut draft, desired, desired.load_balancer.clone());
    let vip = &desired.load_balancer.vip;
    let port = vip.port_id.clone().map_or_else(|| new_vip_port(&desired.load_balancer.name), Handle::Id);
    let vip = VipPort { port, address: vip.address, ownership: Ownership::Sole, without_port: None };
    floating_ip::serve(&mut draft, &desired.floating_ip, &observed.floating_ips, &vip);
    draft.finish()
}

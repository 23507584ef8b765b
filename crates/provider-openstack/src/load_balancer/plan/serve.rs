//! The plan for a Service that is to be served.

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::converge::{converge, create_tree, new_vip_port, vip_port};
use super::draft::Draft;
use super::floating_ip::{self, VipPort};
use super::recovery;
use super::types::{Plan, Wait};
use crate::load_balancer::model::{Desired, Observed, Ownership};
use crate::load_balancer::step::Handle;

/// What is to be done so that the cloud is as wanted.
pub(crate) fn serve(desired: &Desired, observed: &Observed) -> Plan {
    let plan = Plan { notices: desired.notices.clone(), ..Plan::default() };
    let mut draft = Draft { plan, serial: desired.serial, additive: desired.additive, ..Draft::default() };
    let Some(load_balancer) = &observed.load_balancer else { return create(draft, desired, observed) };
    match &load_balancer.status {
        ProvisioningStatus::Deleted => create(draft, desired, observed),
        ProvisioningStatus::Active => converge(draft, desired, observed, load_balancer),
        ProvisioningStatus::Error => recovery::recover(draft, desired, observed, load_balancer),
        ProvisioningStatus::PendingDelete => draft.wait(Wait::load_balancer(load_balancer)),
        // The VIP port exists from the first moment: the floating IP need not wait.
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
    create_tree(&mut draft, desired, desired.load_balancer.clone());
    let vip = &desired.load_balancer.vip;
    let port = vip.port_id.clone().map_or_else(|| new_vip_port(&desired.load_balancer.name), Handle::Id);
    let vip = VipPort { port, address: vip.address, ownership: Ownership::Sole };
    floating_ip::serve(&mut draft, &desired.floating_ip, &observed.floating_ips, &vip);
    draft.finish()
}

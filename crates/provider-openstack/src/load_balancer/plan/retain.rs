//! The plan for a load balancer that outlives its Service (`reclaim-policy: retain`).

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::octavia::{ProvisioningStatus, UpdateLoadBalancer};

use super::draft::Draft;
use super::types::{Plan, Wait};
use crate::load_balancer::model::ObservedLoadBalancer;
use crate::load_balancer::names;
use crate::load_balancer::step::{LoadBalancerStep, Step};

/// The load balancer stays.
const RETAINED: &str = "LoadBalancerRetained";

/// What is to be done so that the load balancer stays as it is, with all that belongs to it, whatever becomes of later
/// Services of the name: its description says so until one of them takes it over.
pub(crate) fn retain(load_balancer: &ObservedLoadBalancer) -> Plan {
    let ObservedLoadBalancer { id, name, status, .. } = load_balancer;
    let mut draft = Draft::default();
    if !load_balancer.is_retained() {
        if status.is_pending() {
            return draft.wait(Wait::load_balancer(load_balancer));
        }
        // Octavia refuses every change of one in ERROR.
        if *status == ProvisioningStatus::Error {
            draft.block(Failure::new(
                FailureClass::Unavailable,
                format!(
                    "load balancer {name} ({id}) is in ERROR, so it cannot be marked as one that stays: have an \
                     administrator fail it over (openstack loadbalancer failover {id}), or set \
                     loadbalancer.openstack.org/reclaim-policy to \"delete\""
                ),
            ));
            return draft.finish();
        }
        let description = Some(names::retained_description(&load_balancer.description));
        let changes = UpdateLoadBalancer { description, ..UpdateLoadBalancer::default() };
        draft.step(Step::LoadBalancer(LoadBalancerStep::Update { id: id.clone(), changes }));
    }
    let address = load_balancer.vip_address.map_or_else(|| "no address".to_owned(), |vip| vip.to_string());
    draft.notice(Notice::normal(
        RETAINED,
        format!(
            "load balancer {name} ({id}, {address}) stays with all that belongs to it, as \
             loadbalancer.openstack.org/reclaim-policy asks for"
        ),
    ));
    draft.finish()
}

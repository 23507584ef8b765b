//! A load balancer that was found, before what hangs on it is read.

use openstack_ccm_openstack_api::octavia::LoadBalancer;

use super::floating_ip::VipOwner;
use crate::load_balancer::model::observed::Ownership;

/// A load balancer that the Service may use.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// As Octavia shows it.
    pub(crate) load_balancer: LoadBalancer,
    /// To whom it belongs.
    pub(crate) ownership: Ownership,
    /// See [`previous_name`](crate::load_balancer::model::observed::ObservedLoadBalancer::previous_name).
    pub(crate) previous_name: Option<String>,
    /// Whether only the annotation says that it is the Service's.
    pub(crate) adopted: bool,
}

impl Found {
    /// The VIP port and whose it is.
    pub(super) fn vip_owner(&self) -> Option<VipOwner> {
        let Self { load_balancer, ownership, .. } = self;
        let port_id = load_balancer.vip_port_id.clone()?;
        Some(VipOwner { port_id, load_balancer_name: load_balancer.name.clone(), ownership: *ownership })
    }
}

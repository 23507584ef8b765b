//! `reclaim-policy: retain`: a load balancer that outlives its Service.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;

use super::model::observed::Ownership;
use super::observe::Found;
use super::observe::find::{self, Purpose};
use super::release::Releasing;
use super::report::Report;

/// The load balancer stays.
const RETAINED: &str = "LoadBalancerRetained";

impl Releasing<'_> {
    /// Leaves the Service's own load balancer as it is, with all that belongs to it, and answers whether there is one.
    /// What others use too is released like any other: only a load balancer as a whole can be kept.
    pub(super) async fn retains(&self, id: Option<&str>, report: &mut Report) -> Result<bool, Failure> {
        let Some(found) = self.own(id).await? else { return Ok(false) };
        let load_balancer = found.load_balancer;
        let address = load_balancer.vip_address.as_deref().unwrap_or("no address");
        report.notice(Notice::normal(
            RETAINED,
            format!(
                "load balancer {} ({}, {address}) stays with all that belongs to it, as \
                 loadbalancer.openstack.org/reclaim-policy asks for",
                load_balancer.name, load_balancer.id
            ),
        ));
        self.provider.memory.forget(&self.service.key);
        report.forget_load_balancer(self.service);
        Ok(true)
    }

    async fn own(&self, id: Option<&str>) -> Result<Option<Found>, Failure> {
        let octavia = &self.provider.openstack.octavia;
        let by_id = match id {
            Some(id) => find::by_id(octavia, &self.claim, Purpose::Release, id).await?,
            None => None,
        };
        let found = match by_id {
            Some(found) => Some(found),
            None => find::by_name(octavia, &self.claim, Purpose::Release).await?,
        };
        Ok(found.filter(|found| found.ownership == Ownership::Sole))
    }
}

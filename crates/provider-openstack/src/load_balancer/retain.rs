//! `reclaim-policy: retain`: a load balancer that outlives its Service.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::Outcome;
use tracing::debug;

use super::carry_out::Next;
use super::observe::{self, Found};
use super::plan;
use super::release::Releasing;
use super::report::Report;

impl Releasing<'_> {
    /// Leaves a load balancer of the Service alone as it is, with all that belongs to it, and marks it, so that no later
    /// Service of the name takes it along that did not take it over. Says where the pass ends, unless it is marked.
    pub(super) async fn retain(
        &mut self,
        found: Found,
        report: &mut Report,
    ) -> Result<Option<Outcome>, Failure> {
        let project_id = found.load_balancer.project_id.clone();
        let observed = observe::without_children(found)?;
        self.terms.retained_vip_ports.extend(observed.vip_port_id.clone());
        let plan = plan::retain(&observed);
        debug!(service = %self.service.key, %plan, "planned");
        let project_id = project_id.as_deref();
        let next = self.provider.carry_out(self.service, &plan, Some(&observed), project_id, report).await?;
        match next {
            Next::Waiting(waiting) => Ok(Some(Outcome::Waiting(waiting))),
            Next::Settled { .. } => Ok(None),
        }
    }
}

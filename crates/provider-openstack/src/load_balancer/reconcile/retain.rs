//! `reclaim-policy: retain`: a load balancer that outlives its Service.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::Outcome;
use tracing::debug;

use crate::load_balancer::observe::read::{self, Found};
use crate::load_balancer::plan;
use crate::load_balancer::reconcile::carry_out::Progress;
use crate::load_balancer::reconcile::release::Releasing;
use crate::load_balancer::reconcile::report::Report;

impl Releasing<'_> {
    /// Leaves a load balancer of the Service alone as it is, with all that belongs to it, and marks it, so that no later
    /// Service of the name takes it along that did not take it over. Says where the pass ends, unless it is marked.
    pub(crate) async fn retain(
        &mut self,
        found: Found,
        report: &mut Report,
    ) -> Result<Option<Outcome>, Failure> {
        let project_id = found.load_balancer.project_id.clone();
        let observed = read::without_children(found)?;
        self.terms.retained_vip_ports.extend(observed.vip_port_id.clone());
        let plan = plan::retain(&observed);
        debug!(service = %self.service.key, %plan, "planned");
        let project_id = project_id.as_deref();
        let next = self.provider.carry_out(self.service, &plan, Some(&observed), project_id, report).await?;
        match next {
            Progress::Waiting(waiting) => Ok(Some(Outcome::Waiting(waiting))),
            Progress::Converged { .. } => Ok(None),
        }
    }
}

//! `reclaim-policy: retain`: a load balancer that outlives its Service.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::Waiting;
use tracing::debug;

use super::carry_out::{PlanContext, Progress};
use super::release::Releasing;
use crate::load_balancer::observe::{Found, whole};
use crate::load_balancer::plan;
use crate::load_balancer::report::Report;

impl Releasing<'_> {
    /// Leaves a load balancer of the Service alone as it is, with all that belongs to it, and marks it, so that no later
    /// Service of the name takes it along that did not take it over. Answers what the reconciliation ends to wait for, unless it is marked.
    pub(crate) async fn retain(
        &mut self,
        found: Found,
        report: &mut Report,
    ) -> Result<Option<Waiting>, Failure> {
        let project_id = found.load_balancer.project_id.clone();
        let observed = whole::without_children(found)?;
        self.terms.retained_vip_ports.extend(observed.vip_port_id.clone());
        let plan = plan::retain(&observed);
        debug!(service = %self.service.key, %plan, "planned");
        let context = PlanContext {
            service: self.service,
            plan: &plan,
            gives_up: true,
            load_balancer: Some(&observed),
            project_id: project_id.as_deref(),
        };
        match self.reconciler.carry_out(&context, None, report).await.progress? {
            Progress::Waiting(waiting) => Ok(Some(waiting)),
            Progress::Converged { .. } => Ok(None),
        }
    }
}

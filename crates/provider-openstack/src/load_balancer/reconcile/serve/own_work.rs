//! Work of Octavia that an earlier reconciliation of the same Service began.

use openstack_ccm_core::provider::{Outcome, Waiting};

use super::Serving;
use crate::load_balancer::model::observed::Ownership;
use crate::load_balancer::reconcile::carry_out::AT_MOST;
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::Aspect;

impl Serving<'_> {
    /// What to wait for where a step of this Service has locked its load balancer, and the poller has not seen the end of that. A timer, or
    /// a node that joins, may begin a reconciliation just then. It could change nothing, and to look would cost many calls: the next
    /// one would have to read everything once more. If the end is not seen for long, everything is read after all.
    pub(super) fn wait_for_own_work(&self, report: &mut Report) -> Option<Outcome> {
        let Self { reconciler, service, settings, .. } = *self;
        let (id, ownership) = reconciler.beliefs.locked_by_own_step(&service.key)?;
        let is_meant = match &settings.load_balancer_id {
            Some(named) => *named == id,
            None => ownership != Ownership::Guest,
        };
        let since = reconciler.watchlist.own_work(&id, &service.key).filter(|_| is_meant)?;
        let at_most = AT_MOST.checked_sub(since).filter(|left| !left.is_zero())?;
        // An earlier write of the id may have failed.
        if !settings.is_unreadable(Aspect::LoadBalancer) {
            report.load_balancer(service, &id, ownership);
        }
        Some(Outcome::Waiting(Waiting { on: format!("the change of load balancer {id}"), at_most }))
    }
}

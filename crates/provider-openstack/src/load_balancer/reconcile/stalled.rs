//! Waits for a load balancer that cannot be changed although it is not PENDING.
//!
//! The poller would find such a load balancer finished at its first look, and wake the Service for nothing. So it does not watch,
//! and the Service is reconciled again after a growing pause.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Waiting, WaitsOn};
use tokio::time::Instant;

use super::Reconciler;
use super::carry_out::{LOAD_BALANCER_STUCK, PlanContext};
use crate::limits::LOST_WORK_TIMEOUT;
use crate::load_balancer::objects::observed::ObservedLoadBalancer;
use crate::load_balancer::objects::step::{Locked, Next};
use crate::load_balancer::plan::Wait;
use crate::load_balancer::report::Report;
use crate::load_balancer::state::attempts::Stall;

impl Reconciler {
    /// Waits for a child of a load balancer that is not PENDING itself: Octavia may have lost its work on the child.
    pub(super) fn wait_for_child(
        &self,
        context: &PlanContext<'_>,
        there: &ObservedLoadBalancer,
        wait: &Wait,
        report: &mut Report,
    ) -> Next {
        let message = format!(
            "{wait} and has been for more than {} minutes although {there} is {}: Octavia might have lost the task; have an \
             administrator check Octavia, and fail the load balancer over (openstack loadbalancer failover {}) if Octavia is not \
             working on this change",
            LOST_WORK_TIMEOUT.as_secs() / 60,
            there.status,
            there.id
        );
        stalled(self.note_stall(context), wait.to_string(), message, report)
    }

    /// Waits after Octavia refused a step as if the load balancer were locked, although the poller or a look showed that it is not.
    /// `None` the first time: another client has most likely begun a change, and the poller will see its end.
    pub(super) fn wait_after_refusals(
        &self,
        context: &PlanContext<'_>,
        locked: &Locked,
        report: &mut Report,
    ) -> Option<Next> {
        let there = context.load_balancer.filter(|_| locked.operation.is_none())?;
        let stall = self.note_stall(context);
        if stall.is_first() {
            return None;
        }
        let message = format!(
            "Octavia has refused every change of {there} as immutable for more than {} minutes although the load balancer is {}: \
             have an administrator check Octavia",
            LOST_WORK_TIMEOUT.as_secs() / 60,
            there.status
        );
        Some(stalled(stall, locked.on.clone(), message, report))
    }

    fn note_stall(&self, context: &PlanContext<'_>) -> Stall {
        self.records.of(context.service).lock().attempts.stalled(context.gives_up, Instant::now())
    }
}

/// Waits and, after a while, warns. The message never varies, so that repeats fold into one Event.
fn stalled(stall: Stall, on: String, message: String, report: &mut Report) -> Next {
    let is_stuck = stall.age(Instant::now()) >= LOST_WORK_TIMEOUT;
    report.notices(is_stuck.then(|| Notice::warning(LOAD_BALANCER_STUCK, message)));
    Next::Wait(Waiting { on: WaitsOn::StalledChild(on), at_most: stall.pause(), unfinished: None })
}

//! From a plan to what comes next.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::Waiting;
use openstack_ccm_core::service::Service;
use tokio::time::Instant;

use super::Reconciler;
use crate::load_balancer::apply::{self, Applied, Locked};
use crate::load_balancer::belief::{Belief, Event, Goal};
use crate::load_balancer::model::observed::{ObservedLoadBalancer, Ownership};
use crate::load_balancer::plan::{Plan, Then, Wait};
use crate::load_balancer::poller::{Afterwards, Awaited, Operation};
use crate::load_balancer::report::Report;

/// A Service whose load balancer is PENDING is reconciled so often even when nobody wakes it. An amphora takes at most
/// some minutes.
pub(super) const AT_MOST: Duration = Duration::from_secs(120);

/// After so long, Octavia's worker has most likely died over its work, and nothing will end it.
pub(super) const STUCK: Duration = Duration::from_secs(600);
/// A load balancer stays PENDING, or nothing can be done with it although it is not.
pub(super) const LOAD_BALANCER_STUCK: &str = "LoadBalancerStuck";

/// A plan and what it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanContext<'a> {
    pub(super) service: &'a Service,
    pub(super) plan: &'a Plan,
    /// What the plan leads to; absent where a load balancer is given up.
    pub(super) goal: Option<Goal<'a>>,
    /// The load balancer, if there is one.
    pub(super) load_balancer: Option<&'a ObservedLoadBalancer>,
    /// Its owner.
    pub(super) project_id: Option<&'a str>,
}

/// What comes after a plan.
#[derive(Debug)]
pub(super) enum Progress {
    /// Everything is as the Service asks for.
    Converged {
        /// Whether this reconciliation had to do something for it.
        changed: bool,
        /// The address of the Service.
        address: Option<IpAddr>,
        /// Why nobody may rely on that.
        held: Option<Failure>,
    },
    /// Octavia is at work, and somebody watches.
    Waiting(Waiting),
}

impl Reconciler {
    /// Applies as much of a plan as can be done now, and notes what happened to `believed`.
    ///
    /// # Errors
    /// A step that failed; what blocks the plan; a repair that has to rest.
    pub(super) async fn carry_out(
        &self,
        context: &PlanContext<'_>,
        believed: Option<Belief>,
        report: &mut Report,
    ) -> Result<Progress, Failure> {
        let PlanContext { service, plan, goal, .. } = *context;
        report.notices(plan.notices.iter().cloned());
        let resting = self.resting(service, plan);
        let steps = if resting.is_some() {
            Cow::Owned(plan.steps_without_repairs())
        } else {
            Cow::Borrowed(plan.steps.as_slice())
        };
        let (applied, result) = apply::apply(&self.openstack, &steps).await;
        if let Some(believed) = believed {
            self.beliefs.put_back(&service.key, believed);
        }
        let served = goal.map(|goal| (plan, goal));
        let repairs = plan.heals && resting.is_none();
        self.beliefs.note(&service.key, &Event::Applied { applied: &applied, served, repairs });
        report.notices(applied.notices.iter().cloned());
        result?;
        if let Some(locked) = &applied.locked {
            if let Some(waits) = self.wait_after_refusals(context, locked, report) {
                return Ok(waits);
            }
            let afterwards = match locked.operation.filter(|_| goal.is_some() && locked.made.is_none()) {
                Some(_) => self.beliefs.afterwards(&service.key, &applied),
                None => Afterwards::Look,
            };
            return Ok(self.wait_for_lock(context, locked, afterwards, report));
        }
        if let Some(rest) = resting {
            return Err(rest);
        }
        self.conclude(context, &applied, report)
    }

    /// What failed inside Octavia may fail again: the first repair is made at once, the next ones wait. What is no
    /// repair does not wait with them: nodes that come and go become and cease to be members.
    fn resting(&self, service: &Service, plan: &Plan) -> Option<Failure> {
        let attempts = self.beliefs.attempts(&service.key);
        let pause = attempts.repair_pause(Instant::now()).filter(|_| plan.heals)?;
        let message = "Octavia failed again over the last change, which is sent again after a pause: see the status \
                       of the load balancer and its children in Octavia for the cause";
        let mut failure = Failure::new(FailureClass::Unavailable, message);
        failure.rests = Some(pause);
        Some(failure)
    }

    fn wait_for_lock(
        &self,
        context: &PlanContext<'_>,
        locked: &Locked,
        afterwards: Afterwards,
        report: &mut Report,
    ) -> Progress {
        let PlanContext { service, goal, load_balancer, project_id, .. } = *context;
        match (&locked.made, load_balancer) {
            (Some(made), _) => {
                report.load_balancer(service, &made.id, Ownership::Sole);
                let (id, project_id, name) = (&made.id, made.project_id.as_deref(), Some(made.name.as_str()));
                let awaited = Awaited { id, project_id, name, operation: locked.operation, afterwards };
                self.watchlist.watch(awaited, &service.key);
            }
            (None, Some(existing)) => {
                // What is being deleted keeps its name. Otherwise somebody may rename it, and then it is not gone.
                let keeps_name = goal.is_none() && locked.operation == Some(Operation::Deletion);
                let name = keeps_name.then_some(existing.name.as_str());
                let awaited =
                    Awaited { id: &existing.id, project_id, name, operation: locked.operation, afterwards };
                self.watchlist.watch(awaited, &service.key);
            }
            (None, None) => {}
        }
        Progress::Waiting(Waiting { on: locked.on.clone(), at_most: AT_MOST })
    }

    fn conclude(
        &self,
        context: &PlanContext<'_>,
        applied: &Applied,
        report: &mut Report,
    ) -> Result<Progress, Failure> {
        let PlanContext { service, plan, load_balancer, project_id, .. } = *context;
        let converged = |held: Option<Failure>| Progress::Converged {
            changed: applied.changed,
            address: applied.address.or(plan.address),
            held,
        };
        match &plan.then {
            Then::Done => Ok(converged(None)),
            Then::Held(failure) => Ok(converged(Some(failure.clone()))),
            Then::WaitFor(wait) => {
                if let Some(there) = load_balancer.filter(|there| there.id != wait.id) {
                    return Ok(self.wait_for_child(context, there, wait, report));
                }
                if let Some(existing) = load_balancer {
                    let (id, afterwards) = (&existing.id, Afterwards::Look);
                    let awaited = Awaited { id, project_id, name: None, operation: None, afterwards };
                    self.watchlist.watch(awaited, &service.key);
                }
                self.beliefs.note(&service.key, &Event::Waits);
                let since = self.beliefs.attempts(&service.key).waiting_since;
                let is_stuck = since.is_some_and(|since| since.elapsed() >= STUCK);
                report.notices(is_stuck.then(|| stuck(wait)));
                Ok(Progress::Waiting(Waiting { on: wait.to_string(), at_most: AT_MOST }))
            }
            Then::Blocked(failure) => Err(failure.clone()),
        }
    }
}

/// Says the same each time, so that repeats fold into one Event.
fn stuck(wait: &Wait) -> Notice {
    let message = format!(
        "{wait} for more than {} minutes: Octavia may have lost the work; have an administrator look at it",
        STUCK.as_secs() / 60
    );
    Notice::warning(LOAD_BALANCER_STUCK, message)
}

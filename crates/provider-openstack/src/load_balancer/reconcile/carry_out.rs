//! From a plan to what comes next.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::Waiting;
use openstack_ccm_core::service::Service;

use crate::load_balancer::OpenStackLoadBalancers;
use crate::load_balancer::apply::{self, Applied, Locked};
use crate::load_balancer::model::observed::{ObservedLoadBalancer, Ownership};
use crate::load_balancer::plan::{Plan, Then, Wait};
use crate::load_balancer::reconcile::report::Report;

/// A Service whose load balancer is PENDING is looked at so often even when nobody wakes it. An amphora takes at most
/// some minutes.
const AT_MOST: Duration = Duration::from_secs(120);

/// After so long, Octavia's worker has most likely died over its work, and nothing will end it.
const STUCK: Duration = Duration::from_secs(600);
/// A load balancer stays PENDING.
const LOAD_BALANCER_STUCK: &str = "LoadBalancerStuck";

/// What comes after a plan.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Everything is as it shall be.
    Converged {
        /// Whether this pass had to do something for it.
        changed: bool,
        /// The address of the Service.
        address: Option<IpAddr>,
        /// Why nobody may rely on that.
        held: Option<Failure>,
    },
    /// Octavia is at work, and somebody watches.
    Waiting(Waiting),
}

impl OpenStackLoadBalancers {
    /// Applies as much of a plan as can be done now.
    ///
    /// # Errors
    /// A step that failed; what blocks the plan; a repair that has to rest.
    pub(crate) async fn carry_out(
        &self,
        service: &Service,
        plan: &Plan,
        load_balancer: Option<&ObservedLoadBalancer>,
        project_id: Option<&str>,
        report: &mut Report,
    ) -> Result<Progress, Failure> {
        report.notices(plan.notices.iter().cloned());
        let resting = self.resting(service, plan);
        let steps = if resting.is_some() {
            Cow::Owned(plan.steps_without_repairs())
        } else {
            Cow::Borrowed(plan.steps.as_slice())
        };
        let (applied, result) = apply::apply(&self.openstack, &steps).await;
        if plan.heals && applied.changed && resting.is_none() {
            self.memory.repaired(&service.key);
        }
        report.notices(applied.notices.iter().cloned());
        self.memory.changed(&service.key, &applied);
        result?;
        if let Some(locked) = &applied.locked {
            return Ok(self.wait_for_lock(service, locked, load_balancer, project_id, report));
        }
        if let Some(rest) = resting {
            return Err(rest);
        }
        self.conclude(service, plan, &applied, load_balancer, project_id, report)
    }

    /// What failed inside Octavia may fail again: the first repair is made at once, the next ones wait. What is no
    /// repair does not wait with them: nodes that come and go become and cease to be members.
    fn resting(&self, service: &Service, plan: &Plan) -> Option<Failure> {
        let pause = self.memory.repair_pause(&service.key).filter(|_| plan.heals)?;
        let message = "Octavia failed again over the last change, which is sent again after a pause: see the status \
                       of the load balancer and its children in Octavia for the cause";
        let mut failure = Failure::new(FailureClass::Unavailable, message);
        failure.rests = Some(pause);
        Some(failure)
    }

    fn wait_for_lock(
        &self,
        service: &Service,
        locked: &Locked,
        load_balancer: Option<&ObservedLoadBalancer>,
        project_id: Option<&str>,
        report: &mut Report,
    ) -> Progress {
        match (&locked.made, load_balancer) {
            (Some(made), _) => {
                report.load_balancer(service, &made.id, Ownership::Sole);
                self.watchlist.watch(&made.id, made.project_id.as_deref(), &service.key);
            }
            (None, Some(existing)) => self.watchlist.watch(&existing.id, project_id, &service.key),
            (None, None) => {}
        }
        self.memory.begins_to_wait(&service.key);
        Progress::Waiting(Waiting { on: locked.on.clone(), at_most: AT_MOST })
    }

    fn conclude(
        &self,
        service: &Service,
        plan: &Plan,
        applied: &Applied,
        load_balancer: Option<&ObservedLoadBalancer>,
        project_id: Option<&str>,
        report: &mut Report,
    ) -> Result<Progress, Failure> {
        match &plan.then {
            Then::Done => Ok(Progress::Converged {
                changed: applied.changed,
                address: applied.address.or(plan.address),
                held: None,
            }),
            Then::Held(failure) => Ok(Progress::Converged {
                changed: applied.changed,
                address: applied.address.or(plan.address),
                held: Some(failure.clone()),
            }),
            Then::WaitFor(wait) => {
                if let Some(existing) = load_balancer {
                    self.watchlist.watch(&existing.id, project_id, &service.key);
                }
                report.notices((self.memory.waits(&service.key) >= STUCK).then(|| stuck(wait)));
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

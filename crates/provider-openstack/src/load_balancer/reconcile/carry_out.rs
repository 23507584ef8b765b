//! Applies a plan, and determines what comes next.

use std::borrow::Cow;
use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Waiting, WaitsOn};
use openstack_ccm_core::service::Service;
use tokio::time::Instant;

use super::Reconciler;
use crate::limits::{LOST_WORK_TIMEOUT, MAX_CHANGE_WAIT};
use crate::load_balancer::apply;
use crate::load_balancer::known::Observation;
use crate::load_balancer::objects::step::{Applied, Locked};
use crate::load_balancer::objects::step::{FloatingIpStep, LoadBalancerStep, Step};
use crate::load_balancer::objects::{ObservedLoadBalancer, Ownership};
use crate::load_balancer::plan::Refused;
use crate::load_balancer::plan::{Plan, Then, Wait};
use crate::load_balancer::report::Report;
use crate::load_balancer::state::watchlist::Awaited;

/// A load balancer stays PENDING, or cannot be changed although it is not PENDING.
pub(super) const LOAD_BALANCER_STUCK: &str = "LoadBalancerStuck";

#[derive(Clone, Copy, Debug)]
pub(super) struct PlanContext<'a> {
    pub(super) service: &'a Service,
    pub(super) plan: &'a Plan,
    /// Whether the Service gives the load balancer up.
    pub(super) gives_up: bool,
    pub(super) load_balancer: Option<&'a ObservedLoadBalancer>,
    /// Project that owns the load balancer.
    pub(super) project_id: Option<&'a str>,
}

/// The result of a plan.
#[derive(Debug)]
pub(super) enum Progress {
    /// Everything is as the Service asks for.
    Converged {
        /// Whether this reconciliation changed anything.
        changed: bool,
        /// The steps of this reconciliation, unless it had to wait.
        done: Vec<String>,
        /// The address of the Service.
        address: Option<IpAddr>,
        /// Why the converged state is unreliable.
        held: Option<Failure>,
    },
    /// Octavia is at work; the watchlist or a timeout wakes the Service.
    Waiting(Waiting),
    /// The cloud refused a step. The observation stays valid, and a plan without the step is possible.
    Refused(Refused),
}

/// The result of carrying out a plan.
#[derive(Debug)]
pub(super) struct CarriedOut {
    /// What comes next.
    pub(super) progress: Result<Progress, Failure>,
    /// The observation after the accepted steps, if still known.
    pub(super) known: Option<Observation>,
    /// Whether a step of ours holds the lock of the load balancer.
    pub(super) locked: bool,
    /// The cloud's message if it cannot create such a load balancer.
    pub(super) not_implemented: Option<String>,
    /// Whether the cloud refused to mark a floating IP as the Service's.
    pub(super) refused_mark: bool,
}

impl Reconciler {
    /// Applies as much of a plan as possible now, and updates the observation with the accepted steps.
    ///
    /// The progress is an error if a step failed, if something blocks the plan, or if a repair has to pause.
    pub(super) async fn carry_out(
        &self,
        context: &PlanContext<'_>,
        observation: Option<Observation>,
        report: &mut Report,
    ) -> CarriedOut {
        let PlanContext { service, plan, gives_up, .. } = *context;
        report.notices(plan.notices.iter().cloned());
        let resting = self.resting(service, plan);
        let steps = &self.due(service, plan).steps;
        let (applied, result) = apply::apply(self.lists.openstack(), steps).await;
        self.note_writes(context, steps, &applied);
        let accepted = applied.accepted.iter().filter_map(|(place, _)| steps.get(*place));
        let given_up: Vec<IpAddr> = accepted.filter_map(Step::gives_up).collect();
        self.given_up(&given_up, &service.key);
        let (record, now) = (self.records.of(service), Instant::now());
        record.lock().attempts.applied(&applied, gives_up, plan.heals && resting.is_none(), now);
        report.notices(applied.notices.iter().cloned());
        if let Some(observation) = &observation {
            record.lock().attempts.accepted(steps, &applied, observation.seen());
            if let (Some(step), Err(failure)) = (applied.failed.clone(), &result) {
                let failed = Refused { step, failure: failure.clone() };
                record.lock().attempts.failed(failed, observation.seen(), now);
            }
        }
        let refused = applied.refused.clone().filter(|_| observation.is_some());
        let is_sound = result.is_ok() || applied.is_delayed || refused.is_some();
        let by_others = applied.locked.is_some() && !applied.is_accepted();
        if !is_sound || by_others || refused.is_some() {
            record.lock().reset_repeat_guard();
        }
        let known = observation.filter(|_| is_sound && !by_others);
        let known = known.and_then(|mut known| known.accepted(steps, &applied).then_some(known));
        let progress = match (result, refused) {
            (Ok(()), _) => self.progress(context, &applied, resting, report),
            (Err(failure), Some(step)) if known.is_some() => Ok(Progress::Refused(Refused { step, failure })),
            (Err(failure), _) => Err(failure),
        };
        // An obstacle may be gone by the next reconciliation, which reads everything again.
        let known = known.filter(|_| progress.is_ok() || applied.is_delayed);
        let refused_mark = matches!(applied.refused, Some(Step::FloatingIp(FloatingIpStep::Tag { .. })));
        let (locked, not_implemented) = (applied.is_accepted(), applied.not_implemented);
        CarriedOut { progress, known, locked, not_implemented, refused_mark }
    }

    fn progress(
        &self,
        context: &PlanContext<'_>,
        applied: &Applied,
        resting: Option<Failure>,
        report: &mut Report,
    ) -> Result<Progress, Failure> {
        if let Some(locked) = &applied.locked {
            if let Some(waits) = self.wait_after_refusals(context, locked, report) {
                return Ok(waits);
            }
            return Ok(self.wait_for_lock(context, locked, report));
        }
        match resting {
            Some(rest) => Err(rest),
            None => self.conclude(context, applied, report),
        }
    }

    /// Marks older lists as out of date, even if a step got no answer.
    fn note_writes(&self, context: &PlanContext<'_>, steps: &[Step], applied: &Applied) {
        for step in steps {
            if let Step::LoadBalancer(LoadBalancerStep::Create { load_balancer, .. }) = step {
                self.lists.wrote_to_load_balancer(&load_balancer.name);
            }
        }
        if steps.iter().any(Step::locks) {
            let made = applied.locked.as_ref().and_then(|locked| locked.made.as_ref());
            let existing = context.load_balancer.into_iter().flat_map(|there| [&there.id, &there.name]);
            existing.chain(made.map(|made| &made.id)).for_each(|one| self.lists.wrote_to_load_balancer(one));
        }
        if !steps.iter().all(Step::locks) {
            self.lists.wrote_to_floating_ips();
        }
    }

    /// Returns the plan without repairs that have to pause.
    pub(super) fn due<'a>(&self, service: &Service, plan: &'a Plan) -> Cow<'a, Plan> {
        match self.resting(service, plan) {
            Some(_) => Cow::Owned(plan.without_repairs()),
            None => Cow::Borrowed(plan),
        }
    }

    /// Returns why repairs have to pause: what failed inside Octavia may fail again, so only the first repair is sent at once.
    /// Other steps do not wait: members still follow the nodes.
    fn resting(&self, service: &Service, plan: &Plan) -> Option<Failure> {
        let pause = self.records.of(service).lock().attempts.repair_pause(Instant::now());
        let pause = pause.filter(|_| plan.heals)?;
        let message = "Octavia failed again to apply the last change, which is sent again after a pause; to find the cause, see the \
                       status of the load balancer, its listeners, pools and members in Octavia";
        let mut failure = Failure::new(FailureClass::Unavailable, message);
        failure.rests = Some(pause);
        Some(failure)
    }

    fn wait_for_lock(&self, context: &PlanContext<'_>, locked: &Locked, report: &mut Report) -> Progress {
        let PlanContext { service, load_balancer, project_id, .. } = *context;
        let operation = locked.operation;
        match (&locked.made, load_balancer) {
            (Some(made), _) => {
                report.load_balancer(service, &made.id, Ownership::Sole);
                self.records.of(service).lock().load_balancer = Some((made.id.clone(), Ownership::Sole));
                let awaited = Awaited { id: &made.id, project_id: made.project_id.as_deref(), operation };
                self.watchlist.watch(awaited, &service.key);
            }
            (None, Some(existing)) => {
                self.watchlist.watch(Awaited { id: &existing.id, project_id, operation }, &service.key);
            }
            (None, None) => {}
        }
        wait_for_change(operation.is_some(), locked.on.clone())
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
            done: applied.done.clone(),
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
                    let awaited = Awaited { id: &existing.id, project_id, operation: None };
                    self.watchlist.watch(awaited, &service.key);
                }
                let waited = self.records.of(service).lock().attempts.waits(Instant::now());
                let is_stuck = waited >= LOST_WORK_TIMEOUT;
                report.notices(is_stuck.then(|| stuck(wait)));
                let is_own = self.watchlist.own_work(&wait.id, &service.key).is_some();
                Ok(wait_for_change(is_own, wait.to_string()))
            }
            Then::Blocked(failure) => Err(failure.clone()),
        }
    }
}

/// Waits until the poller sees the end of the change.
fn wait_for_change(is_own: bool, on: String) -> Progress {
    let on = if is_own { WaitsOn::OwnStep(on) } else { WaitsOn::OtherChange(on) };
    Progress::Waiting(Waiting { on, at_most: MAX_CHANGE_WAIT, unfinished: None })
}

/// Warns of a load balancer that stays PENDING. The message never varies, so that repeats fold into one Event.
fn stuck(wait: &Wait) -> Notice {
    let message = format!(
        "{wait} and has been for more than {} minutes: Octavia might have lost the task; have an administrator check Octavia",
        LOST_WORK_TIMEOUT.as_secs() / 60
    );
    Notice::warning(LOAD_BALANCER_STUCK, message)
}

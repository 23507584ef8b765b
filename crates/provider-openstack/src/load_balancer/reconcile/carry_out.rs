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
use crate::load_balancer::objects::step::{Applied, LoadBalancerStep, Locked, Next, Refused, Step};
use crate::load_balancer::objects::{ObservedLoadBalancer, Ownership};
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

impl Reconciler {
    /// Applies as much of a plan as possible now. Returns what became of that, and the observation after the accepted steps, if still
    /// known. A release has none, and plans anew each time.
    pub(super) async fn carry_out(
        &self,
        context: &PlanContext<'_>,
        observation: Option<Observation>,
        report: &mut Report,
    ) -> (Applied, Option<Observation>) {
        let PlanContext { service, plan, gives_up, .. } = *context;
        report.notices(plan.notices.iter().cloned());
        let resting = self.resting(service, plan);
        let steps = &self.due(service, plan).steps;
        let mut applied = apply::apply(self.lists.openstack(), steps).await;
        self.note_writes(context, steps, &applied);
        let accepted = applied.accepted.iter().filter_map(|(place, _)| steps.get(*place));
        let given_up: Vec<IpAddr> = accepted.filter_map(Step::gives_up).collect();
        self.given_up(&given_up, &service.key);
        let (record, now) = (self.records.of(service), Instant::now());
        record.lock().attempts.applied(&applied, gives_up, plan.heals && resting.is_none(), now);
        report.notices(applied.notices.iter().cloned());
        if let Some(observation) = &observation {
            record.lock().attempts.accepted(steps, &applied, observation.seen());
            if let (Some(step), Next::Retry(failure)) = (&applied.failed, &applied.next) {
                let failed = Refused { step: step.clone(), failure: failure.clone() };
                record.lock().attempts.failed(failed, observation.seen(), now);
            }
        }
        let is_refused = matches!(applied.next, Next::Without(_));
        let has_failed = matches!(applied.next, Next::Retry(_)) && !applied.is_delayed;
        let by_others = applied.locked.is_some() && !applied.is_accepted();
        if has_failed || is_refused || by_others {
            record.lock().reset_repeat_guard();
        }
        let plans_anew = observation.is_none();
        let known = observation.filter(|_| !has_failed && !by_others);
        let known = known.and_then(|mut known| known.accepted(steps, &applied).then_some(known));
        applied.next = match std::mem::take(&mut applied.next) {
            Next::Done { .. } => self.next(context, &applied, resting, report),
            Next::Without(refused) if known.is_none() && !plans_anew => Next::Retry(refused.failure),
            next => next,
        };
        // An obstacle may be gone by the next reconciliation, which reads everything again.
        let known = known.filter(|_| !matches!(applied.next, Next::Retry(_)) || applied.is_delayed);
        (applied, known)
    }

    fn next(
        &self,
        context: &PlanContext<'_>,
        applied: &Applied,
        resting: Option<Failure>,
        report: &mut Report,
    ) -> Next {
        if let Some(locked) = &applied.locked {
            let stalls = self.wait_after_refusals(context, locked, report);
            return stalls.unwrap_or_else(|| self.wait_for_lock(context, locked, report));
        }
        match resting {
            Some(rest) => Next::Retry(rest),
            None => self.conclude(context, report),
        }
    }

    /// Marks older answers about the load balancer as out of date, even if a step got no answer or was one on a floating IP: the next
    /// plan begins after it.
    fn note_writes(&self, context: &PlanContext<'_>, steps: &[Step], applied: &Applied) {
        for step in steps {
            if let Step::LoadBalancer(LoadBalancerStep::Create { load_balancer, .. }) = step {
                self.lists.wrote_to_load_balancer(&load_balancer.name);
            }
        }
        if !steps.is_empty() {
            if let Some(there) = context.load_balancer {
                // What the poller saw is such an answer, too.
                let _older = self.watchlist.take_end(&there.id);
            }
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

    fn wait_for_lock(&self, context: &PlanContext<'_>, locked: &Locked, report: &mut Report) -> Next {
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

    fn conclude(&self, context: &PlanContext<'_>, report: &mut Report) -> Next {
        let PlanContext { service, plan, load_balancer, project_id, .. } = *context;
        match &plan.then {
            Then::Done => Next::Done { held: None },
            Then::Held(failure) => Next::Done { held: Some(failure.clone()) },
            Then::WaitFor(wait) => {
                if let Some(there) = load_balancer.filter(|there| there.id != wait.id) {
                    return self.wait_for_child(context, there, wait, report);
                }
                if let Some(existing) = load_balancer {
                    let awaited = Awaited { id: &existing.id, project_id, operation: None };
                    self.watchlist.watch(awaited, &service.key);
                }
                let waited = self.records.of(service).lock().attempts.waits(Instant::now());
                let is_stuck = waited >= LOST_WORK_TIMEOUT;
                report.notices(is_stuck.then(|| stuck(wait)));
                let is_own = self.watchlist.own_work(&wait.id, &service.key).is_some();
                wait_for_change(is_own, wait.to_string())
            }
            Then::Blocked(failure) => Next::Retry(failure.clone()),
        }
    }
}

/// Waits until the poller sees the end of the change.
fn wait_for_change(is_own: bool, on: String) -> Next {
    let on = if is_own { WaitsOn::OwnStep(on) } else { WaitsOn::OtherChange(on) };
    Next::Wait(Waiting { on, at_most: MAX_CHANGE_WAIT, unfinished: None })
}

/// Warns of a load balancer that stays PENDING. The message never varies, so that repeats fold into one Event.
fn stuck(wait: &Wait) -> Notice {
    let message = format!(
        "{wait} and has been for more than {} minutes: Octavia might have lost the task; have an administrator check Octavia",
        LOST_WORK_TIMEOUT.as_secs() / 60
    );
    Notice::warning(LOAD_BALANCER_STUCK, message)
}

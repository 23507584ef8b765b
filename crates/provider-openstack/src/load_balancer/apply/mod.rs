//! Carries out a plan: one call for each step, without comparing or looking up anything.
//!
//! Octavia locks a load balancer with each change, so applying stops after the first step that locks. A process that dies anywhere
//! in here loses nothing: the next one looks at what is there.

mod neutron;
mod octavia;
mod requests;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::error::{ApiError, ConflictCause, ErrorKind};
use tracing::info;

use super::failure::{self, Missing};
use crate::load_balancer::objects::Failover;
use crate::load_balancer::objects::step::{
    Answer, Applied, FloatingIpStep, ListenerStep, LoadBalancerStep, Locked, Made, MemberStep, MonitorStep,
    Operation, PoolStep, Step,
};

/// Applies the steps in order, up to the first that locks the load balancer.
///
/// # Errors
/// The first call that fails, with what was being done. That the load balancer is locked is no failure.
pub(super) async fn apply(openstack: &OpenStack, steps: &[Step]) -> (Applied, Result<(), Failure>) {
    let mut applier = Applier { openstack, applied: Applied::default(), is_unsettled: false };
    let result = applier.apply(steps).await;
    (applier.applied, result)
}

struct Applier<'a> {
    openstack: &'a OpenStack,
    applied: Applied,
    /// Whether a step that failed has left something else than what was there before.
    is_unsettled: bool,
}

impl Applier<'_> {
    async fn apply(&mut self, steps: &[Step]) -> Result<(), Failure> {
        for (place, step) in steps.iter().enumerate() {
            // Only what an earlier step makes can be missing, and such a step locks: the next reconciliation finds the object.
            if !step.is_applicable() {
                return Ok(());
            }
            let answer = self.step(step).await;
            if let Step::LoadBalancer(LoadBalancerStep::Failover { id }) = step {
                self.applied.failover = answer_to_failover(&answer).map(|answer| (id.clone(), answer));
            }
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) if self.is_dispensable(step, &error) => continue,
                // The answer is noted, and the next reconciliation reports it.
                Err(_) if matches!(self.applied.failover, Some((_, Failover::Refused(_)))) => return Ok(()),
                Err(error) if is_locked(&error) => {
                    self.applied.locked =
                        Some(Locked { made: None, operation: None, on: failure::chain(&error) });
                    return Ok(());
                }
                Err(error) => {
                    if matches!(step, Step::LoadBalancer(LoadBalancerStep::Create { .. })) {
                        self.applied.failed_creation = Some(error.kind());
                        self.applied.not_implemented = not_implemented(&error);
                    }
                    if error.kind() == ErrorKind::BadRequest {
                        // An Octavia of another version than it was may take less, or more.
                        self.openstack.octavia.doubt_api_versions();
                    }
                    self.applied.is_delayed = is_delay(step, &error);
                    if is_refusal(step, &error) && !self.is_unsettled {
                        self.applied.refused.get_or_insert_with(|| step.clone());
                    } else {
                        self.applied.refused = None;
                    }
                    return Err(failure::of_call(&error, in_brief(step), missing(step)));
                }
            };
            info!(call = doing(step), "OpenStack write");
            self.applied.changed = true;
            let made = made(&answer);
            self.applied.accepted.push((place, answer));
            self.applied.done.push(doing(step));
            if step.locks() {
                let on = self.applied.done.join("; ");
                self.applied.locked = Some(Locked { made, operation: Operation::of(step), on });
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the Service can live without this step: warns the user, and goes on.
    fn is_dispensable(&mut self, step: &Step, error: &ApiError) -> bool {
        let Step::Pool(PoolStep::Update { id, changes }) = step else { return false };
        let refused = error.kind() == ErrorKind::BadRequest;
        let (true, Some(algorithm)) = (refused, &changes.lb_algorithm) else { return false };
        let text = failure::chain(error);
        let message = format!(
            "Octavia refuses the algorithm {algorithm}, so the pool keeps its present algorithm: {text}; correct \
             loadbalancer.openstack.org/lb-method"
        );
        self.applied.notices.push(Notice::warning("LoadBalancerLbMethodUnknown", message));
        self.applied.refused_algorithms.push((id.clone(), algorithm.clone()));
        true
    }

    async fn step(&mut self, step: &Step) -> Result<Answer, ApiError> {
        let octavia = &self.openstack.octavia;
        match step {
            Step::LoadBalancer(step) => octavia::load_balancer(octavia, step).await,
            Step::Listener(step) => octavia::listener(octavia, step).await,
            Step::Pool(step) => octavia::pool(octavia, step).await,
            Step::Member(step) => octavia::member(octavia, step).await,
            Step::Monitor(step) => octavia::monitor(octavia, step).await,
            Step::FloatingIp(step) => self.floating_ip(step).await.map(|()| Answer::Nothing),
        }
    }
}

fn made(answer: &Answer) -> Option<Made> {
    let Answer::LoadBalancer(made) = answer else { return None };
    let made = &made.load_balancer;
    Some(Made { id: made.id.clone(), project_id: made.project_id.clone() })
}

/// What an answer to the request for a failover says. Nothing where Octavia has not decided: it will be asked again.
fn answer_to_failover(answer: &Result<Answer, ApiError>) -> Option<Failover> {
    match answer {
        Ok(_) => Some(Failover::Asked),
        Err(error) => match error.kind() {
            // It may have arrived.
            ErrorKind::LostAnswer | ErrorKind::Decode => Some(Failover::Asked),
            ErrorKind::Conflict(ConflictCause::Immutable | ConflictCause::Stale)
            | ErrorKind::RateLimited
            | ErrorKind::Unauthorized
            | ErrorKind::Unavailable => None,
            _ => Some(Failover::Refused(failure::chain(error))),
        },
    }
}

/// Whether the same step may be sent again later as if nothing had happened: the cloud refused it because it has too much to do. A
/// creation may have arrived all the same.
fn is_delay(step: &Step, error: &ApiError) -> bool {
    match error.kind() {
        ErrorKind::RateLimited => true,
        ErrorKind::Unavailable => !is_creation(step),
        _ => false,
    }
}

fn is_creation(step: &Step) -> bool {
    matches!(
        step,
        Step::LoadBalancer(LoadBalancerStep::Create { .. })
            | Step::Listener(ListenerStep::Create { .. })
            | Step::Pool(PoolStep::Create { .. })
            | Step::Member(MemberStep::Create { .. })
            | Step::Monitor(MonitorStep::Create { .. })
            | Step::FloatingIp(FloatingIpStep::Create { .. })
    )
}

/// Whether the cloud will answer alike as long as nothing changes. Without its load balancer a Service has nothing that goes on.
fn is_refusal(step: &Step, error: &ApiError) -> bool {
    let is_refused = match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::Conflict(ConflictCause::Other)
        | ErrorKind::Quota
        | ErrorKind::Policy
        | ErrorKind::BadRequest => true,
        ErrorKind::Conflict(ConflictCause::Immutable | ConflictCause::Stale)
        | ErrorKind::Unauthorized
        | ErrorKind::RateLimited
        | ErrorKind::Unavailable
        | ErrorKind::LostAnswer
        | ErrorKind::ServerFault
        | ErrorKind::Decode
        | ErrorKind::NoEndpoint => false,
    };
    is_refused
        && !matches!(step, Step::LoadBalancer(step) if !matches!(step, LoadBalancerStep::Update { .. }))
}

fn is_locked(error: &ApiError) -> bool {
    error.kind() == ErrorKind::Conflict(ConflictCause::Immutable)
}

/// What Octavia answers where its driver cannot do what it was asked for.
const NOT_IMPLEMENTED: u16 = 501;

/// The cloud's own words where it says that it cannot do what it was asked for.
fn not_implemented(error: &ApiError) -> Option<String> {
    let says_so = error.status().is_some_and(|status| status.as_u16() == NOT_IMPLEMENTED);
    error.fault().filter(|_| says_so).map(|fault| fault.message.clone())
}

/// Who is to blame for an object that is not there: a creation names what the user configured.
fn missing(step: &Step) -> Missing {
    match step {
        Step::LoadBalancer(LoadBalancerStep::Create { .. })
        | Step::FloatingIp(FloatingIpStep::Create { .. }) => Missing::Input,
        _ => Missing::Race,
    }
}

fn doing(step: &Step) -> String {
    first_line(&step.to_string())
}

/// The same without the tags of what is made, which would stand before the cause of a failure.
fn in_brief(step: &Step) -> String {
    first_line(&format!("{step:#}"))
}

/// A new tree goes on for many lines.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

//! Carries out a plan: one call for each step, without comparisons or lookups.
//!
//! Octavia locks a load balancer with each change, so applying stops after the first step that locks. A process that dies here
//! loses nothing: the next one reads what exists.

mod neutron;
mod octavia;
mod requests;

use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::error::{ApiError, ConflictCause, ErrorKind};
use openstack_ccm_openstack_api::octavia::Value;
use tracing::info;

use super::failure::{self, Missing};
use crate::load_balancer::objects::Failover;
use crate::load_balancer::objects::step::{
    Answer, Applied, FloatingIpStep, ListenerStep, LoadBalancerStep, Locked, Made, MemberStep, MonitorStep,
    Next, Operation, PoolStep, Refused, Step,
};

/// Applies the steps in order, up to the first that locks the load balancer, or fails. A locked load balancer is no failure.
pub(super) async fn apply(openstack: &OpenStack, steps: &[Step]) -> Applied {
    let mut applier = Applier { openstack, applied: Applied::default(), part: None, is_unsettled: false };
    applier.apply(steps).await;
    applier.applied
}

struct Applier<'a> {
    openstack: &'a OpenStack,
    applied: Applied,
    /// The part of the last step that failed, if only a part did.
    part: Option<Step>,
    /// Whether a failed step left another state than before.
    is_unsettled: bool,
}

impl Applier<'_> {
    async fn apply(&mut self, steps: &[Step]) {
        for (place, step) in steps.iter().enumerate() {
            // Only objects that an earlier step creates can be missing, and such a step locks: the next reconciliation finds them.
            if !step.is_applicable() {
                return;
            }
            let answer = self.step(step).await;
            if let Step::LoadBalancer(LoadBalancerStep::Failover { id }) = step {
                self.applied.failover = answer_to_failover(&answer).map(|answer| (id.clone(), answer));
            }
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) if self.is_dispensable(step, &error) => continue,
                // The answer is noted, and the next reconciliation reports it.
                Err(_) if matches!(self.applied.failover, Some((_, Failover::Refused(_)))) => return,
                Err(error) if is_locked(&error) => {
                    self.applied.locked =
                        Some(Locked { made: None, operation: None, on: failure::chain(&error) });
                    return;
                }
                Err(error) => return self.fails(step, &error),
            };
            info!(call = doing(step), "OpenStack write");
            self.applied.changed = true;
            let made = made(&answer);
            self.applied.accepted.push((place, answer));
            self.applied.done.push(doing(step));
            if step.locks() {
                let on = self.applied.done.join("; ");
                self.applied.locked = Some(Locked { made, operation: Operation::of(step), on });
                return;
            }
        }
    }

    fn fails(&mut self, step: &Step, error: &ApiError) {
        if matches!(step, Step::LoadBalancer(LoadBalancerStep::Create { .. })) {
            self.applied.failed_creation = Some(error.kind());
            self.applied.members_refused = may_be_for_members(error);
            self.applied.not_implemented = not_implemented(error);
        }
        if error.kind() == ErrorKind::BadRequest {
            // Octavia may have been upgraded or downgraded, and support other attributes.
            self.openstack.octavia.doubt_api_versions();
        }
        self.applied.is_delayed = is_delay(step, error) && !self.is_unsettled;
        let failure = failure::of_call(error, in_brief(step), missing(step));
        if is_refusal(step, error) && !self.is_unsettled {
            let step = self.part.take().unwrap_or_else(|| step.clone());
            self.applied.next = Next::Without(Refused { step, failure });
        } else {
            self.applied.failed = Some(step.clone());
            self.applied.next = Next::Retry(failure);
        }
    }

    /// Returns whether the Service can do without this step, and warns the user if so.
    fn is_dispensable(&mut self, step: &Step, error: &ApiError) -> bool {
        let Step::Pool(PoolStep::Update { id, changes }) = step else { return false };
        let refused = error.kind() == ErrorKind::BadRequest;
        let algorithm = changes.attributes.get("lb_algorithm").and_then(Value::as_str);
        let (true, Some(algorithm)) = (refused, algorithm) else { return false };
        let text = failure::chain(error);
        let message = format!(
            "Octavia refuses the algorithm {algorithm}, so the pool keeps its present algorithm: {text}; correct \
             loadbalancer.openstack.org/lb-method"
        );
        self.applied.notices.push(Notice::warning("LoadBalancerLbMethodUnknown", message));
        self.applied.refused_algorithms.push((id.clone(), algorithm.into()));
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

/// Interprets the answer to a failover request. `None` where Octavia has not decided: it will be asked again.
fn answer_to_failover(answer: &Result<Answer, ApiError>) -> Option<Failover> {
    match answer {
        Ok(_) => Some(Failover::Asked),
        Err(error) => match error.kind() {
            // The request may have arrived.
            ErrorKind::LostAnswer | ErrorKind::Decode => Some(Failover::Asked),
            ErrorKind::Conflict(ConflictCause::Immutable | ConflictCause::Stale)
            | ErrorKind::RateLimited
            | ErrorKind::Unauthorized
            | ErrorKind::Unavailable => None,
            _ => Some(Failover::Refused(failure::chain(error))),
        },
    }
}

/// Returns whether the step may be sent again unchanged because the cloud was overloaded. A creation does not count, since it may
/// have arrived.
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

/// Returns whether the cloud will answer the same as long as nothing changes. A Service without a load balancer has nothing to keep
/// up.
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

/// Returns whether a new load balancer may have been refused for one of its members, or for want of quota for them.
fn may_be_for_members(error: &ApiError) -> bool {
    let resource = error.fault().and_then(|fault| failure::quota_resource(&fault.message));
    match error.kind() {
        ErrorKind::BadRequest => true,
        ErrorKind::Quota => resource == Some("Member"),
        _ => false,
    }
}

fn is_locked(error: &ApiError) -> bool {
    error.kind() == ErrorKind::Conflict(ConflictCause::Immutable)
}

/// Octavia's status code if its driver does not support a request.
const NOT_IMPLEMENTED: u16 = 501;

/// Returns the cloud's message if it does not support the request.
fn not_implemented(error: &ApiError) -> Option<String> {
    let says_so = error.status().is_some_and(|status| status.as_u16() == NOT_IMPLEMENTED);
    error.fault().filter(|_| says_so).map(|fault| fault.message.clone())
}

/// Returns the likely cause of a missing object: a creation names what the user configured.
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

/// Describes the step without the tags of a new object, which would precede the cause of a failure.
fn in_brief(step: &Step) -> String {
    first_line(&format!("{step:#}"))
}

/// Returns the first line: the description of a new tree has many.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

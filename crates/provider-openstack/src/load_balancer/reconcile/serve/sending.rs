//! What is decided before the steps of a plan are sent, and what becomes of refused ones.

use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use tokio::time::Instant;

use super::wanted::Planned;
use super::{Serving, needs_full_read};
use crate::load_balancer::known::Observation;
use crate::load_balancer::known::looks::Look;
use crate::load_balancer::objects::Ownership;
use crate::load_balancer::objects::digest::Digest;
use crate::load_balancer::objects::step::Refused;
use crate::load_balancer::plan::{self, Plan, Then};
use crate::load_balancer::report::Report;
use crate::load_balancer::state::identity_tags::Permission;

/// Changes that Octavia has accepted are needed again.
const CHANGE_REPEATED: &str = "LoadBalancerChangeRepeated";

impl Serving<'_> {
    /// Why the load balancer that an annotation names cannot take the Service, which has nothing on it yet.
    pub(super) fn blocked_move(&self, observation: &Observation, plan: &Plan) -> Option<Failure> {
        let Then::Blocked(failure) = &plan.then else { return None };
        let named = self.settings.load_balancer_id.as_deref();
        let there =
            observation.seen().load_balancer.as_ref().filter(|there| named == Some(there.id.as_str()))?;
        let is_new = observation.faults().is_empty()
            && there.ownership == Ownership::Guest
            && there.children.as_ref().is_some_and(|below| !plan::any_own(below));
        (is_new && failure.class == FailureClass::UserInput).then(|| failure.clone())
    }

    /// The look that the steps need which are sent now. None where all of them rest: nothing is sent then.
    pub(super) fn look_before(&self, observation: &Observation, plan: &Plan) -> Option<Look> {
        let due = self.reconciler.due(self.service, plan);
        let rests = due.steps.is_empty() && !plan.steps.is_empty();
        observation.look_before(&due).filter(|_| !rests)
    }

    /// Treats an algorithm that Octavia has refused as if it were set, and a load balancer that was never built as a failed creation.
    pub(super) fn note_what_failed(&self, observation: &mut Observation) {
        observation.mask_rejected_algorithms(&self.record().attempts.refused_algorithms);
        self.note_failed_creation(observation.seen());
    }

    /// Notes a refusal, so that the next plan goes on without the step. Where not everything was read, that may be the reason of the
    /// refusal: returns whether it counts.
    pub(super) fn note_refusal(&self, refused: Refused, seen: &Observation) -> bool {
        let certain = seen.is_whole() || !needs_full_read(&refused.failure);
        self.record().attempts.refused(refused, seen.seen(), certain, Instant::now())
    }

    /// Holds back tags that only say who owns the objects: until nothing else is to be done, and it is the Service's turn.
    /// Returns after which time to ask again.
    pub(super) fn defer_identity_tags(&self, planned: Planned) -> (Planned, Option<Duration>) {
        let (queue, key, plan) = (&self.reconciler.identity_tags, &self.service.key, &planned.plan);
        if plan.identity_tags.is_empty() {
            // What Octavia is at work on may be the tags.
            if plan.then == Then::Done {
                queue.ends(key);
            }
            return (planned, None);
        }
        let tags_in = match queue.ask(key) {
            Permission::Now if plan.only_identity_tags() => return (planned, None),
            Permission::Now | Permission::Never => None,
            Permission::In(time) => Some(time),
        };
        (Planned { plan: planned.plan.without_identity_tags(), ..planned }, tags_in)
    }

    /// Changes that were accepted before, and are needed again although nothing failed or changed, have no effect: they are sent again
    /// only after a pause, which grows.
    ///
    /// # Errors
    /// They have to wait.
    pub(super) fn pause_before_repeating(&self, plan: &Plan, report: &mut Report) -> Result<(), Failure> {
        if plan.steps.is_empty() && plan.then == Then::Done {
            self.record().reset_repeat_guard();
        }
        if plan.steps.is_empty() || plan.then != Then::Done || plan.heals {
            return Ok(());
        }
        let repeats = self.record().repeats(Digest::of_steps(&plan.steps));
        let Some(pause) = repeats else { return Ok(()) };
        let step = plan.steps.first().map(ToString::to_string).unwrap_or_default();
        let step = step.lines().next().unwrap_or_default();
        let message = format!(
            "changes that Octavia accepted are needed again ({step}): either this cloud does not apply them, or another client \
             reverts them; the changes are sent again after a pause"
        );
        report.notice(Notice::warning(CHANGE_REPEATED, message.clone()));
        let mut failure = Failure::new(FailureClass::Unavailable, message);
        failure.rests = Some(pause);
        Err(failure)
    }
}

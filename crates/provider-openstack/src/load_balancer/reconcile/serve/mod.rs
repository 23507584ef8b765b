//! One reconciliation of a Service that is to be served: `converge` is the loop, and this is the protocol that it keeps.
//!
//! 1. A plan starts from a whole look, under the lock of the load balancer's id, or of its name while no id is known. If only nodes changed
//!    since all was well, the members come from the status tree, and the rest from what was read then.
//! 2. Lists of load balancers, listeners, pools and floating IPs are shared ([`crate::load_balancer::read::lists`]).
//! 3. Octavia locks a load balancer with each change. While a step of ours holds the lock, its children are not read for the Service, for
//!    two minutes at most. The poller sees the end and wakes the Service.
//! 4. In between, what was read is kept, with each accepted step applied to it ([`crate::load_balancer::known::advance`]); the rest of the plan follows from
//!    that. It is dropped, and everything is read again, when the Service or the nodes changed, when the lock ended otherwise than ACTIVE,
//!    when a check shows something else, when a call failed or met somebody else's lock, and where an answer does not say what is
//!    there. After a pause lists are read again, too. 429 and 503 only delay: what was known before such a read is kept, and the same step
//!    is sent later, unless somebody else's holds the lock. Only a creation may have arrived all the same, after 503.
//! 5. Before some steps somebody looks: [`crate::load_balancer::known::looks`] has the table.
//! 6. The order of the steps is the plan's ([`crate::load_balancer::plan`]): build, swap, remove.
//! 7. All is well when the plan is empty after a whole look, or after a check that agrees. A floating IP, which Octavia does not know, is
//!    attached after that check. The same plan twice without a failure between is a Warning and a pause.
//! 8. After a whole look with an empty plan a digest stands for all of it. A check for drift compares it with lists, and reads everything
//!    where it differs.
//! 9. What is remembered of a Service is one record ([`crate::load_balancer::state::record`]), beside what is shared: locks that are waited for, creations under
//!    way, identity tags to come, replacements. Losing it costs reads and time.
//!
//! Rules of this that a trace of calls can show are held in all whole-program tests (`tests/program/support/trace` of `openstack-ccm`):
//!
//! | rule | what holds |
//! | --- | --- |
//! | `owner_is_shown_before_a_step` | an answer from after the reconciliation before shows the load balancer; one that only read, and failed at it, does not count |
//! | `one_step_at_a_time` | a load balancer gets no step before an answer shows that Octavia is done with the last one |
//! | `no_look_while_a_step_holds_the_lock` | see 3 |
//! | `creation_after_a_look_for_its_name` | nothing is created whose name was not looked for since the last attempt that may have arrived |
//! | `removal_after_a_look` | the first of several removals of listeners and pools follows a look at all children after whatever was changed before |
//! | `members_are_listed_before_they_are_named` | who names members that are there has listed them in the same reconciliation |
//! | `published_after_a_look` | before a load balancer that was made is published, its children were read after the last step |
//!
//! What the cloud answers leads to:
//!
//! | answer | to a read | to a step |
//! | --- | --- | --- |
//! | 400, 403, 404, 409 for another reason than a lock | the reconciliation fails, with the fault as an Event | the plan goes on without the step and what needs it, and the Event says so; after an incomplete look everything is read first. A load balancer that cannot be made fails the reconciliation |
//! | 404 about what was there | everything is read | as above |
//! | 409, locked (`immutable`) | | it waits until the lock has ended, and reads everything then |
//! | 409, older revision | | everything is read, and planned anew |
//! | 429, 503 | what was known is kept, and the read is made again after a pause | the same step is sent again after a pause; after 503 a creation counts as sent |
//! | 500, no answer, time-out | fails; what was known is dropped | fails; everything is read before the next step, since it may have arrived |
//! | ERROR of a child | | it is sent again once at once, then after pauses |
//! | ERROR of the load balancer | `recovery` decides, with the operator's and the Service's leave | |
//! | `PENDING_*` by a step of this Service | nothing is read until the poller sees the end | nothing is sent |
//! | `PENDING_*` by somebody else | the load balancer, by the poller | nothing is sent; everything is read at the end |
//! | the Service has changed | what was known is dropped, and everything is read | planned anew from what is there |
//! | only nodes have changed | the status tree shows the members | those of the members alone |
//!
//! The client sends a GET again by itself after 429, 503 or no answer, and other requests after 429 alone or, where the cloud names a time,
//! after 503; never a POST after 503 (`client::retry` of `openstack-api`).
//!
//! | module | does |
//! | --- | --- |
//! | `look` | finds out what is there: what a plan under way has made, a check, or everything |
//! | `wanted` | what the Service wants of what is there, and the plan |
//! | `facts` | looks up what the tree needs to know |
//! | `apply` | carries the plan out, and says how the Service is served then |
//! | `not_created` | what follows where the cloud refuses to make a load balancer |
//! | `by_address` | finds the Service that has the address, to share its load balancer |
//! | `admission` | lets only so many load balancers be created at once |
//! | `recovery` | what decides about a load balancer in ERROR |
//! | `previous` | gives up other load balancers that the Service has |
//! | `security_group` | the security group, around all that |

mod admission;
mod apply;
mod by_address;
mod facts;
mod look;
mod not_created;
mod previous;
mod recovery;
mod security_group;
mod wanted;

use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Outcome, Ready};
use openstack_ccm_core::service::{Intent, Service, ServiceKey};
use tokio::time::Instant;
use tracing::debug;

use super::Reconciler;
use crate::load_balancer::identity::ownership::Claim;
use crate::load_balancer::known::Observation;
use crate::load_balancer::known::looks::Look;
use crate::load_balancer::names::Names;
use crate::load_balancer::objects::Features;
use crate::load_balancer::objects::digest::Digest;
use crate::load_balancer::plan::Refused;
use crate::load_balancer::plan::{Plan, Then};
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::{Faults, Reading, Settings};
use crate::load_balancer::state::identity_tags::Permission;
use crate::load_balancer::state::locks::{LoadBalancerLock, TURN_AT_MOST};
use crate::load_balancer::state::record::{Beginning, Cached};
use apply::CarriedOn;
use wanted::Planned;

/// Changes that Octavia has accepted are needed again.
const CHANGE_REPEATED: &str = "LoadBalancerChangeRepeated";

/// A reconciliation under way: what does not change while it goes on.
struct Serving<'a> {
    reconciler: &'a Reconciler,
    intent: &'a Intent,
    service: &'a Service,
    settings: &'a Settings,
    /// What is wrong with the settings by themselves.
    faults: &'a Faults,
    features: Features,
    claim: Claim<'a>,
    beginning: &'a Beginning,
}

impl Reconciler {
    pub(super) async fn serve(&self, intent: &Intent, report: &mut Report) -> Result<Outcome, Failure> {
        let service = &intent.service;
        let names = Names::new(&self.cluster, service);
        let Reading { mut settings, mut faults, notices } = Reading::of(service, &self.config);
        faults.extend(self.share_by_address(service, &mut settings)?);
        // Before anything is taken out of the record: who has to wait for its turn begins later as if it had not been here.
        let named = settings.load_balancer_id.as_deref().unwrap_or(names.load_balancer());
        let Some(mut lock) = self.locks.take(named, &service.key) else {
            return Ok(Outcome::Deferred(TURN_AT_MOST));
        };
        let mut beginning = self.records.begin(intent);
        let known = std::mem::take(&mut beginning.known);
        report.notices(notices);
        let features = self.resolver.features_of_new(&settings).await?;
        let claim = Claim::new(service, &names, self.scope(), settings.allow_foreign_cluster);
        let serving = Serving {
            reconciler: self,
            intent,
            service,
            settings: &settings,
            faults: &faults,
            features,
            claim,
            beginning: &beginning,
        };
        let result = match serving.wait_for_admission() {
            Some(waits) => Ok(waits),
            None => serving.converge(known, &mut lock, report).await,
        };
        let is_denied = lock.is_denied();
        drop(lock);
        if is_denied {
            if beginning.drift_due {
                self.records.drift_due(&service.key);
            }
            return Ok(Outcome::Deferred(TURN_AT_MOST));
        }
        self.creations.reconciled(&service.key, matches!(result, Ok(Outcome::Ready(_))));
        if matches!(&result, Err(failure) if failure.rests.is_some()) {
            self.records.rests(&service.key);
        }
        match result? {
            // What is in ERROR, or lacks something, may not serve: nothing that might is given up for it.
            Outcome::Ready(ready) if is_held(&ready) || self.refuses(&service.key) => {
                Ok(Outcome::Ready(ready))
            }
            Outcome::Ready(ready) => Ok(Outcome::Ready(serving.leave_previous(ready, report).await)),
            outcome @ (Outcome::Waiting(_) | Outcome::Deferred(_) | Outcome::Released) => Ok(outcome),
        }
    }
}

impl Reconciler {
    /// Whether the cloud refuses something that the Service asks for.
    fn refuses(&self, key: &ServiceKey) -> bool {
        self.records.attempts(key).refusals.is_any(Instant::now())
    }
}

impl Serving<'_> {
    /// The same reconciliation with other settings.
    fn with<'a>(&'a self, settings: &'a Settings) -> Serving<'a> {
        let Self { reconciler, intent, service, faults, features, beginning, .. } = *self;
        let claim = self.claim.clone();
        Serving { reconciler, intent, service, settings, faults, features, claim, beginning }
    }

    /// Looks, plans, and takes one step, while no other reconciliation works on the load balancer.
    async fn converge(
        &self,
        known: Cached,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Outcome, Failure> {
        if let Some(waits) = self.wait_for_own_work(report) {
            self.reconciler.records.keep(&self.service.key, known);
            return Ok(waits);
        }
        let known = match self.unchanged(known, report).await? {
            Ok(ready) => return Ok(Outcome::Ready(ready)),
            Err(known) => known,
        };
        let mut observation = self.first_look(known, lock, report).await?;
        loop {
            let is_whole = observation.is_whole();
            // What was not looked at may be the reason of a failure.
            let needs_look = |failure: &Failure| !is_whole && needs_full_read(failure);
            self.note_what_failed(&mut observation);
            let (planned, tags_in) = match self.plan(&observation, report).await {
                Ok(Some(planned)) => self.defer_identity_tags(planned),
                Ok(None) => {
                    observation = Box::pin(self.look(Look::Whole, observation, lock, report)).await?;
                    continue;
                }
                Err(failure) if needs_look(&failure) => {
                    observation = Box::pin(self.read(lock, report)).await?;
                    continue;
                }
                Err(failure) => {
                    self.keep_after_overload(&failure, look::under_way(observation));
                    return Err(failure);
                }
            };
            let plan = &planned.plan;
            debug!(service = %self.service.key, %plan, whole = is_whole, "planned");
            if let Some(look) = self.look_before(&observation, plan) {
                observation = Box::pin(self.look(look, observation, lock, report)).await?;
                continue;
            }
            if let Some(waits) = self.wait_for_admission_of(plan) {
                return Ok(waits);
            }
            if is_whole {
                self.pause_before_repeating(plan, report)?;
            }
            if !self.begin_replacement(plan, observation.seen()) {
                continue;
            }
            observation = match Box::pin(self.apply(observation, &planned, tags_in, report)).await {
                CarriedOn::Ended(Err(failure)) if needs_look(&failure) => {
                    Box::pin(self.read(lock, report)).await?
                }
                CarriedOn::Ended(outcome) => return outcome,
                CarriedOn::Refused(refused, seen) => match self.note_refusal(refused, &seen) {
                    true => *seen,
                    false => Box::pin(self.look(Look::Whole, *seen, lock, report)).await?,
                },
            };
        }
    }

    /// The look that what is sent now needs. Where all of it rests, nothing is sent.
    fn look_before(&self, observation: &Observation, plan: &Plan) -> Option<Look> {
        let due = self.reconciler.due(self.service, plan);
        let rests = due.steps.is_empty() && !plan.steps.is_empty();
        observation.look_before(&due).filter(|_| !rests)
    }

    /// Algorithms that Octavia does not take count as what is there, and a load balancer that was never built as a failed creation.
    fn note_what_failed(&self, observation: &mut Observation) {
        let attempts = self.reconciler.records.attempts(&self.service.key);
        observation.mask_rejected_algorithms(&attempts.refused_algorithms);
        self.note_failed_creation(observation.seen());
    }

    /// Notes a refusal, so that the next plan goes on without the step. Where not everything was read, that may be the reason of the
    /// refusal: returns whether it counts.
    fn note_refusal(&self, refused: Refused, seen: &Observation) -> bool {
        let certain = seen.is_whole() || !needs_full_read(&refused.failure);
        self.reconciler.records.refused(&self.service.key, refused, seen.seen(), certain)
    }

    /// Holds back tags that only say who owns the objects: until nothing else is to be done, and it is the Service's turn.
    /// Returns after which time to ask again.
    fn defer_identity_tags(&self, planned: Planned) -> (Planned, Option<Duration>) {
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
    fn pause_before_repeating(&self, plan: &Plan, report: &mut Report) -> Result<(), Failure> {
        let (records, key) = (&self.reconciler.records, &self.service.key);
        if plan.steps.is_empty() && plan.then == Then::Done {
            records.reset_repeat_guard(key);
        }
        if plan.steps.is_empty() || plan.then != Then::Done || plan.heals {
            return Ok(());
        }
        let repeats = records.repeats(key, Digest::of_steps(&plan.steps));
        let Some(pause) = repeats else { return Ok(()) };
        let step = plan.steps.first().map(ToString::to_string).unwrap_or_default();
        let step = step.lines().next().unwrap_or_default();
        let message = format!(
            "Octavia accepted these changes before, but they are needed again ({step}): they have no effect \
            on this cloud, or another client changes the load balancer; the changes are sent again after a \
            pause"
        );
        report.notice(Notice::warning(CHANGE_REPEATED, message.clone()));
        let mut failure = Failure::new(FailureClass::Unavailable, message);
        failure.rests = Some(pause);
        Err(failure)
    }
}

/// Whether the load balancer is in a state in which nobody may rely on it.
fn is_held(ready: &Ready) -> bool {
    ready.unfinished.as_ref().is_some_and(|failure| matches!(failure.class, FailureClass::Held(_)))
}

/// Whether the reason of a failure may be that something is not as it is expected to be.
fn needs_full_read(failure: &Failure) -> bool {
    matches!(failure.class, FailureClass::UserInput | FailureClass::Busy)
}

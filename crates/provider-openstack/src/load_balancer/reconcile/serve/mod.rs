//! Reconciles a Service that needs a load balancer. `serve` takes the mutex; a `round` reads, determines what is wanted, and plans;
//! `carry_out` sends. All three follow this protocol.
//!
//! *Octavia's lock* is `provisioning_status` `PENDING_*` of the load balancer; *the mutex* is this program's own, one for each load balancer
//! (in the code `LoadBalancerLock`). A *step* is one change, as `plan` lists them: one request, but several for floating IPs. A *read* (in the
//! code also `Look::Whole`) reads all that the planner compares. The *status tree* is the answer to `GET loadbalancers/ID/status`; a *check*
//! compares it with what is kept. The *drift check* is what is done at an interval for a Service that did not change (8). *Other clients* are
//! people, other programs, and other Services on the same load balancer.
//!
//! 1. **Read** (`first_look`). A plan begins with a read: load balancer, listeners, pools, the Service's members and monitors, floating IPs;
//!    the load balancer without its children while Octavia's lock is held. Three things can stand in for it: what is kept of a plan in
//!    progress (4, `after_step`); if nothing but nodes has changed since the Service was converged, the state of then with the members of
//!    the status tree (`with_members`); at a drift check, a digest (8). The mutex is that of the load balancer's id, or of its name until a
//!    read shows the id (`find_locked`).
//! 2. **Shared lists** ([`crate::load_balancer::read::lists`]). Reconciliations that read at the same time share lists of load balancers,
//!    listeners, pools and floating IPs; whoever is alone asks alone. A list is used if it was requested after all of:
//!    - the beginning of the reconciliation that met the last change, drift check or convergence (`Records::begin`);
//!    - the beginning of the Service's last pause (`Record::rests`);
//!    - for the first read, the end of Octavia's lock that was waited for (`first_look`);
//!    - the last write of this process to the load balancer, or to any floating IP (`Lists::wrote_to_load_balancer`).
//!
//!    The drift check alone uses older ones (8).
//! 3. **One step** (`apply::apply`). A reconciliation ends with the first step that Octavia accepts and takes its lock for; steps on Neutron
//!    that come first are sent before it. The poller, which reads load balancers without their children, sees the end of the lock and
//!    wakes the Service. Until then reconciliations of this Service read nothing of it and send nothing (`wait_for_own_work`); after two
//!    minutes the next one begins with a read (1). What the poller saw counts until the next step, answered or not (`note_writes`).
//! 4. **Kept** (`keep`, [`crate::load_balancer::known::advance`]). Between steps the last read is kept, each accepted step applied to it.
//!    Everything is read again when the Service changed, when nodes changed or a drift check is due while a plan is in progress
//!    (`Records::begin`), when the lock ended otherwise than in ACTIVE, when the load balancer's name, description or tags are not as kept
//!    (`after_step`), when a check disagrees (`look`), after another client held the lock, after its deletion or failover (`keep`), where
//!    what was looked up is wrong (`plan`), and where the table of 5 says so.
//! 5. **Reads between steps** (`look_before`). Some steps need a fresh check, list of members, or read: the table is in
//!    [`crate::load_balancer::known::looks`]. It is chosen for the steps that are sent now, without those that wait out a pause.
//! 6. **Order** ([`crate::load_balancer::plan`]). Members of pools in use come before all but tags that announce the Service and the
//!    removal of an unfit monitor; then build, switch, remove. A listener that changes its protocol is deleted first: two cannot have
//!    one port. Whether the quota has room for its successor is asked when the plan begins and before the deletion (`without_room`). A
//!    listener keeps its pool while Octavia fails at the one that replaces it. Floating IPs are attached before anything is built on a
//!    load balancer that exists, and after a creation.
//! 7. **Done** (`outcome`). The Service is converged (`Ready`, published) when the plan has no step on Octavia left, except identity tags
//!    that wait for their turn (`defer_identity_tags`), after a read, or a check that agrees, made after the last step on Octavia. If the
//!    cloud refused some steps, it is `Ready` with that failure if its address is published, or leads to an open port while no other one is
//!    (`may_lead_to`). Then the security group closes ports (`converge_group`), and, if nothing is held or refused, load balancers that the
//!    Service used before are given up, each by a plan of its own (`leave_previous`).
//! 8. **Drift check** (`unchanged`). When a read showed an empty plan, a digest of the load balancer's `updated_at` and of what is wanted is
//!    kept (`Observation::agreement`), for a day at most (`Agreement::stands`). After a node change, in which nothing but members was
//!    written and which a check confirmed, the digest has the `updated_at` that showed the end of its last step: what another client changes
//!    between that step's beginning and the poller's answer shows within the day. At a drift check what is wanted is determined anew, and one
//!    list of load balancers and one of floating IPs, which serve all Services for a while (`Reader::for_drift`), show whether the digest
//!    still holds. Whom a list lacks, and guests, are asked for alone. If the digest does not hold, or there is none, everything is read.
//! 9. **Memory.** One record for each Service ([`crate::load_balancer::state::record`]). Shared by all Services: the mutexes, what the poller
//!    watches, the creations in progress, the identity tags still to be written, the replacements in progress, the lists, what was looked up,
//!    and which load balancers are missing. Losing it costs reads, time and repeated attempts; an exchange or removal of a floating IP that
//!    was asked for may stay undone.
//! 10. **Ends.** A reconciliation ends as `Waiting` for Octavia's lock (`wait_for_lock`), for a child that is PENDING (`wait_for_child`), for
//!     the mutex (`serve`), and for its turn to create (`wait_for_admission`). It ends as failed before any repair but the first (a step that
//!     is sent again because Octavia failed at it, `resting`), and when two reads in a row, with nothing failed or changed between them, lead
//!     to the same steps, which is also a Warning (`pause_before_repeating`). Other failures, also beside `Ready`, are tried again by their
//!     class; a refused step after a pause of its own; a text that means nothing only when the Service changes, or at the next drift check.
//! 11. **Restart** (`Records::to_serve`). Of Services that were served before, one list of each kind, begun since the start, serves all that
//!     read within a minute. Each is read. Other load balancers of a Service are looked for once more (`leave_previous`).
//!
//! Every whole-program test checks these rules against the trace of its calls (`tests/program/support/trace` of `openstack-ccm`):
//!
//! | rule | what holds |
//! | --- | --- |
//! | `owner_is_shown_before_a_step` | before a step, the load balancer appears in an answer requested after the Service's previous reconciliation; reconciliations that wrote nothing because a read failed or the mutex was taken do not count |
//! | `one_step_at_a_time` | a program sends a load balancer no step before an answer shows that Octavia is done with the last one |
//! | `no_look_while_a_step_holds_the_lock` | until the end is shown, for two minutes at most, the Service asks for no status tree and no listeners |
//! | `creation_after_a_look_for_its_name` | no load balancer is created before load balancers were listed since the last attempt that might have been carried out |
//! | `removal_after_a_look` | before a listener or pool is removed, the children were read since the last step that was not itself such a removal |
//! | `members_are_listed_before_they_are_named` | a batch that names existing members follows a list of them in the same reconciliation; the status tree is none |
//! | `published_after_a_look` | before a new load balancer is published, its children were read after the last step |
//!
//! What waits, and for how many seconds; *a to b* doubles:
//!
//! | what | seconds | kept by |
//! | --- | --- | --- |
//! | the poller's first look at an own step; the next ones | 1, after a creation or failover 4, after a deletion 2; a third longer each time, to 4 | `Operation::first_look`, [`crate::load_balancer::state::watchlist`] |
//! | the same for another client's lock | 1, a third longer each time, to 4, and at random up to half of that more | the same |
//! | the poller, while all its requests fail | 2 to 30 | [`crate::load_balancer::poll`] |
//! | a Service for Octavia's lock, if the poller sees no end | 120 | `MAX_CHANGE_WAIT` |
//! | a Service whose steps are refused as locked, or a child of which stays PENDING, while the load balancer is ACTIVE | 2 to 60 | `Stall` |
//! | the Warning that Octavia may have lost its work | 600 | `LOST_WORK_TIMEOUT` |
//! | a Service for the mutex, if it is not woken | 30 | `LoadBalancerLocks::turn` |
//! | a Service for its turn to create, if it is not woken; a place that nobody uses, or whose end nobody sees, until it is given on | 60; 60, 120 | [`crate::load_balancer::state::creations`] |
//! | one more place for creations, while none has ended | the first after 10, then each 2 | `Window::passes` |
//! | a Service for another that asks for the same address | 120, for one that has its load balancer already 600 | `share_by_address` |
//! | a repair after the first; the same steps once more | 10 to 600 | `Attempts::repaired` |
//! | a refused step | 10 to 600; where it takes down what serves, until the Service asks for something else | `RefusalRecord` |
//! | a step that takes down what serves, and failed | 10, then 3,600 | the same |
//! | a failure, by its class | 1 to 15 (busy), 5 to 120 (login, unavailable), 30 to 300 (input, quota), 60 to 300 (held), 5 to 300 (bug); longer where the cloud asks for it | `FailureClass::backoff` |
//! | another creation, after one that was accepted and is not shown | 600 to 3,600 | `CREATION_COUNTS_FOR` |
//! | identity tags | 60 after the load balancer was seen first; then 5 (`identity-tags-per-minute`) between two | `IdentityTagQueue` |
//! | a replacement of a load balancer in ERROR | 300 after a start; then one at a time, for 600 at most | `Replacements` |
//! | a reader for a list; all for the next one, after it failed | 10; 60 | `SharedList` |
//! | a drift check | 1,800 (`drift-check-interval`), and at random up to a fifth more | `Reschedule` of `controllers` |
//!
//! What is kept for a while, in seconds: a list 60, for drift checks a fifth of their interval; a digest a day at most; what was looked up
//! 600, of nodes 3,600 ([`crate::load_balancer::resolve`]); the count behind an absence 20.
//!
//! What an answer leads to, once the client has given up sending the request again (see below):
//!
//! | answer | to a read | to a step |
//! | --- | --- | --- |
//! | 400, 403, 404, 409 for another reason than a lock | the reconciliation fails, except for floating IPs of a sound load balancer, and nothing is kept; a refused status tree leads to a read | the step and all that needs it are left out, an Event says so, and the rest is planned from what is kept. If the cause may be that something is not as kept, everything is read and the step sent once more before it is left out. A creation or deletion of the load balancer fails the reconciliation |
//! | 404 in a check or a list of members; of a deletion | the same reconciliation reads everything | as above; a deletion counts as done |
//! | 404 of the load balancer | it is looked for by its name, also where the user wrote the id. If no name shows it, a Service whose id the user wrote fails until that is put right; for others [`crate::load_balancer::read`] (`absence`) decides whether it is created again | everything is read, which leads to the cell on the left |
//! | 409, locked (`immutable`) | does not occur | everything is read when the lock has ended; if none is seen, after at most 60 seconds |
//! | 412, older revision | does not occur | everything is read, and planned anew |
//! | 429, 502, 503, no connection | after a pause the read is sent again; what a check or a list of members was compared with is kept | after a pause the load balancer is read and the same step sent; everything is read first after 502, 503 or no connection of a creation of anything, and if steps were left out |
//! | 500, 504, time-out (60 s), lost or unreadable answer | the reconciliation fails, and nothing is kept; instead of a list, objects are read one by one; a status tree's 500 leads to a read | the reconciliation fails; everything is read before another step: this one might have been carried out. A load balancer or pool that shows then is used; one that shows later is given up (`leave_previous`) |
//! | a child in ERROR | is read as such | all its attributes are written again, at once the first time, then after pauses that grow for all of the Service's children together; other steps go on meanwhile, but nothing that relies on the child |
//! | load balancer in ERROR | is read as such | one that was never built is deleted and created again, if nothing of others is on it; any other is failed over or replaced only if `error-recovery` in cloud.conf says so (replaced only if the Service's reclaim policy allows it), else it stays as it is, but for its floating IPs, and an Event says so ([`crate::load_balancer::plan`], `recovery`) |
//! | `PENDING_*` by a step of this process for this Service | see 3 | nothing is sent |
//! | `PENDING_*` by another client | a reconciliation reads the load balancer without its children, and waits for the poller | but for `PENDING_DELETE` floating IPs may be attached; nothing else is sent; everything is read at the end |
//!
//! A Service that changes during a reconciliation or a lock is seen by its next reconciliation: what was kept is dropped, and when
//! Octavia's lock has ended (3) everything is read and planned anew.
//!
//! The client itself sends a request again up to twice: a GET after 429, 502 to 504, time-out and no answer; PUT and DELETE after 429, and
//! after 502 or 503 if the cloud names a time; a POST after 429 only. Any is sent again once after a new login. None is where the cloud asks
//! for more than ten seconds (`client::retry` of `openstack-api`).
//!
//! What is decided elsewhere:
//!
//! | what | where |
//! | --- | --- |
//! | whether a write may begin: the lead, and that this is the same cluster | the gate of `controllers`, `permit` of `openstack-ccm-core`; the client sends no change without it |
//! | which nodes count, and whether a change of nodes matters to a Service | `backends` of the service controller in `controllers` |
//! | whether a node is gone while Nova does not answer: it stays, and so does its member | the node lifecycle controller of `controllers` |
//! | which members a pool has for these nodes | [`crate::load_balancer::desired`] (`members`, `kept_members`) |
//! | which Service is next | the queue of `controllers` |
//! | whose a load balancer is | [`crate::load_balancer::identity`] |
//! | whether one that cannot be found is gone | [`crate::load_balancer::read`] (`absence`, `missing`) |
//! | how an address is published | `openstack-ccm-advertise` |
//!
//! | module | does |
//! | --- | --- |
//! | `drift` | the drift check |
//! | `look` | reads what exists: a plan in progress, a check, or everything |
//! | `keep` | keeps what is known for the next reconciliation |
//! | `sending` | what is decided before steps are sent, and what becomes of refused ones |
//! | `wanted` | what the Service wants of what is there, and the plan |
//! | `facts` | looks up what the tree needs to know |
//! | `apply` | sends the steps, and says how the Service is served then |
//! | `not_created` | what follows where the cloud refuses to make a load balancer |
//! | `address_change` | says that the published address changes |
//! | `by_address` | finds the Service that has the address, to share its load balancer |
//! | `admission` | lets only so many load balancers be created at once |
//! | `recovery` | what decides about a load balancer in ERROR |
//! | `previous` | gives up other load balancers that the Service has |
//! | `security_group` | the security group, around all that |

mod address_change;
mod admission;
mod apply;
mod by_address;
mod drift;
mod facts;
mod keep;
mod look;
mod not_created;
mod previous;
mod recovery;
mod security_group;
mod sending;
mod wanted;

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::MutexGuard;
use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::{Outcome, Ready};
use openstack_ccm_core::service::{Intent, Service};
use tokio::time::Instant;
use tracing::debug;

use super::Reconciler;
use crate::load_balancer::identity::ownership::Claim;
use crate::load_balancer::known::Observation;
use crate::load_balancer::known::looks::Look;
use crate::load_balancer::names::Names;
use crate::load_balancer::objects::Features;
use crate::load_balancer::objects::step::{Next, Refused};
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::{Faults, Reading, Settings};
use crate::load_balancer::state::locks::{LoadBalancerLock, LoadBalancerLocks};
use crate::load_balancer::state::record::{Beginning, Cached, Record};
use keep::Kept;
use wanted::Planned;

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

/// What a round ends with, to be carried out.
struct Round {
    observation: Observation,
    planned: Planned,
    /// After which time identity tags may be written that wait for their turn.
    tags_in: Option<Duration>,
}

impl Reconciler {
    pub(super) async fn serve(&self, intent: &Intent, report: &mut Report) -> Result<Outcome, Failure> {
        let service = &intent.service;
        let names = Names::new(&self.cluster, service);
        let Reading { mut settings, mut faults, notices } = Reading::of(service, &self.config);
        let asks_for: Vec<IpAddr> = settings.asked_addresses().collect();
        faults.extend(self.share_by_address(intent, &asks_for, &mut settings)?);
        // Before anything is taken out of the record: who has to wait for its turn begins later as if it had not been here.
        // The annotation may not have been written yet.
        let used = self.records.load_balancer(&service.key).map(|(id, _)| id);
        let named = settings.load_balancer_id.as_deref().or(used.as_deref()).unwrap_or(names.load_balancer());
        let Some(mut lock) = self.locks.take(named, &service.key) else {
            return Ok(Outcome::Waiting(LoadBalancerLocks::turn()));
        };
        let mut beginning = self.records.begin(intent, asks_for);
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
            beginning.postpone();
            return Ok(Outcome::Waiting(LoadBalancerLocks::turn()));
        }
        self.creations.reconciled(&service.key, matches!(result, Ok(Outcome::Ready(_))));
        if matches!(&result, Err(failure) if failure.rests.is_some()) {
            beginning.record.lock().rests();
        }
        match result? {
            // What is in ERROR, or lacks something, may not serve: nothing that might is given up for it.
            Outcome::Ready(ready) if is_held(&ready) || serving.is_refused() => Ok(Outcome::Ready(ready)),
            Outcome::Ready(ready) => Ok(Outcome::Ready(serving.leave_previous(ready, report).await)),
            outcome @ (Outcome::Waiting(_) | Outcome::Released) => Ok(outcome),
        }
    }
}

impl Serving<'_> {
    /// What is remembered of the Service.
    fn record(&self) -> MutexGuard<'_, Record> {
        self.beginning.record.lock()
    }

    /// Whether the cloud refuses something that the Service asks for.
    fn is_refused(&self) -> bool {
        self.record().attempts.refusals.is_any(Instant::now())
    }

    /// The same reconciliation with other settings.
    fn with<'a>(&'a self, settings: &'a Settings) -> Serving<'a> {
        let Self { reconciler, intent, service, faults, features, beginning, .. } = *self;
        let claim = self.claim.clone();
        Serving { reconciler, intent, service, settings, faults, features, claim, beginning }
    }

    /// Works on the load balancer while no other reconciliation does: rounds, each of which is carried out, until one of them ends with a
    /// step that has to be waited for, or with nothing left to do.
    async fn converge(
        &self,
        known: Cached,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Outcome, Failure> {
        if let Some(waits) = self.wait_for_own_work(report) {
            self.record().known = known;
            self.beginning.postpone();
            return Ok(waits);
        }
        let known = match self.unchanged(known, report).await? {
            Ok(ready) => return Ok(Outcome::Ready(ready)),
            Err(known) => known,
        };
        let mut observation = self.first_look(known, lock, report).await?;
        loop {
            let round = match self.round(observation, lock, report).await? {
                ControlFlow::Continue(round) => round,
                ControlFlow::Break(waits) => return Ok(waits),
            };
            let is_whole = round.observation.is_whole();
            observation = match Box::pin(self.carry_out(round, report)).await {
                ControlFlow::Break(Err(failure)) if !is_whole && needs_full_read(&failure) => {
                    Box::pin(self.read(lock, report)).await?
                }
                ControlFlow::Break(outcome) => return outcome,
                ControlFlow::Continue((refused, seen)) => match self.note_refusal(refused, &seen) {
                    true => *seen,
                    false => Box::pin(self.look(Look::Whole, *seen, lock, report)).await?,
                },
            };
        }
    }

    /// A round: determines what is wanted of what is there, and plans, and reads again until that is enough to send the first steps. Breaks
    /// with what has to be waited for first.
    async fn round(
        &self,
        mut observation: Observation,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<ControlFlow<Outcome, Round>, Failure> {
        loop {
            let is_whole = observation.is_whole();
            self.note_what_failed(&mut observation);
            let (planned, tags_in) = match self.plan(&mut observation, report).await {
                Ok(Some(planned)) => self.defer_identity_tags(planned),
                Ok(None) => {
                    observation = Box::pin(self.look(Look::Whole, observation, lock, report)).await?;
                    continue;
                }
                // What was not read may be the reason.
                Err(failure) if !is_whole && needs_full_read(&failure) => {
                    observation = Box::pin(self.read(lock, report)).await?;
                    continue;
                }
                Err(failure) => {
                    self.keep_after_overload(&failure, keep::under_way(observation));
                    return Err(failure);
                }
            };
            let plan = &planned.plan;
            debug!(service = %self.service.key, %plan, whole = is_whole, "planned");
            if let Some(failure) = self.blocked_move(&observation, plan) {
                observation = Box::pin(self.read_beside(failure, lock, report)).await?;
                continue;
            }
            if let Some(look) = self.look_before(&observation, plan) {
                observation = Box::pin(self.look(look, observation, lock, report)).await?;
                continue;
            }
            if let Some(waits) = self.wait_for_admission_of(plan) {
                return Ok(ControlFlow::Break(waits));
            }
            if is_whole {
                self.pause_before_repeating(plan, report)?;
            }
            if self.begin_replacement(plan, observation.seen()) {
                return Ok(ControlFlow::Continue(Round { observation, planned, tags_in }));
            }
        }
    }

    /// Carries out what a round has planned: opens node ports, sends the steps up to the first that takes Octavia's lock, closes node ports that
    /// are no longer needed, and keeps what is known. Continues with that where the cloud refused a step and a plan without it is possible.
    ///
    /// The outcome is an error as in [`Next::Retry`], with all faults of the Service's settings.
    async fn carry_out(
        &self,
        round: Round,
        report: &mut Report,
    ) -> ControlFlow<Result<Outcome, Failure>, (Refused, Box<Observation>)> {
        let Round { observation, planned, tags_in } = round;
        let Planned { plan, wanted, .. } = &planned;
        let (queue, key) = (&self.reconciler.identity_tags, &self.service.key);
        let agreement = observation.agreement(&wanted.desired).filter(|_| plan.is_converged());
        let serving = self.with(&wanted.settings);
        serving.open_node_ports(plan, &wanted.facts, report).await;
        let tags = plan.only_identity_tags();
        if tags {
            queue.begins(key);
        }
        let (mut applied, known) = serving.send(observation, &planned, report).await;
        let (next, known) = match (std::mem::take(&mut applied.next), known) {
            (Next::Without(refused), Some(known)) => {
                if tags {
                    queue.ends(key);
                }
                return ControlFlow::Continue((refused, Box::new(known)));
            }
            other => other,
        };
        let mut outcome = serving.outcome(next, &applied, &planned, report).await;
        if tags && outcome.is_err() {
            queue.ends(key);
        }
        if let (Ok(Outcome::Ready(ready)), Some(known)) = (&outcome, &known) {
            serving.report_address(ready, known, report).await;
        }
        let known = known.filter(|_| outcome.is_ok() || plan.refused.is_empty());
        outcome = outcome.map_err(|failure| wanted.faults.add_to(failure));
        if let Ok(Outcome::Ready(ready)) = &mut outcome {
            serving.converge_group(&wanted.facts, ready, report).await;
            let failed = ready.unfinished.take().map(|failure| wanted.faults.add_to(failure));
            ready.unfinished = failed.or_else(|| wanted.faults.failure());
            ready.requeue_after = tags_in;
        }
        let is_whole = match &outcome {
            Ok(Outcome::Ready(ready)) => tags_in.is_none() && ready.unfinished.is_none(),
            _ => true,
        };
        let (locked, address) = (applied.is_accepted(), applied.address.or(plan.address));
        let kept = Kept { known, locked, address, warnings: plan.warnings() };
        self.keep(&outcome, kept, agreement.filter(|_| is_whole));
        ControlFlow::Break(outcome)
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

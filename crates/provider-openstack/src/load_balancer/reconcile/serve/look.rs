//! Finds out what is there, and keeps what is known of it for the next reconciliation.

use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Outcome, Ready, Waiting, WaitsOn};
use openstack_ccm_openstack_api::cache::Moment;

use super::wanted::Wanted;
use super::{Serving, is_held};
use crate::limits::MAX_CHANGE_WAIT;
use crate::load_balancer::identity::outputs;
use crate::load_balancer::known::Observation;
use crate::load_balancer::known::looks::Look;
use crate::load_balancer::objects::digest::{Agreement, Digest};
use crate::load_balancer::objects::{Observed, ObservedLoadBalancer, Ownership};
use crate::load_balancer::read::Observing;
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::{Aspect, Exposure};
use crate::load_balancer::state::locks::LoadBalancerLock;
use crate::load_balancer::state::record::{Cached, Converged};
use crate::load_balancer::state::watchlist::End;

/// What is kept of a reconciliation that went on from an observation.
pub(super) struct Kept {
    /// What is there now, where that is still known.
    pub(super) known: Option<Observation>,
    /// Whether a step of ours holds the lock of the load balancer.
    pub(super) locked: bool,
    /// What of it is needed when all is well.
    pub(super) address: Option<IpAddr>,
    /// Warnings of the plan.
    pub(super) warnings: Vec<Notice>,
}

impl Serving<'_> {
    fn observing(&self) -> Observing<'_> {
        Observing {
            observer: &self.reconciler.observer,
            service: self.service,
            settings: self.settings,
            features: self.features,
            claim: &self.claim,
            attempts: &self.beginning.attempts,
            since: self.beginning.since,
            began: self.beginning.began,
        }
    }

    /// What to wait for where a step of this Service has locked its load balancer, and the poller has not seen the end of that. A timer, or
    /// a node that joins, may begin a reconciliation just then, which could change nothing. If the end is not seen for long, everything is
    /// read after all.
    pub(super) fn wait_for_own_work(&self, report: &mut Report) -> Option<Outcome> {
        let Self { reconciler, service, .. } = *self;
        let (id, ownership) = self.beginning.load_balancer.as_ref()?;
        let since =
            reconciler.watchlist.own_work(id, &service.key).filter(|_| self.is_used(id, *ownership))?;
        let at_most = MAX_CHANGE_WAIT.checked_sub(since).filter(|left| !left.is_zero())?;
        self.name_again(id, *ownership, report);
        let on = WaitsOn::OwnStep(format!("the change of load balancer {id}"));
        Some(Outcome::Waiting(Waiting { on, at_most, unfinished: None }))
    }

    /// Whether the Service still uses this load balancer.
    fn is_used(&self, id: &str, ownership: Ownership) -> bool {
        match self.settings.load_balancer_id.as_deref() {
            Some(named) => named == id,
            None => ownership != Ownership::Guest,
        }
    }

    /// Names the load balancer in the annotations of the Service: an earlier write of its id may have failed. What the user
    /// wrote wrongly stays, so that it can be corrected.
    fn name_again(&self, id: &str, ownership: Ownership, report: &mut Report) {
        if !self.settings.is_unreadable(Aspect::LoadBalancer) {
            report.load_balancer(self.service, id, ownership);
        }
    }

    /// A Service that is served as before, where a check for drift is due and lists show that nothing has changed since everything was
    /// read. What is known is handed back where they do not show it.
    pub(super) async fn unchanged(
        &self,
        known: Cached,
        report: &mut Report,
    ) -> Result<Result<Ready, Cached>, Failure> {
        if !self.beginning.drift_due {
            return Ok(Err(known));
        }
        let Cached::Converged(known) = known else { return Ok(Err(Cached::Nothing)) };
        let Converged { observed, project_id, address, agreement: Some(agreement), warnings } = *known else {
            return Ok(Err(Cached::Nothing));
        };
        if !self.reconciler.records.stands(&self.service.key, &agreement) {
            return Ok(Err(Cached::Nothing));
        }
        let observation = Observation::known(observed, project_id);
        let there = observation.seen().load_balancer.as_ref().filter(|there| self.may_go_on(there));
        let Some(id) = there.map(|there| there.id.clone()) else { return Ok(Err(Cached::Nothing)) };
        let wanted = match self.as_agreed(&observation, &id, agreement, report).await {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return Ok(Err(Cached::Nothing)),
            Err(failure) => {
                let known = converged(observation, address, Some(agreement), warnings);
                self.keep_after_overload(&failure, known);
                return Err(failure);
            }
        };
        let load_balancer = observation.seen().load_balancer.clone();
        if let Some(there) = &load_balancer {
            self.name_again(&there.id, there.ownership, report);
        }
        let serving = self.with(&wanted.settings);
        let mut ready = serving.ready(false, address, load_balancer.as_ref(), &wanted.facts, report)?;
        serving.converge_group(&wanted.facts, &mut ready, report).await;
        report.notices(warnings.iter().cloned());
        let kept = Kept { known: Some(observation), locked: false, address, warnings };
        let outcome = Ok(Outcome::Ready(ready.clone()));
        self.keep(&outcome, kept, Some(agreement).filter(|_| ready.unfinished.is_none()));
        Ok(Ok(ready))
    }

    /// What the Service wants, where lists show that nothing has changed since it agreed with what is there.
    async fn as_agreed(
        &self,
        observation: &Observation,
        id: &str,
        agreement: Agreement,
        report: &mut Report,
    ) -> Result<Option<Wanted>, Failure> {
        let wanted = self.want(observation, &[], report).await?;
        let of_tree = |updated_at: &str| Digest::of_tree(id, updated_at, &wanted.desired);
        let is_unchanged = wanted.faults.failure().is_none()
            && self.observing().is_unchanged(observation, agreement.digest, of_tree).await?;
        Ok(is_unchanged.then_some(wanted))
    }

    /// A read that an overloaded cloud refuses says nothing: what was known before is kept, and asked for again later. Reading everything
    /// in its place would be several calls more.
    pub(super) fn keep_after_overload(&self, failure: &Failure, known: Cached) {
        let (records, key) = (&self.reconciler.records, &self.service.key);
        if !failure.is_overload {
            return;
        }
        if self.beginning.drift_due && matches!(known, Cached::Converged(_)) {
            records.drift_due(key);
        }
        records.keep(key, known);
    }

    /// What is there, from what is known of it: what a plan under way has made, where its last step has ended well; the children with
    /// the members that are shown, where nothing but nodes has changed since all was well; else everything is read.
    pub(super) async fn first_look(
        &self,
        known: Cached,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Observation, Failure> {
        let mut observing = self.observing();
        if matches!(known, Cached::ChangedByOthers | Cached::PlanInProgress { .. }) {
            // Others may have listed it while Octavia was at work on it.
            observing.since = Moment::now();
        }
        let going_on = match known {
            Cached::Nothing | Cached::ChangedByOthers => None,
            Cached::PlanInProgress { observation, locked } => self.after_step(*observation, locked).await?,
            Cached::Converged(converged) => self.with_members(*converged).await?,
        };
        let Some(mut observation) = going_on else {
            return Box::pin(self.read_from(observing, lock, report)).await;
        };
        observation.expect(&self.beginning.joined);
        if let Some(there) = &observation.seen().load_balancer {
            self.name_again(&there.id, there.ownership, report);
            if outputs::is_written_by_us(self.service) {
                self.reconciler.observer.found(there);
            }
        }
        Ok(observation)
    }

    /// What a plan under way has made. A step that ended in anything but ACTIVE may have done anything, and so may somebody who has
    /// written to what says whose the load balancer is.
    async fn after_step(
        &self,
        mut observation: Observation,
        locked: bool,
    ) -> Result<Option<Observation>, Failure> {
        let there = observation.seen().load_balancer.as_ref().filter(|there| self.may_go_on(there));
        let Some(there) = there else { return Ok(None) };
        let end = self.reconciler.watchlist.take_end(&there.id);
        if !locked {
            return match self.observing().belongs_as_known(&observation).await {
                Ok(belongs) => Ok(belongs.then_some(observation)),
                Err(failure) => {
                    self.keep_after_overload(&failure, under_way(observation));
                    Err(failure)
                }
            };
        }
        let Some(shown) = end.and_then(End::active) else {
            self.reconciler.records.reset_repeat_guard(&self.service.key);
            return Ok(None);
        };
        self.reconciler.records.seen(&self.service.key);
        if !observation.belongs_as_shown(&shown) {
            return Ok(None);
        }
        observation.lock_ended(self.claim.previous_name_on(&shown));
        Ok(Some(observation))
    }

    /// What was there when all was well, with the members that Octavia shows now. What is wrong with a Service is judged by what was
    /// read.
    async fn with_members(&self, known: Converged) -> Result<Option<Observation>, Failure> {
        let Converged { observed, project_id, address, agreement, warnings } = known;
        let may_go_on = observed.load_balancer.as_ref().is_some_and(|there| self.may_go_on(there));
        if !may_go_on || self.faults.failure().is_some() || !self.settings.odd.is_empty() {
            return Ok(None);
        }
        let mut observation = Observation::known(observed, project_id);
        match self.observing().look_at_members(&mut observation).await {
            Ok(agrees) => Ok(agrees.then_some(observation)),
            Err(failure) => {
                self.keep_after_overload(&failure, converged(observation, address, agreement, warnings));
                Err(failure)
            }
        }
    }

    fn may_go_on(&self, there: &ObservedLoadBalancer) -> bool {
        self.is_used(&there.id, there.ownership) && there.children.is_some()
    }

    /// A look that the plan needs before it goes on. Where it shows anything else than is expected, everything is read.
    pub(super) async fn look(
        &self,
        look: Look,
        mut observation: Observation,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Observation, Failure> {
        let observing = self.observing();
        let agrees = match look {
            Look::Whole => Ok(false),
            Look::Check => observing.check(&mut observation).await,
            Look::Members(pool_id) => observing.list_members(&mut observation, &pool_id).await,
        };
        match agrees {
            Ok(true) => return Ok(observation),
            Ok(false) => {}
            Err(failure) => {
                self.keep_after_overload(&failure, under_way(observation));
                return Err(failure);
            }
        }
        // What was listed when the reconciliation began is not what was looked at.
        let observing = Observing { since: Moment::now(), ..observing };
        self.read_from(observing, lock, report).await
    }

    /// Everything of the load balancer that was made for the Service, where the one that its annotation names cannot take it.
    ///
    /// # Errors
    /// `failure`, which says why it cannot, where there is no other; any failed call.
    pub(super) async fn read_beside(
        &self,
        failure: Failure,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Observation, Failure> {
        let mut observation = Box::pin(self.observing().read_beside(failure, lock, report)).await?;
        observation.expect(&self.beginning.joined);
        Ok(observation)
    }

    /// Reads everything.
    pub(super) async fn read(
        &self,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Observation, Failure> {
        self.read_from(self.observing(), lock, report).await
    }

    async fn read_from(
        &self,
        observing: Observing<'_>,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Observation, Failure> {
        let read = Box::pin(observing.read(lock, report)).await;
        let mut observation = read.map_err(|failure| self.faults.add_to(failure))?;
        observation.expect(&self.beginning.joined);
        Ok(observation)
    }

    /// Keeps what is known for the next reconciliation.
    pub(super) fn keep(&self, outcome: &Result<Outcome, Failure>, kept: Kept, agreement: Option<Agreement>) {
        let (records, key) = (&self.reconciler.records, &self.service.key);
        let Kept { known, locked, address, warnings } = kept;
        if matches!(outcome, Ok(Outcome::Ready(_))) && self.settings.exposure == Exposure::Internal {
            records.is_internal(key);
        }
        let there = known.as_ref().and_then(|known| known.seen().load_balancer.as_ref());
        if let Some(there) = there {
            records.uses(key, Some((there.id.clone(), there.ownership)));
        }
        let known = match (outcome, known) {
            (_, None) => Cached::Nothing,
            (Ok(Outcome::Ready(ready)), Some(_)) if is_held(ready) => Cached::Nothing,
            // Floating IPs that could not be read are missing from what is cached: the next reconciliation reads everything.
            (Ok(Outcome::Ready(_)) | Err(_), Some(known)) if known.unread().is_some() => Cached::Nothing,
            (Ok(Outcome::Ready(_)), Some(known)) => {
                records.converged(key);
                converged(known, address, agreement, warnings)
            }
            // Somebody else is at work on the load balancer: everything is read when that has ended.
            (Ok(Outcome::Waiting(_)), Some(_)) if !locked => Cached::ChangedByOthers,
            (Ok(Outcome::Waiting(_) | Outcome::Released) | Err(_), Some(known)) => {
                Cached::PlanInProgress { observation: Box::new(known.rest()), locked }
            }
        };
        records.keep(key, known);
    }
}

/// A plan in progress without a step of its own under way. Nothing is cached of what could not be read completely.
pub(super) fn under_way(observation: Observation) -> Cached {
    if observation.unread().is_some() {
        return Cached::Nothing;
    }
    Cached::PlanInProgress { observation: Box::new(observation.rest()), locked: false }
}

fn converged(
    known: Observation,
    address: Option<IpAddr>,
    agreement: Option<Agreement>,
    warnings: Vec<Notice>,
) -> Cached {
    let (observed, project_id): (Observed, Option<String>) = known.into_known();
    Cached::Converged(Box::new(Converged { observed, project_id, address, agreement, warnings }))
}

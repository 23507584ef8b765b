//! Finds out what exists, and keeps it for the next reconciliation.

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
use crate::load_balancer::objects::digest::Agreement;
use crate::load_balancer::objects::{Observed, ObservedLoadBalancer, Ownership};
use crate::load_balancer::plan::DRAINED;
use crate::load_balancer::read::Observing;
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::{Aspect, Exposure};
use crate::load_balancer::state::locks::LoadBalancerLock;
use crate::load_balancer::state::record::{Cached, Converged};
use crate::load_balancer::state::watchlist::End;

/// What a reconciliation keeps.
pub(super) struct Kept {
    /// The observation after the accepted steps, if still known.
    pub(super) known: Option<Observation>,
    /// Whether a step of ours holds the lock of the load balancer.
    pub(super) locked: bool,
    /// Address of the Service, if it converged.
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
            record: &self.beginning.record,
            since: self.beginning.since,
            began: self.beginning.began,
        }
    }

    /// Returns what to wait for if a step of this Service has locked its load balancer, and the poller has not seen the end of
    /// that. A timer or a new node may trigger a reconciliation meanwhile, which could change nothing. If the end is not seen for
    /// long, everything is read.
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

    /// Returns whether the Service still uses this load balancer.
    fn is_used(&self, id: &str, ownership: Ownership) -> bool {
        match self.settings.load_balancer_id.as_deref() {
            Some(named) => named == id,
            None => ownership != Ownership::Guest,
        }
    }

    /// Writes the load balancer's id to the Service's annotations again: an earlier write may have failed. A wrong id of the user
    /// stays, so that the user can correct it.
    fn name_again(&self, id: &str, ownership: Ownership, report: &mut Report) {
        if !self.settings.is_unreadable(Aspect::LoadBalancer) {
            report.load_balancer(self.service, id, ownership);
        }
    }

    /// Returns the result for an unchanged Service if a drift check is due, and lists show that nothing changed since everything
    /// was read. Otherwise returns the known state.
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
        if !observation.seen().load_balancer.as_ref().is_some_and(|there| self.may_go_on(there)) {
            return Ok(Err(Cached::Nothing));
        }
        let wanted = match self.as_agreed(&observation, &agreement, report).await {
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

    /// Returns what the Service wants, if lists show that nothing changed since it last converged.
    async fn as_agreed(
        &self,
        observation: &Observation,
        agreement: &Agreement,
        report: &mut Report,
    ) -> Result<Option<Wanted>, Failure> {
        let wanted = self.want(observation, &[], report).await?;
        let is_unchanged = wanted.faults.failure().is_none()
            && agreement.wants(&wanted.desired)
            && self.observing().is_unchanged(observation, agreement).await?;
        Ok(is_unchanged.then_some(wanted))
    }

    /// Keeps the known state after a read that an overloaded cloud refused: the refusal proves nothing, and reading everything
    /// instead would take several more calls.
    pub(super) fn keep_after_overload(&self, failure: &Failure, known: Cached) {
        if !failure.is_overload {
            return;
        }
        if matches!(known, Cached::Converged(_)) {
            self.beginning.postpone();
        }
        self.record().known = known;
    }

    /// Returns the observation to begin with: that of a plan under way whose last step succeeded; the known children with the
    /// members that Octavia shows, if only nodes changed since the plan was last empty; else everything is read.
    pub(super) async fn first_look(
        &self,
        known: Cached,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Observation, Failure> {
        let mut observing = self.observing();
        if matches!(known, Cached::ChangedByOthers | Cached::PlanInProgress { .. }) {
            // Other reconciliations may have listed the load balancer while Octavia was at work on it.
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

    /// Continues with a plan under way. Everything is read instead if the step did not end in ACTIVE, since it may have done
    /// anything, or if another client changed the load balancer's owner marks.
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
            self.record().reset_repeat_guard();
            return Ok(None);
        };
        self.record().attempts.seen();
        if !observation.belongs_as_shown(&shown) {
            return Ok(None);
        }
        observation.lock_ended(self.claim.previous_name_on(&shown), shown.updated_at);
        Ok(Some(observation))
    }

    /// Returns the last converged state with the members that Octavia shows now. With faults that the cloud can mend, everything is read; as
    /// well where no member of a pool took connections.
    async fn with_members(&self, known: Converged) -> Result<Option<Observation>, Failure> {
        let Converged { observed, project_id, address, agreement, warnings } = known;
        let may_go_on = observed.load_balancer.as_ref().is_some_and(|there| self.may_go_on(there));
        // The status tree shows neither what administrators set nor the subnet that members have.
        let is_drained = warnings.iter().any(|warning| warning.reason == DRAINED);
        let lacks_members = is_drained || self.settings.is_unreadable(Aspect::MemberSubnet);
        if !may_go_on || lacks_members || self.faults.may_heal() || !self.settings.odd.is_empty() {
            return Ok(None);
        }
        let mut observation = Observation::known(observed, project_id);
        match self.observing().look_at_members(&mut observation, agreement.as_ref()).await {
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

    /// Takes the look that the plan needs. If it shows anything unexpected, everything is read.
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
        // Lists from the beginning of the reconciliation are older than what the look compared.
        let observing = Observing { since: Moment::now(), ..observing };
        self.read_from(observing, lock, report).await
    }

    /// Reads the load balancer that was made for the Service, because the one in its annotation cannot take it.
    ///
    /// # Errors
    /// `failure`, which says why it cannot, if there is no other load balancer; any failed call.
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

    /// Keeps the known state for the next reconciliation.
    pub(super) fn keep(&self, outcome: &Result<Outcome, Failure>, kept: Kept, agreement: Option<Agreement>) {
        let mut record = self.record();
        let Kept { known, locked, address, warnings } = kept;
        if matches!(outcome, Ok(Outcome::Ready(_))) && self.settings.exposure == Exposure::Internal {
            record.was_external = false;
        }
        let there = known.as_ref().and_then(|known| known.seen().load_balancer.as_ref());
        if let Some(there) = there {
            record.load_balancer = Some((there.id.clone(), there.ownership));
        }
        record.known = match (outcome, known) {
            (_, None) => Cached::Nothing,
            (Ok(Outcome::Ready(ready)), Some(_)) if is_held(ready) => Cached::Nothing,
            // The observation lacks floating IPs that could not be read, so the next reconciliation reads everything.
            (Ok(Outcome::Ready(_)) | Err(_), Some(known)) if known.unread().is_some() => Cached::Nothing,
            (Ok(Outcome::Ready(_)), Some(known)) => {
                record.converged();
                converged(known, address, agreement, warnings)
            }
            // Another client is changing the load balancer: everything is read after that.
            (Ok(Outcome::Waiting(_)), Some(_)) if !locked => Cached::ChangedByOthers,
            (Ok(Outcome::Waiting(_) | Outcome::Released) | Err(_), Some(known)) => {
                Cached::PlanInProgress { observation: Box::new(known.rest()), locked }
            }
        };
    }
}

/// Returns a plan in progress that no step of ours has locked. An incomplete observation is not cached.
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

//! Finds out what exists.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::{Outcome, Waiting, WaitsOn};
use openstack_ccm_openstack_api::cache::Moment;

use super::Serving;
use super::keep::{converged, under_way};
use crate::limits::MAX_CHANGE_WAIT;
use crate::load_balancer::identity::outputs;
use crate::load_balancer::known::Observation;
use crate::load_balancer::known::looks::Look;
use crate::load_balancer::objects::{ObservedLoadBalancer, Ownership};
use crate::load_balancer::plan::DRAINED;
use crate::load_balancer::read::Observing;
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::Aspect;
use crate::load_balancer::state::locks::LoadBalancerLock;
use crate::load_balancer::state::record::{Cached, Converged};
use crate::load_balancer::state::watchlist::End;

impl Serving<'_> {
    pub(super) fn observing(&self) -> Observing<'_> {
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
    pub(super) fn name_again(&self, id: &str, ownership: Ownership, report: &mut Report) {
        if !self.settings.is_unreadable(Aspect::LoadBalancer) {
            report.load_balancer(self.service, id, ownership);
        }
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

    pub(super) fn may_go_on(&self, there: &ObservedLoadBalancer) -> bool {
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
}

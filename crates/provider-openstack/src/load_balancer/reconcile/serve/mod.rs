//! One reconciliation of a Service that is to be served.

mod admission;
mod apply;
mod facts;
mod not_created;
mod own_work;
mod previous;
mod recovery;
mod security_group;
mod wanted;

use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::{Outcome, Ready};
use openstack_ccm_core::service::{Intent, Service};
use tracing::debug;

use super::Reconciler;
use super::identity_tags::Permission;
use crate::load_balancer::annotations::CONVERGED_DIGEST;
use crate::load_balancer::belief::Event;
use crate::load_balancer::model::facts::Features;
use crate::load_balancer::names::Names;
use crate::load_balancer::observe::{Observation, Observing};
use crate::load_balancer::ownership::Claim;
use crate::load_balancer::plan::{Plan, Then};
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::{Faults, Reading, Settings};
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
}

impl Reconciler {
    pub(super) async fn serve(&self, intent: &Intent, report: &mut Report) -> Result<Outcome, Failure> {
        let service = &intent.service;
        self.beliefs.saw(service);
        let names = Names::new(&self.cluster, service);
        let Reading { settings, faults, notices } = Reading::of(service, &self.config);
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
        };
        let result = match serving.wait_for_admission(report) {
            Some(waits) => Ok(waits),
            None => {
                let members = intent.nodes.len() * service.ports.len();
                let _room = self.members_in_hand.take(members).await;
                serving.converge_under_lock(report).await
            }
        };
        self.creations.reconciled(&service.key, matches!(result, Ok(Outcome::Ready(_))));
        match result? {
            // What is in ERROR may not serve: nothing that might is given up for it.
            Outcome::Ready(ready) if is_held(&ready) => Ok(Outcome::Ready(ready)),
            Outcome::Ready(ready) => Ok(Outcome::Ready(serving.leave_previous(ready, report).await)),
            outcome @ (Outcome::Waiting(_) | Outcome::Released) => Ok(outcome),
        }
    }
}

impl Serving<'_> {
    /// The same reconciliation with other settings.
    fn with<'a>(&'a self, settings: &'a Settings) -> Serving<'a> {
        let Self { reconciler, intent, service, faults, features, .. } = *self;
        Serving { reconciler, intent, service, settings, faults, features, claim: self.claim.clone() }
    }

    fn observing(&self) -> Observing<'_> {
        Observing {
            observer: &self.reconciler.observer,
            beliefs: &self.reconciler.beliefs,
            service: self.service,
            settings: self.settings,
            features: self.features,
            claim: &self.claim,
        }
    }

    /// Brings the cloud one step nearer to what is wanted, while no other reconciliation works on the load balancer.
    async fn converge_under_lock(&self, report: &mut Report) -> Result<Outcome, Failure> {
        let named = self.settings.load_balancer_id.as_deref();
        let name = named.unwrap_or(self.claim.names.load_balancer());
        let mut lock = self.reconciler.locks.take(name).await;
        if let Some(waits) = self.wait_for_own_work(report) {
            return Ok(waits);
        }
        let observing = self.observing();
        let beside = |failure| self.faults.beside(failure);
        let mut observation = observing.observe(&mut lock, report).await.map_err(beside)?;
        loop {
            let was_read = observation.was_read();
            // Given back before anything is read: that may have to wait for the lock of one who waits here.
            let place =
                if observation.was_listed() { self.reconciler.listed.acquire().await.ok() } else { None };
            let converged = Box::pin(self.converge(observation, report)).await;
            drop(place);
            match converged {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) if was_read => {
                    let message = "the observed state was not enough for a plan";
                    return Err(Failure::new(FailureClass::Bug, message));
                }
                Err(failure) if was_read || !may_be_mistaken(&failure) => return Err(failure),
                // The plan needs more than the observation permits, or what was believed is wrong.
                Ok(None) | Err(_) => {
                    observation = Box::pin(observing.read(&mut lock, report)).await.map_err(beside)?;
                }
            }
        }
    }

    /// Brings the cloud one step nearer to what is wanted. `None` where the observation does not permit that.
    async fn converge(
        &self,
        mut observation: Observation,
        report: &mut Report,
    ) -> Result<Option<Outcome>, Failure> {
        let (key, beliefs) = (&self.service.key, &self.reconciler.beliefs);
        let planned = self.plan(&observation, report).await;
        let planned = planned.inspect_err(|_| self.give_back(observation.seen()))?;
        let Some(Planned { plan, wanted, load_balancer }) = planned else { return Ok(None) };
        let (plan, tags_in) = self.pace(plan);
        debug!(service = %key, %plan, source = observation.source(), "planned");
        if !observation.permits(&plan) {
            return Ok(None);
        }
        if let Some(waits) = self.wait_for_admission_of(&plan, report) {
            self.give_back(observation.seen());
            return Ok(Some(waits));
        }
        if observation.changes_unseen(&plan) {
            self.observing().look_for_other_changes(&mut observation).await;
        }
        let planned = Planned { plan, wanted, load_balancer };
        let wanted = &planned.wanted;
        let digest = observation.digest(&wanted.desired);
        let lists_may_show_group = observation.lists_may_show_group(&planned.plan);
        let serving = self.with(&wanted.settings);
        let mut outcome = serving.apply(observation, &planned, report).await;
        if let Ok(Outcome::Ready(ready)) = &mut outcome {
            serving.converge_group(&wanted.facts, lists_may_show_group, ready, report).await;
            let failed = ready.unfinished.take().map(|failure| wanted.faults.beside(failure));
            ready.unfinished = failed.or_else(|| wanted.faults.failure());
        }
        match &mut outcome {
            Ok(Outcome::Ready(ready)) if is_held(ready) => beliefs.note(key, &Event::Held),
            Ok(Outcome::Ready(ready)) => {
                beliefs.note(key, &Event::Converged(wanted.goal()));
                ready.requeue_after = beliefs.confirm_in(key).into_iter().chain(tags_in).min();
                if let Some(digest) = digest {
                    report.annotate(self.service, CONVERGED_DIGEST.key, digest.to_string());
                }
            }
            Ok(Outcome::Waiting(_) | Outcome::Released) => {}
            Err(_) => beliefs.note(key, &Event::Failed),
        }
        outcome.map(Some)
    }

    /// Holds back tags that only say who owns the objects: until nothing else is to be done, and it is the Service's turn.
    /// Answers after which time to ask again.
    fn pace(&self, plan: Plan) -> (Plan, Option<Duration>) {
        let (queue, key) = (&self.reconciler.identity_tags, &self.service.key);
        if plan.identity_tags.is_empty() {
            // What Octavia is at work on may be the tags.
            if plan.then == Then::Done {
                queue.ends(key);
            }
            return (plan, None);
        }
        match queue.ask(key) {
            Permission::Now if plan.only_identity_tags() => (plan, None),
            Permission::Now | Permission::Never => (plan.without_identity_tags(), None),
            Permission::In(time) => (plan.without_identity_tags(), Some(time)),
        }
    }
}

/// Whether the load balancer is in a state in which nobody may rely on it.
fn is_held(ready: &Ready) -> bool {
    ready.unfinished.as_ref().is_some_and(|failure| matches!(failure.class, FailureClass::Held(_)))
}

/// Whether the reason of a failure may be that something was believed that is not so.
fn may_be_mistaken(failure: &Failure) -> bool {
    matches!(failure.class, FailureClass::UserInput | FailureClass::Busy)
}

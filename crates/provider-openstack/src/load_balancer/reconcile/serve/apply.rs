//! Carries out the plan of a Service to serve, and reports the result.

use std::net::IpAddr;
use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::{Outcome, Ready, Waiting};
use tokio::time::Instant;

use super::Serving;
use super::look::Kept;
use super::wanted::{Planned, Wanted};
use crate::load_balancer::annotations::{CONVERGED_DIGEST, LOAD_BALANCER_ADDRESS};
use crate::load_balancer::desired::{Sources, removed_members};
use crate::load_balancer::known::Observation;
use crate::load_balancer::objects::step::{LoadBalancerStep, Step};
use crate::load_balancer::objects::{Facts, ObservedLoadBalancer};
use crate::load_balancer::plan::Plan;
use crate::load_balancer::plan::Refused;
use crate::load_balancer::reconcile::addresses::addresses;
use crate::load_balancer::reconcile::carry_out::{CarriedOut, PlanContext, Progress};
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::address_as_wish;
use crate::load_balancer::state::attempts::PreviousVips;

/// The result of a plan.
pub(super) enum CarriedOn {
    Ended(Result<Outcome, Failure>),
    /// The cloud refused a step; a plan without it is possible.
    Refused(Refused, Box<Observation>),
}

/// The result of a plan's calls.
enum Called {
    /// The reconciliation ends with this outcome, and this is kept.
    Ended(Result<Outcome, Failure>, Box<Kept>),
    /// The cloud refused a step; a plan without it is possible.
    Refused(Refused, Box<Observation>),
}

impl Serving<'_> {
    /// Opens node ports, applies the plan, closes node ports that are no longer needed, and keeps what is known. `tags_in` is the
    /// time after which postponed identity tags may be written.
    ///
    /// The outcome is an error as in [`Reconciler::carry_out`](crate::load_balancer::reconcile::Reconciler::carry_out), with all
    /// faults of the Service's settings.
    pub(super) async fn apply(
        &self,
        observation: Observation,
        planned: &Planned,
        tags_in: Option<Duration>,
        report: &mut Report,
    ) -> CarriedOn {
        let Planned { plan, wanted, .. } = planned;
        let (queue, key) = (&self.reconciler.identity_tags, &self.service.key);
        let agreement = observation.agreement(&wanted.desired).filter(|_| plan.is_converged());
        let serving = self.with(&wanted.settings);
        serving.open_node_ports(plan, &wanted.facts, report).await;
        let tags = plan.only_identity_tags();
        if tags {
            queue.begins(key);
        }
        let called = serving.carry_out(observation, planned, report).await;
        if tags && !matches!(called, Called::Ended(Ok(_), _)) {
            queue.ends(key);
        }
        let (outcome, kept) = match called {
            Called::Ended(outcome, kept) => (outcome, *kept),
            Called::Refused(refused, observation) => return CarriedOn::Refused(refused, observation),
        };
        let mut outcome = outcome.map_err(|failure| wanted.faults.add_to(failure));
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
        self.keep(&outcome, kept, agreement.filter(|_| is_whole));
        CarriedOn::Ended(outcome)
    }

    async fn carry_out(&self, observation: Observation, planned: &Planned, report: &mut Report) -> Called {
        let Planned { plan, load_balancer, .. } = planned;
        let load_balancer = load_balancer.as_ref();
        let project_id = observation.project_id().map(str::to_owned);
        let context = PlanContext {
            service: self.service,
            plan,
            gives_up: false,
            load_balancer,
            project_id: project_id.as_deref(),
        };
        let removed = self.removed_members(&observation, planned);
        let CarriedOut { progress, known, locked, not_implemented, refused_mark: _ } =
            self.reconciler.carry_out(&context, Some(observation), report).await;
        if let Some(members) = removed.filter(|_| locked) {
            self.reconciler.note_removed_members(&self.service.key, members);
        }
        if matches!(progress, Ok(Progress::Waiting(_))) {
            self.note_creation(plan);
        }
        self.note_replacement(plan, load_balancer, &progress);
        if progress.is_ok() && replaces(plan) {
            let vips = load_balancer.into_iter().flat_map(ObservedLoadBalancer::vip_addresses);
            let vips = PreviousVips::Addresses(vips.collect());
            self.record().attempts.replaced(vips);
            // This process deleted it: if the process ends now, the next one need not doubt that it is gone.
            report.remove_annotation(self.service, LOAD_BALANCER_ADDRESS.key);
            report.remove_annotation(self.service, CONVERGED_DIGEST.key);
        }
        let address = match &progress {
            Ok(Progress::Converged { address, .. }) => *address,
            Ok(Progress::Waiting(_) | Progress::Refused(_)) | Err(_) => None,
        };
        let (progress, known) = match (progress, known) {
            (Ok(Progress::Refused(refused)), Some(known)) => {
                return Called::Refused(refused, Box::new(known));
            }
            other => other,
        };
        let outcome = self.outcome(progress, planned, not_implemented.as_deref(), report).await;
        if let (Ok(Outcome::Ready(ready)), Some(known)) = (&outcome, &known) {
            self.report_address(ready, known, report).await;
        }
        let known = known.filter(|_| outcome.is_ok() || plan.refused.is_empty());
        Called::Ended(outcome, Box::new(Kept { known, locked, address, warnings: plan.warnings() }))
    }

    /// Describes the members that the next step removes from a pool, each with the reason.
    fn removed_members(&self, observation: &Observation, planned: &Planned) -> Option<String> {
        let Planned { plan, wanted, .. } = planned;
        let Wanted { settings, facts, .. } = wanted;
        let children = observation.seen().load_balancer.as_ref()?.children.as_ref()?;
        let sources = Sources { intent: self.intent, settings, names: self.claim.names, facts };
        let due = self.reconciler.due(self.service, plan);
        let step = due.steps.iter().find(|step| step.locks())?;
        removed_members::reasons(sources, step, children)
    }

    async fn outcome(
        &self,
        progress: Result<Progress, Failure>,
        planned: &Planned,
        not_implemented: Option<&str>,
        report: &mut Report,
    ) -> Result<Outcome, Failure> {
        let Planned { plan, wanted, load_balancer } = planned;
        let load_balancer = load_balancer.as_ref();
        let missing = self.missing(planned);
        match progress {
            Ok(Progress::Waiting(waiting)) => {
                Ok(Outcome::Waiting(Waiting { unfinished: missing, ..waiting }))
            }
            Ok(Progress::Refused(refused)) => Err(refused.failure),
            Ok(Progress::Converged { changed, done, address, held }) => {
                let unfinished = held.or(missing);
                match unfinished {
                    Some(failure) if !self.may_lead_to(address, planned) => Err(failure),
                    unfinished => {
                        let mut ready = self.ready(changed, address, load_balancer, &wanted.facts, report)?;
                        ready.done = done;
                        // Whether clients must go through the load balancer has not changed.
                        ready.preference.keep_published |= plan.keeps_protocols();
                        Ok(Outcome::Ready(Ready { unfinished, ..ready }))
                    }
                }
            }
            Err(failure) if load_balancer.is_none() => {
                Err(self.not_created(plan, &wanted.facts, failure, not_implemented, report).await)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Returns why part of what the Service asks for is missing: the cloud refused it, or could not be asked.
    fn missing(&self, planned: &Planned) -> Option<Failure> {
        let Planned { plan, wanted, .. } = planned;
        let Some(mut failure) = plan.refusal() else { return wanted.unread.clone() };
        failure.rests = self.record().attempts.refusals.pause(Instant::now());
        Some(failure)
    }

    /// Returns whether clients may use this address although something is missing. A published address stays until the new one
    /// serves all ports.
    fn may_lead_to(&self, address: Option<IpAddr>, planned: &Planned) -> bool {
        let Planned { plan, wanted, .. } = planned;
        let Some(address) = address else { return false };
        let published = &self.service.published;
        match plan.closed.len() {
            0 => true,
            closed if closed >= wanted.desired.listeners.len() => published.contains(&address),
            _ => published.is_empty() || published.contains(&address),
        }
    }

    pub(super) fn ready(
        &self,
        changed: bool,
        address: Option<IpAddr>,
        load_balancer: Option<&ObservedLoadBalancer>,
        facts: &Facts,
        report: &mut Report,
    ) -> Result<Ready, Failure> {
        let address = address.ok_or_else(|| {
            Failure::new(FailureClass::Bug, "the load balancer has no address in Octavia's answer")
        })?;
        let addresses = addresses(load_balancer, address, &self.settings.families);
        let first = addresses.first().copied().unwrap_or(address);
        report.notices(address_as_wish(self.service, Some(first)));
        report.annotate(self.service, LOAD_BALANCER_ADDRESS.key, first.to_string());
        Ok(Ready {
            addresses,
            path: self.settings.path_in(self.intent.addresses_of_nodes(), &self.service.ports),
            preference: self.settings.preference.clone(),
            cluster_access: facts.cluster_access.clone(),
            changed,
            done: Vec::new(),
            unfinished: None,
            requeue_after: None,
        })
    }
}

/// Returns whether the plan deletes a broken load balancer to recreate it.
pub(super) fn replaces(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step, Step::LoadBalancer(LoadBalancerStep::Delete { .. })))
}

//! Sends the steps of a plan, and says how the Service is served then.

use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::{Outcome, Ready, Waiting};
use tokio::time::Instant;

use super::Serving;
use super::wanted::{Planned, Wanted};
use crate::load_balancer::annotations::{CONVERGED_DIGEST, LOAD_BALANCER_ADDRESS};
use crate::load_balancer::desired::{Sources, removed_members};
use crate::load_balancer::known::Observation;
use crate::load_balancer::objects::step::{Applied, LoadBalancerStep, Next, Step};
use crate::load_balancer::objects::{Facts, ObservedLoadBalancer};
use crate::load_balancer::plan::Plan;
use crate::load_balancer::reconcile::addresses::addresses;
use crate::load_balancer::reconcile::carry_out::PlanContext;
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::address_as_wish;
use crate::load_balancer::state::attempts::PreviousVips;

impl Serving<'_> {
    pub(super) async fn send(
        &self,
        observation: Observation,
        planned: &Planned,
        report: &mut Report,
    ) -> (Applied, Option<Observation>) {
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
        let (applied, known) = self.reconciler.carry_out(&context, Some(observation), report).await;
        if let Some(members) = removed.filter(|_| applied.is_accepted()) {
            self.reconciler.note_removed_members(&self.service.key, members);
        }
        if matches!(applied.next, Next::Wait(_)) {
            self.note_creation(plan);
        }
        self.note_replacement(plan, load_balancer, &applied.next);
        if !matches!(applied.next, Next::Retry(_)) && replaces(plan) {
            let vips = load_balancer.into_iter().flat_map(ObservedLoadBalancer::vip_addresses);
            let vips = PreviousVips::Addresses(vips.collect());
            self.record().attempts.replaced(vips);
            // This process deleted it: if the process ends now, the next one need not doubt that it is gone.
            report.remove_annotation(self.service, LOAD_BALANCER_ADDRESS.key);
            report.remove_annotation(self.service, CONVERGED_DIGEST.key);
        }
        (applied, known)
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

    pub(super) async fn outcome(
        &self,
        next: Next,
        applied: &Applied,
        planned: &Planned,
        report: &mut Report,
    ) -> Result<Outcome, Failure> {
        let Planned { plan, wanted, load_balancer } = planned;
        let load_balancer = load_balancer.as_ref();
        let missing = self.missing(planned);
        match next {
            Next::Wait(waiting) => Ok(Outcome::Waiting(Waiting { unfinished: missing, ..waiting })),
            Next::Without(refused) => Err(refused.failure),
            Next::Done { held } => {
                let address = applied.address.or(plan.address);
                let unfinished = held.or(missing);
                match unfinished {
                    Some(failure) if !self.may_lead_to(address, planned) => Err(failure),
                    unfinished => {
                        let changed = applied.changed;
                        let mut ready = self.ready(changed, address, load_balancer, &wanted.facts, report)?;
                        ready.done.clone_from(&applied.done);
                        // Whether clients must go through the load balancer has not changed.
                        ready.preference.keep_published |= plan.keeps_protocols();
                        Ok(Outcome::Ready(Ready { unfinished, ..ready }))
                    }
                }
            }
            Next::Retry(failure) if load_balancer.is_none() => {
                let words = applied.not_implemented.as_deref();
                Err(self.not_created(plan, &wanted.facts, failure, words, report).await)
            }
            Next::Retry(failure) => Err(failure),
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

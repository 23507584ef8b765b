//! Carries out the plan of a Service that is to be served, and says how it serves then.

use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::{Outcome, Ready};

use super::Serving;
use super::look::Kept;
use super::wanted::Planned;
use crate::load_balancer::annotations::{CONVERGED_DIGEST, LOAD_BALANCER_ADDRESS};
use crate::load_balancer::attempts::PreviousVips;
use crate::load_balancer::model::{Facts, ObservedLoadBalancer};
use crate::load_balancer::observe::Observation;
use crate::load_balancer::plan::Plan;
use crate::load_balancer::reconcile::addresses::addresses;
use crate::load_balancer::reconcile::carry_out::{CarriedOut, PlanContext, Progress};
use crate::load_balancer::report::Report;
use crate::load_balancer::step::{LoadBalancerStep, Step};

impl Serving<'_> {
    /// Opens the node ports, applies the plan, and answers where the Service is then, and what is to be kept.
    ///
    /// The outcome is an error as in [`Reconciler::carry_out`](crate::load_balancer::reconcile::Reconciler::carry_out), with all that is
    /// wrong with the Service's wishes.
    pub(super) async fn apply(
        &self,
        observation: Observation,
        planned: &Planned,
        report: &mut Report,
    ) -> (Result<Outcome, Failure>, Kept) {
        let Planned { plan, wanted, .. } = planned;
        let (queue, key) = (&self.reconciler.identity_tags, &self.service.key);
        self.open_node_ports(plan, &wanted.facts, report).await;
        let tags = plan.only_identity_tags();
        if tags {
            queue.begins(key);
        }
        let (outcome, kept) = self.carry_out(observation, planned, report).await;
        if tags && outcome.is_err() {
            queue.ends(key);
        }
        (outcome.map_err(|failure| wanted.faults.add_to(failure)), kept)
    }

    async fn carry_out(
        &self,
        observation: Observation,
        planned: &Planned,
        report: &mut Report,
    ) -> (Result<Outcome, Failure>, Kept) {
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
        let CarriedOut { progress, known, locked, not_implemented } =
            self.reconciler.carry_out(&context, Some(observation), report).await;
        if matches!(progress, Ok(Progress::Waiting(_))) {
            self.note_creation(plan);
        }
        self.note_replacement(plan, load_balancer, &progress);
        if progress.is_ok() && replaces(plan) {
            let vips = load_balancer.into_iter().flat_map(ObservedLoadBalancer::vip_addresses);
            let vips = PreviousVips::Addresses(vips.collect());
            self.reconciler.records.replaced(&self.service.key, vips);
            // It was deleted here: should the program end now, the next one need not doubt that it is gone.
            report.remove_annotation(self.service, LOAD_BALANCER_ADDRESS.key);
            report.remove_annotation(self.service, CONVERGED_DIGEST.key);
        }
        let address = match &progress {
            Ok(Progress::Converged { address, .. }) => *address,
            Ok(Progress::Waiting(_)) | Err(_) => None,
        };
        let outcome = self.outcome(progress, planned, not_implemented.as_deref(), report).await;
        (outcome, Kept { known, locked, address, warnings: plan.warnings() })
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
        match progress {
            Ok(Progress::Waiting(waiting)) => Ok(Outcome::Waiting(waiting)),
            Ok(Progress::Converged { address: None, held: Some(failure), .. }) => Err(failure),
            Ok(Progress::Converged { changed, address, held }) => {
                let ready = self.ready(changed, address, load_balancer, &wanted.facts, report)?;
                Ok(Outcome::Ready(Ready { unfinished: held, ..ready }))
            }
            Err(failure) if load_balancer.is_none() => {
                Err(self.not_created(plan, &wanted.facts, failure, not_implemented, report).await)
            }
            Err(failure) => Err(failure),
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
        report.annotate(self.service, LOAD_BALANCER_ADDRESS.key, first.to_string());
        Ok(Ready {
            addresses,
            path: self.settings.path(&self.service.ports),
            preference: self.settings.preference.clone(),
            cluster_access: facts.cluster_access.clone(),
            changed,
            unfinished: None,
            requeue_after: None,
        })
    }
}

/// Whether a load balancer that broke is deleted to be recreated.
pub(super) fn replaces(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step, Step::LoadBalancer(LoadBalancerStep::Delete { .. })))
}

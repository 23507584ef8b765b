//! Determines the desired state of a Service and the plan towards it. Invalid settings keep their current values.
//!
//! A load balancer is not created while there are faults, and all are reported at once. On an existing load balancer each faulty
//! aspect keeps its current value, and all others follow the Service.

use std::net::IpAddr;

use openstack_ccm_core::cloud::DEFAULT_CLUSTER_NAME;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::Serving;
use crate::load_balancer::desired::{self, Sources};
use crate::load_balancer::known::Observation;
use crate::load_balancer::names::Names;
use crate::load_balancer::objects::FloatingIpGoal;
use crate::load_balancer::objects::facts::Facts;
use crate::load_balancer::objects::observed::{Observed, ObservedLoadBalancer};
use crate::load_balancer::objects::step::{LoadBalancerStep, Refused, Step};
use crate::load_balancer::objects::tree::Desired;
use crate::load_balancer::plan::{self, Plan};
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::{Aspect, Exposure, Fault, Faults, Settings};

/// A load balancer keeps its name, although the cluster seems to have a new one.
const RENAME_REFUSED: &str = "LoadBalancerRenameRefused";

/// What a Service wants.
pub(super) struct Wanted {
    /// Settings of the Service, with current values for invalid ones.
    pub(super) settings: Settings,
    /// All faults of the settings.
    pub(super) faults: Faults,
    /// What was looked up.
    pub(super) facts: Facts,
    /// The whole tree.
    pub(super) desired: Desired,
    /// Why the floating IP stays as it is.
    pub(super) unread: Option<Failure>,
}

/// What the Service wants, and the plan towards it.
pub(super) struct Planned {
    /// What the Service wants.
    pub(super) wanted: Wanted,
    /// The existing load balancer without children: its members are no longer needed.
    pub(super) load_balancer: Option<ObservedLoadBalancer>,
    /// The steps towards the desired state.
    pub(super) plan: Plan,
}

impl Serving<'_> {
    /// Plans from the observation; `None` where that is not enough.
    ///
    /// # Errors
    /// All faults, if a load balancer would have to be created; any failed call.
    pub(super) async fn plan(
        &self,
        observation: &mut Observation,
        report: &mut Report,
    ) -> Result<Option<Planned>, Failure> {
        let reconciler = self.reconciler;
        let mut found = observation.faults().to_vec();
        let mut without_room = Vec::new();
        loop {
            let mut wanted = self.want(observation, &found, report).await?;
            wanted.desired.recovery = self.recovery(observation.seen());
            wanted.desired.replaced_servers.clone_from(&self.beginning.replaced_servers);
            // What the cloud may have mended, and members that replace unusable nodes, must have been read now. The values that stand in
            // for a text that means nothing are those of the last full read: nothing is sent for them.
            let keeps = wanted.faults.may_heal() || wanted.desired.keeps_members;
            if keeps && !observation.is_whole() {
                return Ok(None);
            }
            let observed = observation.seen();
            // A setting that cannot be read, or looked up, is not taken away.
            let asked = Some(&wanted.desired).filter(|_| wanted.faults.failure().is_none());
            let mut refusals = self.record().attempts.refusals_of(asked, self.beginning.at, observed);
            refusals.steps.extend_from_slice(&without_room);
            let plan = plan::serve_beside(&wanted.desired, observed, &refusals);
            if plan.makes_pool() && observation.has_members_from_status() {
                // A new pool takes over what administrators set on the members of the present one.
                return Ok(None);
            }
            if without_room.is_empty() {
                without_room = self.without_room(&plan, observation).await;
                if !without_room.is_empty() {
                    continue;
                }
            }
            if plan.steps.iter().any(Step::sends_certificate) {
                let missing = match reconciler.resolver.certificate_faults(&wanted.settings).await {
                    Err(failure) if !makes_load_balancer(&plan) => vec![unread_certificates(&failure)],
                    missing => missing?,
                };
                if !missing.is_empty() {
                    found.extend(missing);
                    continue;
                }
            }
            if let Some(failure) = wanted.faults.failure().filter(|_| makes_load_balancer(&plan)) {
                return Err(failure);
            }
            let load_balancer =
                observation.seen().load_balancer.as_ref().map(ObservedLoadBalancer::without_children);
            return Ok(Some(Planned { wanted, load_balancer, plan }));
        }
    }

    /// Returns the steps of the plan that create listeners in place of others, if the quota has no room for them. It is asked when a plan
    /// begins, and once more before each listener that makes way.
    async fn without_room(&self, plan: &Plan, observation: &mut Observation) -> Vec<Refused> {
        let successors = plan.successors();
        let makes_way = || self.reconciler.due(self.service, plan).makes_way_now();
        let counts = |asked: Moment| asked > self.beginning.began || !makes_way();
        if successors.is_empty() || observation.room().is_some_and(counts) {
            return Vec::new();
        }
        let asked = Moment::now();
        let room = self.reconciler.resolver.room_for_listener(observation.project_id()).await;
        observation.note_room(room.is_ok().then_some(asked));
        let Err(failure) = room else { return Vec::new() };
        successors.into_iter().map(|step| Refused { step, failure: failure.clone() }).collect()
    }

    /// Determines what the Service wants; `found` are faults that appeared while reading or planning.
    pub(super) async fn want(
        &self,
        observation: &Observation,
        found: &[Fault],
        report: &mut Report,
    ) -> Result<Wanted, Failure> {
        let observed = observation.seen();
        let mut faults = self.faults.clone();
        faults.extend(found.iter().cloned());
        let existing = observed.load_balancer.as_ref();
        // A retained load balancer serves no Service until one takes it over, which faulty settings must not decide.
        let serves_nobody = existing.is_none_or(ObservedLoadBalancer::is_retained);
        if let Some(failure) = faults.failure().filter(|_| serves_nobody) {
            return Err(failure);
        }
        let unread = observation.unread().cloned();
        let is_broken = existing.is_some_and(|there| there.status == ProvisioningStatus::Error);
        if let Some(failure) = unread.clone().filter(|_| is_broken) {
            // Who owns the floating IP decides what happens to the load balancer.
            return Err(failure);
        }
        let settings = self.keeping(&faults, observed);
        let (facts, looked_up) = self.with(&settings).resolve(observed, unread.is_none(), report).await?;
        let (intent, names) = (self.intent, &self.names(existing, report));
        faults.extend(looked_up);
        faults.extend(desired::faults(
            Sources { intent, settings: &settings, names, facts: &facts },
            existing.is_some(),
        ));
        let settings = self.keeping(&faults, observed);
        let sources = Sources { intent, settings: &settings, names, facts: &facts };
        let mut desired = match existing {
            Some(existing) => desired::of_existing(sources, existing)?,
            None => desired::desired(sources)?,
        };
        if unread.is_some() && desired.floating_ip != FloatingIpGoal::NotNeeded {
            // The annotation with the address may name that of another Service.
            let address = self.service.published.iter().copied().find(IpAddr::is_ipv4);
            desired.floating_ip = FloatingIpGoal::Unknown { address };
        }
        let is_external = settings.exposure != Exposure::Internal;
        let has_become_internal = self.record().has_become_internal(is_external);
        if let FloatingIpGoal::Internal { takes_off_others, .. } = &mut desired.floating_ip {
            *takes_off_others = has_become_internal;
        }
        if existing.is_some() {
            self.hold_annotated_address(&settings, &mut desired);
        }
        Ok(Wanted { settings, faults, facts, desired, unread })
    }

    /// Prevents an exchange of the floating IP by an annotation from before this process started, which may never have had an
    /// effect.
    fn hold_annotated_address(&self, settings: &Settings, desired: &mut Desired) {
        let Exposure::External(asked) = &settings.exposure else { return };
        let annotated = asked.address.filter(|_| asked.is_annotated);
        let has_changed = self.record().has_changed_floating_ip(annotated);
        if let FloatingIpGoal::External(spec) = &mut desired.floating_ip {
            spec.exchanges = has_changed || annotated.is_none();
        }
    }

    /// Returns the Service's names. If the operator seems to have forgotten the flag with the cluster's name, the load balancer
    /// keeps its present name.
    fn names(&self, existing: Option<&ObservedLoadBalancer>, report: &mut Report) -> Names {
        let present = self.claim.names;
        let previous = existing.and_then(|there| there.previous_name.as_deref());
        match previous.and_then(|previous| self.claim.doubtful_rename(previous)) {
            None => present.clone(),
            Some(cluster) => {
                let names = present.under(&cluster);
                report.notice(Notice::warning(
                    RENAME_REFUSED,
                    format!(
                        "the load balancer is named {}, but openstack-ccm runs with --cluster-name={DEFAULT_CLUSTER_NAME}, the default. The load \
                         balancer is used under its present name and not renamed. If {cluster} is the right name, start openstack-ccm \
                         with --cluster-name={cluster}; if the cluster was renamed, add {cluster} to former-cluster-names in cloud.conf",
                        names.load_balancer()
                    ),
                ));
                names
            }
        }
    }

    fn keeping(&self, faults: &Faults, observed: &Observed) -> Settings {
        let mut settings = self.settings.clone();
        settings.unreadable.extend(faults.unreadable());
        settings.keeping(self.service, observed)
    }
}

/// Returns the fault for certificates that could not be looked up: an existing load balancer keeps its certificates.
fn unread_certificates(failure: &Failure) -> Fault {
    Fault::new([Aspect::Certificate, Aspect::FurtherCertificates], &failure.message)
}

/// Returns whether the plan creates a load balancer, or deletes a broken one to recreate it.
fn makes_load_balancer(plan: &Plan) -> bool {
    let makes = |step: &Step| {
        matches!(step, Step::LoadBalancer(LoadBalancerStep::Create { .. } | LoadBalancerStep::Delete { .. }))
    };
    plan.steps.iter().any(makes)
}

//! The desired state of a Service and the plan towards it. Settings that are invalid keep the values that are there.
//!
//! What does not exist yet is refused with everything that is wrong at once. On a load balancer that exists each faulty
//! aspect keeps what is there, and all others follow the Service.

use std::net::IpAddr;

use openstack_ccm_core::cloud::DEFAULT_CLUSTER_NAME;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use super::Serving;
use crate::load_balancer::desired::{self, Sources};
use crate::load_balancer::known::Observation;
use crate::load_balancer::names::Names;
use crate::load_balancer::objects::FloatingIpGoal;
use crate::load_balancer::objects::digest::Digest;
use crate::load_balancer::objects::facts::Facts;
use crate::load_balancer::objects::observed::{Observed, ObservedLoadBalancer};
use crate::load_balancer::objects::step::{LoadBalancerStep, Step};
use crate::load_balancer::objects::tree::Desired;
use crate::load_balancer::plan::{self, Plan, Refused};
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::{Aspect, Exposure, Fault, Faults, Settings};

/// A load balancer keeps its name, although the cluster seems to have another one.
const RENAME_REFUSED: &str = "LoadBalancerRenameRefused";

/// What a Service wants.
pub(super) struct Wanted {
    /// Its settings, with what is there in place of what cannot be read.
    pub(super) settings: Settings,
    /// Everything that is wrong with its wishes.
    pub(super) faults: Faults,
    /// What was looked up.
    pub(super) facts: Facts,
    /// The whole tree.
    pub(super) desired: Desired,
    /// Why the floating IP stays as it is.
    pub(super) unread: Option<Failure>,
}

/// What is to be done for it.
pub(super) struct Planned {
    /// What the Service wants.
    pub(super) wanted: Wanted,
    /// What is there, without its children: its members are not needed any more.
    pub(super) load_balancer: Option<ObservedLoadBalancer>,
    /// The difference.
    pub(super) plan: Plan,
}

impl Serving<'_> {
    /// Plans from what was observed; `None` where that is not enough.
    ///
    /// # Errors
    /// Everything that is wrong, where a load balancer would have to be made; any failed call.
    pub(super) async fn plan(
        &self,
        observation: &Observation,
        report: &mut Report,
    ) -> Result<Option<Planned>, Failure> {
        let reconciler = self.reconciler;
        let mut found = observation.faults().to_vec();
        let wish = Digest::of_service(self.service);
        let mut without_room = Vec::new();
        loop {
            let mut wanted = self.want(observation, &found, report).await?;
            wanted.desired.recovery = self.recovery(observation.seen());
            // What stands in for a wrong value, or for nodes that are not there or show no address, is what was read.
            let keeps = wanted.faults.failure().is_some() || wanted.desired.keeps_members;
            if keeps && !observation.is_whole() {
                return Ok(None);
            }
            let observed = observation.seen();
            let refusals = &reconciler.records.attempts(&self.service.key).refusals;
            let mut refusals = refusals.at(self.beginning.at, observed, wish);
            refusals.steps.extend_from_slice(&without_room);
            let plan = plan::serve_beside(&wanted.desired, observed, &refusals);
            let successors = plan.successors();
            if !successors.is_empty() && without_room.is_empty() {
                let room = reconciler.resolver.room_for_listener(observation.project_id()).await;
                if let Err(failure) = room {
                    let refused = |step| Refused { step, failure: failure.clone() };
                    without_room = successors.into_iter().map(refused).collect();
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
            let load_balancer = observed.load_balancer.as_ref().map(ObservedLoadBalancer::without_children);
            return Ok(Some(Planned { wanted, load_balancer, plan }));
        }
    }

    /// What the Service wants of what is there; `found` is what showed to be wrong on the way.
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
        // What is retained serves nobody until a Service takes it over, which is no guess to make.
        let serves_nobody = existing.is_none_or(ObservedLoadBalancer::is_retained);
        if let Some(failure) = faults.failure().filter(|_| serves_nobody) {
            return Err(failure);
        }
        let unread = observation.unread().cloned();
        let is_broken = existing.is_some_and(|there| there.status == ProvisioningStatus::Error);
        if let Some(failure) = unread.clone().filter(|_| is_broken) {
            // Whose it is decides what becomes of the load balancer.
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
            let published = self.service.published.iter().copied().find(IpAddr::is_ipv4);
            desired.floating_ip =
                FloatingIpGoal::Unknown { address: published.or(settings.annotated_address) };
        }
        let is_external = settings.exposure != Exposure::Internal;
        let has_become_internal = self.reconciler.records.has_become_internal(&self.service.key, is_external);
        if let FloatingIpGoal::Internal { takes_off_others, .. } = &mut desired.floating_ip {
            *takes_off_others = has_become_internal;
        }
        if existing.is_some() {
            self.hold_annotated_address(&settings, &mut desired);
        }
        Ok(Wanted { settings, faults, facts, desired, unread })
    }

    /// An annotation that was there when this process began may never have had an effect: it exchanges no floating IP that serves.
    fn hold_annotated_address(&self, settings: &Settings, desired: &mut Desired) {
        let Exposure::External(asked) = &settings.exposure else { return };
        let annotated = asked.address.filter(|_| asked.is_annotated);
        let has_changed = self.reconciler.records.has_changed_floating_ip(&self.service.key, annotated);
        if let FloatingIpGoal::External(spec) = &mut desired.floating_ip {
            spec.exchanges = has_changed || annotated.is_none();
        }
    }

    /// The Service's names. Where the flag with the cluster's name seems to have been forgotten, the load balancer keeps the
    /// name that it has, and is served under it.
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

/// Certificates that could not be looked up: a load balancer that exists keeps those that it has.
fn unread_certificates(failure: &Failure) -> Fault {
    Fault::new([Aspect::Certificate, Aspect::FurtherCertificates], &failure.message)
}

/// Whether a load balancer is made, or one that broke is deleted to be recreated.
fn makes_load_balancer(plan: &Plan) -> bool {
    let makes = |step: &Step| {
        matches!(step, Step::LoadBalancer(LoadBalancerStep::Create { .. } | LoadBalancerStep::Delete { .. }))
    };
    plan.steps.iter().any(makes)
}

//! One pass for a Service that goes.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::Outcome;
use openstack_ccm_core::service::Service;
use tracing::debug;

use super::carry_out::Next;
use super::model::observed::Ownership;
use super::model::tree::{Reclaim, ReleaseTerms};
use super::names::Names;
use super::observe::find::{self, Purpose};
use super::observe::{self, Depth, FloatingIpQuestion, Found};
use super::ownership::Claim;
use super::plan;
use super::report::{self, Report};
use super::settings::ReleaseSettings;
use super::{OpenStackLoadBalancers, desired};

/// A pass on its way: what does not change while it goes on.
pub(super) struct Releasing<'a> {
    pub(super) provider: &'a OpenStackLoadBalancers,
    pub(super) service: &'a Service,
    pub(super) terms: ReleaseTerms,
    pub(super) claim: Claim<'a>,
}

impl OpenStackLoadBalancers {
    pub(super) async fn release(&self, service: &Service, report: &mut Report) -> Result<Outcome, Failure> {
        self.memory.forget_known(&service.key);
        let names = Names::new(&self.cluster, service);
        let (settings, notices) = ReleaseSettings::read(service, &self.config);
        report.notices(notices);
        let terms = desired::release_terms(service, &names, &settings);
        let claim = Claim::new(service, &names, &self.cluster, false);
        let id = settings.load_balancer_id.as_deref();
        let _turn = self.turns.take(id.unwrap_or(names.load_balancer())).await;

        let purpose = Purpose::Release(terms.reclaim);
        let mut pass = Releasing { provider: self, service, terms, claim };
        let octavia = &self.openstack.octavia;
        let named_by_id = match id {
            Some(id) => find::by_id(octavia, &pass.claim, purpose, id).await?,
            None => None,
        };
        let first = named_by_id.as_ref().map(|found| found.load_balancer.id.clone());
        if let Some(found) = named_by_id
            && let Some(outcome) = pass.give_up(Some(found), report).await?
        {
            return Ok(outcome);
        }
        // Also where the annotation named one: it may have been changed by hand.
        let by_name = find::by_name(octavia, &pass.claim, purpose).await?;
        let second = by_name.filter(|found| Some(&found.load_balancer.id) != first.as_ref());
        if second.is_some()
            && let Some(outcome) = pass.give_up(second, report).await?
        {
            return Ok(outcome);
        }
        if report::may_have_moved(service) {
            for former in find::former(octavia, &pass.claim, "").await? {
                if let Some(outcome) = pass.give_up(Some(former), report).await? {
                    return Ok(outcome);
                }
            }
        }
        if let Some(outcome) = pass.give_up(None, report).await? {
            return Ok(outcome);
        }
        self.security_groups.release(&pass.claim).await?;
        self.memory.forget(&service.key);
        report.forget_load_balancer(service);
        Ok(Outcome::Released)
    }
}

impl OpenStackLoadBalancers {
    /// Takes off one load balancer what a Service has on it that is served by another one now. Answers whether
    /// nothing is left to do. `double` says that it never served.
    pub(super) async fn leave(
        &self,
        service: &Service,
        claim: &Claim<'_>,
        load_balancer_id: &str,
        double: bool,
        report: &mut Report,
    ) -> Result<bool, Failure> {
        let (settings, _) = ReleaseSettings::read(service, &self.config);
        let mut terms = desired::release_terms(service, claim.names, &settings);
        if double {
            terms.reclaim = Reclaim::Delete;
        }
        let purpose = Purpose::Release(terms.reclaim);
        let found = find::by_id(&self.openstack.octavia, claim, purpose, load_balancer_id).await?;
        let Some(found) = found else { return Ok(true) };
        let mut pass = Releasing { provider: self, service, terms, claim: claim.clone() };
        Ok(pass.give_up(Some(found), report).await?.is_none())
    }
}

impl Releasing<'_> {
    /// Takes one load balancer away, or what the Service has on it, or leaves it as a whole; `None` stands for what is
    /// left when there is none. Says where the pass ends, unless nothing is left of it.
    async fn give_up(
        &mut self,
        found: Option<Found>,
        report: &mut Report,
    ) -> Result<Option<Outcome>, Failure> {
        let found = match found {
            Some(own) if self.terms.reclaim == Reclaim::Retain && own.ownership == Ownership::Sole => {
                return self.retain(own, report).await;
            }
            found => found,
        };
        let depth = if self.terms.cascade { Depth::Outline } else { Depth::Whole };
        let floating_ips = if self.terms.keep_floating_ip {
            FloatingIpQuestion::Nothing
        } else {
            FloatingIpQuestion::ToRelease
        };
        let project_id = found.as_ref().and_then(|found| found.load_balancer.project_id.clone());
        let openstack = &self.provider.openstack;
        let observed = observe::observe(openstack, &self.claim, found, depth, &floating_ips).await?;
        let plan = plan::release(&self.terms, &observed);
        debug!(service = %self.service.key, %plan, "planned");
        let load_balancer = observed.load_balancer.as_ref();
        let next = self
            .provider
            .carry_out(self.service, &plan, load_balancer, project_id.as_deref(), report)
            .await?;
        match next {
            Next::Waiting(waiting) => Ok(Some(Outcome::Waiting(waiting))),
            Next::Settled { .. } => Ok(None),
        }
    }
}

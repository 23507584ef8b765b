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
        self.markings.ends(&service.key);
        let names = Names::new(&self.cluster, service);
        let (settings, notices) = ReleaseSettings::read(service, &self.config);
        report.notices(notices);
        let terms = desired::release_terms(service, &names, &settings);
        let claim = Claim::new(service, &names, self.scope(), false);
        let id = settings.load_balancer_id.as_deref();
        let purpose = Purpose::Release(terms.reclaim);
        let mut pass = Releasing { provider: self, service, terms, claim };
        let octavia = &self.openstack.octavia;
        let mut first = None;
        if let Some(id) = id {
            let _turn = self.turns.take(id).await;
            if let Some(found) = find::by_id(octavia, &pass.claim, purpose, id).await? {
                first = Some(found.load_balancer.id.clone());
                if let Some(outcome) = pass.give_up(Some(found), report).await? {
                    return Ok(outcome);
                }
            }
        }
        // Also where the annotation named one: it may have been changed by hand.
        if let Some(outcome) = pass.give_up_named(purpose, first.as_deref(), report).await? {
            return Ok(outcome);
        }
        if report::may_have_moved(service) {
            for former in find::former(octavia, &pass.claim, "").await? {
                if let Some(outcome) = pass.give_up_former(&former.load_balancer.id, report).await? {
                    return Ok(outcome);
                }
            }
        }
        if let Some(outcome) = pass.give_up(None, report).await? {
            return Ok(outcome);
        }
        self.security_groups.release(&pass.claim).await?;
        self.memory.forget(&service.key);
        self.replacements.forget(&service.key);
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
    /// Gives up the load balancer that has the Service's name, unless it is `besides`. Which one it is shows before its
    /// turn can be taken, in which its other users change it; it is read again in the turn.
    async fn give_up_named(
        &mut self,
        purpose: Purpose,
        besides: Option<&str>,
        report: &mut Report,
    ) -> Result<Option<Outcome>, Failure> {
        let octavia = &self.provider.openstack.octavia;
        let mut expected: Option<String> = None;
        loop {
            let turn = match &expected {
                Some(id) => Some(self.provider.turns.take(id).await),
                None => None,
            };
            let found = find::by_name(octavia, &self.claim, purpose).await?;
            let Some(found) = found.filter(|found| besides != Some(found.load_balancer.id.as_str())) else {
                return Ok(None);
            };
            if expected.as_ref() == Some(&found.load_balancer.id) {
                return self.give_up(Some(found), report).await;
            }
            drop(turn);
            expected = Some(found.load_balancer.id);
        }
    }

    /// Gives up what the Service has on a load balancer that it used before, in the turn of that one.
    async fn give_up_former(&mut self, id: &str, report: &mut Report) -> Result<Option<Outcome>, Failure> {
        let _turn = self.provider.turns.take(id).await;
        // What was left as a whole before is left alone.
        let purpose = Purpose::Release(Reclaim::Delete);
        let found = find::by_id(&self.provider.openstack.octavia, &self.claim, purpose, id).await?;
        let uses = |found: &Found| {
            self.claim.is_tagged(&found.load_balancer) || self.claim.is_unmarked_user(&found.load_balancer)
        };
        match found.filter(uses) {
            Some(found) => self.give_up(Some(found), report).await,
            None => Ok(None),
        }
    }

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
        let floating_ips = FloatingIpQuestion::ToRelease;
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

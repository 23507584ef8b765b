//! One reconciliation of a Service that is deleted.
//!
//! Nothing is cached: each reconciliation finds the load balancer by the id in the annotation and then by the Service's name, under
//! the lock of each, reads it whole and takes the next step of its plan, as for a Service to serve ([`serve`](super::serve), 3 and
//! the table of answers). A PENDING load balancer is left alone: the poller wakes the Service when Octavia is done, or it is
//! reconciled again after two minutes. Floating IPs are deleted last, when Octavia no longer shows a load balancer. A load balancer
//! with objects of another client stays, with an Event.

use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Outcome, Waiting};
use openstack_ccm_core::service::Service;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use tracing::{debug, warn};

use super::Reconciler;
use super::carry_out::PlanContext;
use crate::load_balancer::annotations::LOAD_BALANCER_ADDRESS;
use crate::load_balancer::desired;
use crate::load_balancer::identity::outputs;
use crate::load_balancer::identity::ownership::Claim;
use crate::load_balancer::names::Names;
use crate::load_balancer::objects::step::{FloatingIpStep, Next, Refused, Step};
use crate::load_balancer::objects::{FloatingIpMarks, Ownership, Reclaim, ReleaseTerms};
use crate::load_balancer::plan;
use crate::load_balancer::read::find::{self, Purpose};
use crate::load_balancer::read::floating_ip::FloatingIpQuery;
use crate::load_balancer::read::lists::Reader;
use crate::load_balancer::read::whole::{self, Depth};
use crate::load_balancer::read::{Found, evidence};
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::ReleaseSettings;
use crate::load_balancer::state::locks::LoadBalancerLocks;
use crate::load_balancer::state::record::Cached;

/// The release of one Service.
pub(super) struct Releasing<'a> {
    pub(super) reconciler: &'a Reconciler,
    pub(super) service: &'a Service,
    pub(super) terms: ReleaseTerms,
    pub(super) claim: Claim<'a>,
    /// When the release began: only answers since then count.
    since: Moment,
}

impl Reconciler {
    pub(super) async fn release(&self, service: &Service, report: &mut Report) -> Result<Outcome, Failure> {
        let since = Moment::now();
        self.records.of(service).lock().known = Cached::Nothing;
        self.identity_tags.ends(&service.key);
        self.creations.forget(&service.key);
        let names = Names::new(&self.cluster, service);
        let (settings, notices) = ReleaseSettings::read(service, &self.config);
        report.notices(notices);
        let marks = FloatingIpMarks::of(&self.lists.openstack().client);
        let terms = desired::release_terms(service, &names, &settings, marks);
        let claim = Claim::new(service, &names, self.scope(), false);
        let id = settings.load_balancer_id.as_deref();
        let purpose = Purpose::Release(terms.reclaim);
        let mut releasing = Releasing { reconciler: self, service, terms, claim, since };
        let mut first = None;
        if let Some(id) = id {
            let Some(_lock) = self.locks.take(id, &service.key) else {
                return Ok(Outcome::Waiting(LoadBalancerLocks::turn()));
            };
            // The poller saw that the load balancer is gone, and woke the Service for that.
            let is_gone = self.watchlist.take_end(id).is_some_and(|end| end.load_balancer.is_none());
            let found = match is_gone {
                true => None,
                false => find::by_id(releasing.reader(), &releasing.claim, purpose, id).await?,
            };
            if let Some(found) = found {
                first = Some(found.load_balancer.id.clone());
                if let Some(waiting) = releasing.give_up(Some(found), report).await? {
                    return Ok(Outcome::Waiting(waiting));
                }
            }
        }
        // Also search by name where the annotation has an id: it may have been edited.
        if let Some(waiting) = releasing.give_up_named(purpose, first.as_deref(), report).await? {
            return Ok(Outcome::Waiting(waiting));
        }
        // A Service that shares by address may not have its load balancer's id yet.
        if outputs::may_have_moved(service) || settings.shares_by_address {
            for former in find::previous(releasing.reader(), &releasing.claim, "").await? {
                if let Some(waiting) = releasing.give_up_previous(&former.load_balancer.id, report).await? {
                    return Ok(Outcome::Waiting(waiting));
                }
            }
        }
        if let Some(waiting) = releasing.give_up(None, report).await? {
            return Ok(Outcome::Waiting(waiting));
        }
        self.security_groups.release(&releasing.claim).await?;
        self.records.forget(&service.key);
        self.watchlist.forget(&service.key);
        self.locks.forget(&service.key);
        self.replacements.forget(&service.key);
        report.forget_load_balancer(service);
        let annotated = service.annotations.get(LOAD_BALANCER_ADDRESS.key);
        let annotated = annotated.and_then(|address| address.parse().ok());
        let addresses: Vec<IpAddr> = service.published.iter().copied().chain(annotated).collect();
        self.given_up(&addresses, &service.key);
        Ok(Outcome::Released)
    }
}

impl Reconciler {
    /// Deletes what a Service has on a load balancer that no longer serves it. Returns what to wait for, or `None` when nothing is
    /// left. `duplicate`: the load balancer never served.
    pub(super) async fn leave(
        &self,
        service: &Service,
        claim: &Claim<'_>,
        load_balancer_id: &str,
        duplicate: bool,
        report: &mut Report,
    ) -> Result<Option<Waiting>, Failure> {
        let (settings, _) = ReleaseSettings::read(service, &self.config);
        let marks = FloatingIpMarks::of(&self.lists.openstack().client);
        let mut terms = desired::release_terms(service, claim.names, &settings, marks);
        if duplicate {
            terms.reclaim = Reclaim::Delete;
        }
        let purpose = Purpose::Release(terms.reclaim);
        let since = Moment::now();
        let mut releasing = Releasing { reconciler: self, service, terms, claim: claim.clone(), since };
        let found = find::by_id(releasing.reader(), claim, purpose, load_balancer_id).await?;
        let Some(found) = found else { return Ok(None) };
        releasing.give_up(Some(found), report).await
    }
}

impl Releasing<'_> {
    fn reader(&self) -> Reader<'_> {
        self.reconciler.observer.reader(self.since)
    }

    /// Gives up the load balancer that has the Service's name, unless it is `except`. Its id is needed for the lock under which its
    /// other users change it; then it is read again.
    async fn give_up_named(
        &mut self,
        purpose: Purpose,
        except: Option<&str>,
        report: &mut Report,
    ) -> Result<Option<Waiting>, Failure> {
        let mut expected: Option<String> = None;
        loop {
            let lock = match &expected {
                Some(id) => {
                    let lock = self.reconciler.locks.take(id, &self.service.key);
                    if lock.is_none() {
                        return Ok(Some(LoadBalancerLocks::turn()));
                    }
                    lock
                }
                None => None,
            };
            let reader = self.reconciler.observer.reader(Moment::now());
            let found = find::by_name(reader, &self.claim, purpose).await?;
            let Some(found) = found.filter(|found| except != Some(found.load_balancer.id.as_str())) else {
                return Ok(None);
            };
            if expected.as_ref() == Some(&found.load_balancer.id) {
                return self.give_up(Some(found), report).await;
            }
            drop(lock);
            expected = Some(found.load_balancer.id);
        }
    }

    /// Gives up what the Service has on a load balancer that it used before, under that load balancer's lock.
    async fn give_up_previous(&mut self, id: &str, report: &mut Report) -> Result<Option<Waiting>, Failure> {
        let Some(_lock) = self.reconciler.locks.take(id, &self.service.key) else {
            return Ok(Some(LoadBalancerLocks::turn()));
        };
        // A load balancer that was kept on purpose before stays untouched.
        let purpose = Purpose::Release(Reclaim::Delete);
        let found = find::by_id(self.reader(), &self.claim, purpose, id).await?;
        let uses = |found: &Found| {
            self.claim.is_tagged(&found.load_balancer) || self.claim.is_untagged_user(&found.load_balancer)
        };
        match found.filter(uses) {
            Some(found) => self.give_up(Some(found), report).await,
            None => Ok(None),
        }
    }

    /// Deletes a load balancer, or only what the Service has on it, or retains it; `None` stands for what remains without a load
    /// balancer. Returns what to wait for, or `None` when nothing is left.
    async fn give_up(
        &mut self,
        found: Option<Found>,
        report: &mut Report,
    ) -> Result<Option<Waiting>, Failure> {
        let found = match found {
            Some(found) if self.leads_elsewhere(&found).await? => {
                let notice = left(&found);
                // Nobody comes back to the Service: the Event may be lost with the process.
                warn!(service = %self.service.key, "{}", notice.message);
                report.notice(notice);
                // Its floating IP has the same description as the Service's.
                self.terms.retained_vip_ports.extend(found.load_balancer.vip_port_id);
                return Ok(None);
            }
            Some(own) if self.terms.reclaim == Reclaim::Retain && own.ownership == Ownership::Sole => {
                return self.retain(own, report).await;
            }
            found => found,
        };
        let depth = if self.terms.cascade { Depth::Outline } else { Depth::Whole };
        let published = self.service.published.iter().copied().find(IpAddr::is_ipv4);
        let floating_ips = FloatingIpQuery::ToRelease { published };
        let project_id = found.as_ref().and_then(|found| found.load_balancer.project_id.clone());
        let tree = whole::tree(self.reader(), &self.claim, found, depth, &floating_ips).await?;
        let observed = tree.complete()?;
        let plan = plan::release(&self.terms, &observed);
        debug!(service = %self.service.key, %plan, "planned");
        let context = PlanContext {
            service: self.service,
            plan: &plan,
            gives_up: true,
            load_balancer: observed.load_balancer.as_ref(),
            project_id: project_id.as_deref(),
        };
        let mut next = self.carry_out(&context, report).await;
        if let Next::Without(Refused { step: Step::FloatingIp(FloatingIpStep::Tag { .. }), .. }) = &next {
            // A failed mark must not prevent the deletion: the floating IP is also found by its address and description.
            self.terms.floating_ip_tags.clear();
            let plan = plan::release(&self.terms, &observed);
            next = self.carry_out(&PlanContext { plan: &plan, ..context }, report).await;
        }
        waits(next)
    }

    async fn carry_out(&self, context: &PlanContext<'_>, report: &mut Report) -> Next {
        self.reconciler.carry_out(context, None, report).await.0.next
    }

    /// Returns whether a load balancer without our tags belongs to another cluster of the same name.
    async fn leads_elsewhere(&self, found: &Found) -> Result<bool, Failure> {
        evidence::leads_elsewhere(self.reader(), &self.claim, self.service, found).await
    }

    /// `reclaim-policy: retain`: keeps a load balancer of the Service with all its objects except members, and marks it, so that a
    /// later Service of the same name deletes it only after taking it over. Returns what to wait for, or `None` once it is marked.
    async fn retain(&mut self, found: Found, report: &mut Report) -> Result<Option<Waiting>, Failure> {
        let project_id = found.load_balancer.project_id.clone();
        let question = FloatingIpQuery::Nothing;
        let observed = whole::tree(self.reader(), &self.claim, Some(found), Depth::Whole, &question)
            .await?
            .observed
            .load_balancer;
        let Some(observed) = observed else { return Ok(None) };
        self.terms.retained_vip_ports.extend(observed.vip_port_id.clone());
        let plan = plan::retain(&observed);
        debug!(service = %self.service.key, %plan, "planned");
        let context = PlanContext {
            service: self.service,
            plan: &plan,
            gives_up: true,
            load_balancer: Some(&observed),
            project_id: project_id.as_deref(),
        };
        waits(self.carry_out(&context, report).await)
    }
}

/// Returns what to wait for, or `None` when nothing is left.
fn waits(next: Next) -> Result<Option<Waiting>, Failure> {
    match next {
        Next::Done { .. } => Ok(None),
        Next::Wait(waiting) => Ok(Some(waiting)),
        Next::Without(Refused { failure, .. }) | Next::Retry(failure) => Err(failure),
    }
}

fn left(found: &Found) -> Notice {
    let LoadBalancer { id, name, .. } = &found.load_balancer;
    let message = format!(
        "load balancer {name} ({id}) has the name of this Service's load balancer, but none of its members is a node of this cluster: the \
         load balancer is kept because another cluster might have the same name. If the load balancer belongs to this cluster, delete it: \
         openstack loadbalancer delete --cascade {id}"
    );
    Notice::warning(plan::LOAD_BALANCER_LEFT, message)
}

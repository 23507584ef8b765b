//! Decides whether load balancers that cannot be found are really gone.
//!
//! The credentials of another project or region show no load balancer of a cluster although all of them serve. So a load balancer
//! that was made for a Service is only recreated where something shows that this is its project and region, and where most others
//! still exist.
//!
//! Any user may write an id into a Service. So a Service counts only if a controller has published it, which users cannot do, and a
//! load balancer confirms project and region only if its tags, or its name beside its id, say that it was made for a counted
//! Service.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::failure::{Failure, Hold};
use openstack_ccm_core::lock::lock;
use openstack_ccm_core::provider::Neighbours;
use openstack_ccm_core::service::Service;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::cache::{Cache, CachedAnswer, Moment};
use openstack_ccm_openstack_api::error::ApiError;

use crate::load_balancer::annotations::LOAD_BALANCER_ID;
use crate::load_balancer::failure;
use crate::load_balancer::identity::ids::PublishedId;
use crate::load_balancer::known::absence::{Absence, Count};
use crate::load_balancer::known::absence::{Named, PresenceTally, is_for_any, is_made_here};
use crate::load_balancer::names::Names;
use crate::load_balancer::objects::Tags;

/// How long one count serves all Services that ask, if it proves no absence.
const COUNT_LIFETIME: Duration = Duration::from_secs(20);

/// Counts the missing load balancers, and decides whether new ones may be created.
pub(crate) struct MissingLoadBalancers {
    openstack: OpenStack,
    cluster: ClusterIdentity,
    neighbours: OnceLock<Arc<dyn Neighbours>>,
    /// The last count.
    counts: Cache<(), Count>,
    /// Whether this process has found a load balancer by the id that a Service names, so that its credentials are right.
    found_one: AtomicBool,
    /// Whether the last count forbade creations.
    in_doubt: AtomicBool,
    /// Uids of Services whose load balancer is recreated because the user confirmed that it is gone, as a message asks. Their new
    /// load balancers confirm nothing about the load balancers of other Services while those are in doubt.
    confirmed_gone: Mutex<HashSet<String>>,
}

impl MissingLoadBalancers {
    pub(crate) fn new(openstack: OpenStack, cluster: ClusterIdentity) -> Self {
        Self {
            openstack,
            cluster,
            neighbours: OnceLock::new(),
            counts: Cache::new(COUNT_LIFETIME),
            found_one: AtomicBool::new(false),
            in_doubt: AtomicBool::new(false),
            confirmed_gone: Mutex::default(),
        }
    }

    /// Sets the source of all Services. Only the first call has an effect.
    pub(crate) fn set_neighbours(&self, neighbours: Arc<dyn Neighbours>) {
        drop(self.neighbours.set(neighbours));
    }

    /// Returns the source of all Services.
    pub(crate) fn neighbours(&self) -> Option<&dyn Neighbours> {
        self.neighbours.get().map(AsRef::as_ref)
    }

    /// Notes that a load balancer with this name and these tags was found by the id that a Service names.
    pub(crate) fn found(&self, name: &str, tags: &Tags) {
        if is_made_here(&self.cluster, name, tags) && !is_for_any(tags, &lock(&self.confirmed_gone)) {
            self.found_one.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the user confirmed that the Service's load balancer is gone.
    pub(crate) fn user_confirmed_gone(&self, service: &Service) {
        lock(&self.confirmed_gone).insert(service.uid.clone());
    }

    /// Returns whether a load balancer may be created for a Service that never had one.
    ///
    /// # Errors
    /// Any failed call; the reason why no load balancer is created.
    pub(crate) async fn allow_first(&self) -> Result<(), Failure> {
        if self.found_one.load(Ordering::Relaxed) && !self.in_doubt.load(Ordering::Relaxed) {
            return Ok(());
        }
        let count = self.count(None).await?;
        if count.allows_more() { Ok(()) } else { Err(held(count)) }
    }

    /// Returns what it means that the Service's load balancer cannot be found.
    pub(crate) async fn absence(&self, service: &Service) -> Result<(Absence, Count), Failure> {
        let count = self.count(Some(service)).await?;
        Ok((count.absence(), count))
    }

    /// Returns the load balancers that were made for Services, including `service`.
    fn named(&self, service: Option<&Service>) -> Vec<Named> {
        let served = self.neighbours.get().map(|neighbours| neighbours.served()).unwrap_or_default();
        // The watch may lack what was written a moment ago.
        let others = served.iter().filter(|other| service.is_none_or(|service| other.key != service.key));
        let named = others.chain(service).filter_map(|one| {
            Some(Named {
                id: PublishedId::of(one)?,
                service_uid: one.uid.clone(),
                generated_name: Names::new(&self.cluster, one).load_balancer().to_owned(),
            })
        });
        named.collect()
    }

    /// Counts once for all that ask at the same time, since each count covers all Services.
    async fn count(&self, service: Option<&Service>) -> Result<Count, Failure> {
        let asked = Moment::now();
        if let Some(last) = self.recent(service.is_some()) {
            return Ok(last);
        }
        let named = self.named(service);
        if named.is_empty() && service.is_none() {
            return Ok(Count::default());
        }
        let count = async {
            let on_word = lock(&self.confirmed_gone).clone();
            let count = self.list(&named, &on_word).await?;
            let here = self.found_one.load(Ordering::Relaxed);
            let count = Count { any_of_cluster: count.any_of_cluster || here, ..count };
            self.note_doubt(count);
            Ok(count)
        };
        let count = self.counts.get_or_fetch_since(&(), asked, count).await;
        count.map_err(|error| failure::of_call(&error, "listing the load balancers", failure::Missing::Race))
    }

    /// Returns an older count that still answers the question. An older list may show a load balancer that disappeared since, with
    /// others like it, so it proves no absence. It can still forbid a creation, and it can allow a first load balancer, which
    /// replaces none that serves.
    fn recent(&self, about_absence: bool) -> Option<Count> {
        let last = self.counts.last(&()).filter(CachedAnswer::is_alive)?.value;
        (!about_absence || last.absence() == Absence::Most).then_some(last)
    }

    fn note_doubt(&self, count: Count) {
        let doubted = count.missing > 0 && !count.allows_more();
        if doubted && !self.in_doubt.swap(doubted, Ordering::Relaxed) {
            tracing::error!(
                named = count.named,
                missing = count.missing,
                "load balancers to which annotations of Services refer cannot be found, perhaps because project or region in \
                 cloud.conf changed: no load balancer is created; check project, region and login in cloud.conf"
            );
        }
        self.in_doubt.store(doubted, Ordering::Relaxed);
        if !doubted {
            lock(&self.confirmed_gone).clear();
        }
    }

    /// Lists all that the credentials may see: a Service may name a load balancer of another project.
    async fn list(&self, named: &[Named], on_word: &HashSet<String>) -> Result<Count, ApiError> {
        let tally = PresenceTally::new(named, &self.cluster, on_word);
        let octavia = &self.openstack.octavia;
        Ok(octavia.list_load_balancers_of_project_into(None, tally).await?.count())
    }
}

/// Returns the failure that says why no load balancer is created.
pub(crate) fn held(count: Count) -> Failure {
    let who = match count.absence() {
        Absence::Most => "most of the load balancers to which annotations of Services refer cannot be found",
        Absence::Unproven | Absence::Gone => {
            "only one load balancer is named by annotations of Services, and it cannot be found: cloud.conf might name another project or \
             region than the one in which it was created"
        }
    };
    Failure::held(
        Hold::LoadBalancerMissing,
        format!(
            "{who}: no load balancer is created, and Services keep their annotations and status; check project, region and login in \
             cloud.conf; if the load balancers were really deleted, remove the annotation {} from the Service, or set \
             recreate-missing=true in [LoadBalancer] of cloud.conf for all Services",
            LOAD_BALANCER_ID.key
        ),
    )
}

#[cfg(test)]
mod tests;

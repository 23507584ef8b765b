//! Whether load balancers that cannot be found are really gone.
//!
//! The credentials of another project or region show none of them, and all of them serve. So a load balancer that was made
//! for a Service is only recreated where something shows that this is the place where it was, and where most others are
//! still there.

mod count;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::failure::{Failure, Hold};
use openstack_ccm_core::provider::Neighbours;
use openstack_ccm_core::service::Service;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::error::ApiError;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::load_balancer::annotations::LOAD_BALANCER_ID;
use crate::load_balancer::failure;
use crate::load_balancer::outputs;
use count::PresenceTally;
pub(crate) use count::{Absence, Count};

/// For so long one count stands for all Services that ask, where it proves no absence.
const GOOD_FOR: Duration = Duration::from_secs(20);

/// The judge of absences.
pub(crate) struct MissingLoadBalancers {
    openstack: OpenStack,
    cluster: ClusterIdentity,
    neighbours: OnceLock<Arc<dyn Neighbours>>,
    last: Mutex<Option<LastCount>>,
    /// Whether this process has found a load balancer by the id that a Service names, so that its credentials are right.
    found_one: AtomicBool,
    /// Whether the last count did not allow to create any.
    in_doubt: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct LastCount {
    /// When its list was asked for.
    asked: Instant,
    count: Count,
}

impl LastCount {
    /// Whether it answers a question that was `asked` then: what an absence means, or whether there may be a first load balancer. What could
    /// not be found may have been in an older list, as may others that have disappeared with it. So such a list proves no absence. It may
    /// well keep a load balancer from being created, and a first one takes the place of none that serves.
    fn answers(&self, asked: Instant, about_absence: bool) -> bool {
        let proves_none = !about_absence || self.count.absence() == Absence::Most;
        self.asked >= asked || (proves_none && self.asked.elapsed() < GOOD_FOR)
    }
}

impl MissingLoadBalancers {
    pub(crate) fn new(openstack: OpenStack, cluster: ClusterIdentity) -> Self {
        Self {
            openstack,
            cluster,
            neighbours: OnceLock::new(),
            last: Mutex::default(),
            found_one: AtomicBool::new(false),
            in_doubt: AtomicBool::new(false),
        }
    }

    /// Notes who knows all Services. The first one stays.
    pub(crate) fn meet(&self, neighbours: Arc<dyn Neighbours>) {
        drop(self.neighbours.set(neighbours));
    }

    /// Notes that a load balancer was found by the id that a Service names.
    pub(crate) fn found(&self) {
        self.found_one.store(true, Ordering::Relaxed);
    }

    /// Whether a load balancer may be created for a Service that never had one.
    ///
    /// # Errors
    /// Any failed call; the reason why none is created.
    pub(crate) async fn allow_first(&self) -> Result<(), Failure> {
        if self.found_one.load(Ordering::Relaxed) && !self.in_doubt.load(Ordering::Relaxed) {
            return Ok(());
        }
        let count = self.count(None).await?;
        if count.allows_more() { Ok(()) } else { Err(held(count)) }
    }

    /// What it means that the Service's load balancer cannot be found.
    ///
    /// # Errors
    /// Any failed call.
    pub(crate) async fn absence(&self, service: &Service) -> Result<(Absence, Count), Failure> {
        let count = self.count(Some(service)).await?;
        Ok((count.absence(), count))
    }

    /// Ids of the load balancers that Services name, and this one among them.
    fn named(&self, service: Option<&Service>) -> HashSet<String> {
        let served = self.neighbours.get().map(|neighbours| neighbours.served()).unwrap_or_default();
        // The watch may not have what was written a moment ago.
        let others = served.iter().filter(|other| service.is_none_or(|service| other.key != service.key));
        named(others.chain(service))
    }

    /// One count at a time: many ask at once, and each looks at all Services. Those that wait share the next one.
    async fn count(&self, service: Option<&Service>) -> Result<Count, Failure> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some(last) = last.filter(|last| last.answers(asked, service.is_some())) {
            return Ok(last.count);
        }
        let named = self.named(service);
        if named.is_empty() && service.is_none() {
            return Ok(Count::default());
        }
        let asked = Instant::now();
        let count = self.list(&named).await.map_err(|error| {
            failure::of_call(&error, "listing the load balancers", failure::Missing::Race)
        })?;
        let here = self.found_one.load(Ordering::Relaxed);
        let count = Count { any_of_cluster: count.any_of_cluster || here, ..count };
        *last = Some(LastCount { asked, count });
        let doubted = count.missing > 0 && !count.allows_more();
        if doubted && !self.in_doubt.swap(doubted, Ordering::Relaxed) {
            tracing::error!(
                named = count.named,
                missing = count.missing,
                "load balancers that services name cannot be found: this may be another project or region than before, \
                 so none is created; check project, region and log-in of cloud.conf"
            );
        }
        self.in_doubt.store(doubted, Ordering::Relaxed);
        Ok(count)
    }

    /// All that the credentials may see: a Service may name one of another project.
    async fn list(&self, named: &HashSet<String>) -> Result<Count, ApiError> {
        let tally = PresenceTally::new(named, &self.cluster.uid);
        let octavia = &self.openstack.octavia;
        Ok(octavia.list_load_balancers_of_project_into(None, tally).await?.count())
    }
}

/// The load balancers that were made for these Services, by the ids that the Services name.
fn named<'a>(services: impl Iterator<Item = &'a Service>) -> HashSet<String> {
    let own = services.filter(|service| outputs::is_own_output(service));
    own.filter_map(|service| service.annotations.get(LOAD_BALANCER_ID.key).cloned()).collect()
}

/// The reason why none is created.
pub(crate) fn held(count: Count) -> Failure {
    let who = match count.absence() {
        Absence::Most => "most of the load balancers that Services name cannot be found",
        Absence::Unproven | Absence::Gone => {
            "the only load balancer that a Service names cannot be found, and nothing shows that this is the project \
             and region where it was"
        }
    };
    Failure::held(
        Hold::LoadBalancerMissing,
        format!(
            "{who}: none is created, and ids and statuses stay; check project, region and log-in of cloud.conf; if they \
             are really gone, remove the annotation {} from the Service, or set recreate-missing=true in [LoadBalancer] \
             of cloud.conf for all",
            LOAD_BALANCER_ID.key
        ),
    )
}

#[cfg(test)]
mod tests;

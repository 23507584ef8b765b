//! What is there, and how far that may be trusted. Reads only.
//!
//! The only place that knows how an observation was obtained: what follows sees an [`Observation`], asks what it permits,
//! and has it read where that is not enough.
//!
//! | module | does |
//! | --- | --- |
//! | `cached` | brings what earlier reconciliations know up to date with what they changed |
//! | `listed` | compares the digest on the Service with what lists for all Services show |
//! | `bulk_lists` | lists once for all Services that ask at about the same time |
//! | `reading` | finds the load balancer and reads it as a whole |
//! | `read` | what is read: by id or name, with all that hangs on it, or only what a step touched |
//! | `status_trees` | the statuses of all that hangs on a load balancer, where Octavia shows them |
//! | `other_changes` | whether anybody else changed a load balancer before members are sent to it |
//! | `absence` | what it means that a load balancer cannot be found, of one Service |
//! | `missing` | the same, of all Services: whether this is the right project and region |
//! | `allowed` | whether the namespace may use the load balancer that was found |
//! | `observation` | what comes of it |

mod absence;
mod allowed;
mod bulk_lists;
mod cached;
mod listed;
mod missing;
mod observation;
mod other_changes;
pub(crate) mod read;
mod reading;
mod status_trees;

use std::sync::Arc;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::Neighbours;
use openstack_ccm_core::service::Service;
use openstack_ccm_openstack_api::OpenStack;

use super::belief::{Belief, Beliefs};
use super::locks::LoadBalancerLock;
use super::model::facts::Features;
use super::ownership::Claim;
use super::poller::Watchlist;
use super::report::Report;
use super::settings::Settings;
use bulk_lists::BulkLists;
use missing::MissingLoadBalancers;
pub(crate) use observation::Observation;
use other_changes::OtherChanges;
use read::Reader;
use status_trees::StatusTrees;

/// What all observations share.
pub(crate) struct Observer {
    openstack: OpenStack,
    watchlist: Watchlist,
    bulk_lists: BulkLists,
    missing: MissingLoadBalancers,
    reader: Reader,
    status_trees: StatusTrees,
    other_changes: OtherChanges,
    /// `recreate-missing`: what cannot be found is gone.
    recreate_missing: bool,
}

impl Observer {
    /// Observes a cloud for a cluster.
    pub(crate) fn new(
        openstack: OpenStack,
        cluster: ClusterIdentity,
        watchlist: Watchlist,
        recreate_missing: bool,
    ) -> Self {
        Self {
            bulk_lists: BulkLists::new(openstack.clone()),
            missing: MissingLoadBalancers::new(openstack.clone(), cluster),
            reader: Reader::new(openstack.clone(), watchlist.list_length()),
            status_trees: StatusTrees::default(),
            other_changes: OtherChanges::new(watchlist.list_length()),
            openstack,
            watchlist,
            recreate_missing,
        }
    }

    /// Reads load balancers.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Who knows all Services.
    pub(crate) fn neighbours(&self) -> Option<&dyn Neighbours> {
        self.missing.neighbours()
    }

    /// Notes who knows all Services. The first one stays.
    pub(crate) fn meet(&self, neighbours: Arc<dyn Neighbours>) {
        self.missing.meet(neighbours);
    }
}

/// The observation of what one Service has.
pub(crate) struct Observing<'a> {
    pub(crate) observer: &'a Observer,
    pub(crate) beliefs: &'a Beliefs,
    pub(crate) service: &'a Service,
    pub(crate) settings: &'a Settings,
    /// What Octavia can do for a new load balancer.
    pub(crate) features: Features,
    pub(crate) claim: &'a Claim<'a>,
}

impl Observing<'_> {
    /// What is there, from the first source that can tell: what is believed, bulk lists, or reading.
    ///
    /// Readings are boxed: after a start, all reconciliations wait here for the lists, each with room for all that it may
    /// have to wait for.
    ///
    /// # Errors
    /// Any failed call; a load balancer that the Service must not use.
    pub(crate) async fn observe(
        &self,
        lock: &mut LoadBalancerLock<'_>,
        report: &mut Report,
    ) -> Result<Observation, Failure> {
        let spared = match self.beliefs.take(&self.service.key) {
            Belief::Unknown => None,
            believed @ (Belief::DigestOnly | Belief::DriftDue(_)) => self.listed(believed, report).await?,
            believed @ Belief::Recheck(_) => Some(Box::pin(self.recheck(believed, lock, report)).await?),
            believed @ (Belief::Changing(_) | Belief::Converged(_)) => self.cached(believed, report).await?,
        };
        match spared {
            Some(observation) => Ok(observation),
            None => Box::pin(self.read(lock, report)).await,
        }
    }
}

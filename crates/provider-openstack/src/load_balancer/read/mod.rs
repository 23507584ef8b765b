//! Reads what exists. Apart from the poller ([`super::poll`]), nothing else reads Octavia.
//!
//! | look | reads | proves |
//! | --- | --- | --- |
//! | whole | load balancer, listeners, pools, members and monitors of own pools, floating IPs | all that the planner compares |
//! | check | the status tree; pools that no listener uses, with what is in them; after deletions the list of pools | what exists, statuses, members by address and port |
//! | members | the members of one pool | what administrators set on them |
//!
//! Where Octavia refuses the status tree, a whole look replaces a check. Two more answers count: the poller's, which shows the end
//! of a lock and the load balancer's owner, and a list that agrees with a digest, which proves that nothing changed since a whole
//! look.
//!
//! | module | does |
//! | --- | --- |
//! | `lists` | one list of the project for all that read at the same time |
//! | `service` | finds the load balancer of a Service and reads it whole |
//! | `find` | the load balancer, by id or by name |
//! | `evidence` | which cluster owns a load balancer without our tags |
//! | `whole` | the children of a load balancer |
//! | `floating_ip` | the floating IPs that matter to a Service |
//! | `statuses` | reads what a check compares |
//! | `absence` | what it means that one Service's load balancer cannot be found |
//! | `missing` | the same for all Services: whether this is the right project and region |

mod absence;
pub(crate) mod evidence;
pub(crate) mod find;
pub(crate) mod floating_ip;
pub(crate) mod lists;
mod missing;
mod service;
mod statuses;
pub(crate) mod whole;

use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::Neighbours;
use openstack_ccm_core::service::Service;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::error::ApiError;

use super::failure::{self, Missing};
use super::settings::Settings;
use crate::load_balancer::identity::ownership::Claim;
use crate::load_balancer::objects::{Features, ObservedLoadBalancer};
use crate::load_balancer::read::lists::{Lists, Reader};
use crate::load_balancer::state::record::ServiceRecord;
use crate::load_balancer::state::watchlist::Watchlist;
pub(crate) use find::Found;
use missing::MissingLoadBalancers;

/// So many lists of each kind serve all checks for drift of one interval. A check comes late by as much, at random.
const DRIFT_LISTS: u32 = 5;

/// What all reconciliations share for reading.
pub(crate) struct Observer {
    lists: Lists,
    watchlist: Watchlist,
    missing: MissingLoadBalancers,
    /// `recreate-missing`: a load balancer that cannot be found is gone.
    recreate_missing: bool,
    /// How old a list may be that a check for drift uses.
    drift_list_age: Duration,
}

impl Observer {
    pub(crate) fn new(
        lists: Lists,
        cluster: ClusterIdentity,
        watchlist: Watchlist,
        recreate_missing: bool,
        drift_check_interval: Duration,
    ) -> Self {
        let missing = MissingLoadBalancers::new(lists.openstack().clone(), cluster);
        let drift_list_age = drift_check_interval / DRIFT_LISTS;
        Self { lists, watchlist, missing, recreate_missing, drift_list_age }
    }

    /// Returns a reader that accepts answers begun after `since`.
    pub(crate) fn reader(&self, since: Moment) -> Reader<'_> {
        Reader::new(&self.lists, since)
    }

    /// Returns a reader for a check for drift.
    pub(crate) fn reader_for_drift(&self) -> Reader<'_> {
        Reader::for_drift(&self.lists, self.drift_list_age)
    }

    /// Notes that the load balancer that a Service names was found: the credentials are right.
    pub(crate) fn found(&self, there: &ObservedLoadBalancer) {
        self.missing.found(&there.name, &there.tags);
    }

    /// Returns the source of all Services.
    pub(crate) fn neighbours(&self) -> Option<&dyn Neighbours> {
        self.missing.neighbours()
    }

    /// Sets the source of all Services. Only the first call has an effect.
    pub(crate) fn set_neighbours(&self, neighbours: Arc<dyn Neighbours>) {
        self.missing.set_neighbours(neighbours);
    }
}

/// What a reconciliation needs to read one Service's objects.
#[derive(Clone, Copy)]
pub(crate) struct Observing<'a> {
    pub(crate) observer: &'a Observer,
    pub(crate) service: &'a Service,
    pub(crate) settings: &'a Settings,
    /// What Octavia can do for a new load balancer.
    pub(crate) features: Features,
    pub(crate) claim: &'a Claim<'a>,
    pub(crate) record: &'a ServiceRecord,
    /// Only answers that were begun after this count.
    pub(crate) since: Moment,
    /// When the reconciliation began.
    pub(crate) began: Moment,
}

impl Observing<'_> {
    fn reader(&self) -> Reader<'_> {
        self.observer.reader(self.since)
    }
}

fn reading(error: &ApiError) -> Failure {
    failure::of_call(error, "reading the load balancer", Missing::Race)
}

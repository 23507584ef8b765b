//! One reconciliation, from what a Service wants to what was done in the cloud.
//!
//! A reconciliation looks, plans, changes one thing, and looks again:
//!
//! ```text
//! serve:   look -> resolve -> desired -> plan -> apply -> keep
//!            ^                             |
//!            +----- the plan needs a look -+
//! release: find -> read -> plan -> apply, for each load balancer that the Service has
//! ```
//!
//! [`serve`] states the protocol: what is read when, what is believed, when something is written, and what an answer leads to.
//!
//! | module | does |
//! | --- | --- |
//! | `serve` | a Service that is to be served |
//! | `release` | a Service that goes, and load balancers that a Service used before |
//! | `carry_out` | applies a plan as far as can be done now, and says what comes next |
//! | `stalled` | waits longer each time where nothing can be done although the load balancer is not PENDING |
//! | `addresses` | under which addresses clients reach a Service |

mod addresses;
mod carry_out;
mod release;
mod serve;
mod stalled;

use std::sync::Arc;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Neighbours, Reconciliation};
use openstack_ccm_core::service::{Goal, ServiceKey};

use super::plan::ON_INTERNAL;
use super::report::Report;
use super::resolve::Resolver;
use super::security_group::SecurityGroups;
use crate::config::Config;
use crate::load_balancer::identity::ownership::{Others, Scope};
use crate::load_balancer::read::Observer;
use crate::load_balancer::read::lists::Lists;
use crate::load_balancer::state::creations::Creations;
use crate::load_balancer::state::identity_tags::IdentityTagQueue;
use crate::load_balancer::state::locks::LoadBalancerLocks;
use crate::load_balancer::state::record::Records;
use crate::load_balancer::state::replacements::Replacements;
use crate::load_balancer::state::watchlist::Watchlist;

/// The cloud lacks an optional part of its API.
const PART_MISSING: &str = "CloudPartMissing";

/// What all reconciliations share.
pub(super) struct Reconciler {
    lists: Lists,
    config: Arc<Config>,
    cluster: ClusterIdentity,
    observer: Observer,
    records: Records,
    locks: LoadBalancerLocks,
    watchlist: Watchlist,
    creations: Creations,
    resolver: Resolver,
    security_groups: SecurityGroups,
    replacements: Replacements,
    identity_tags: IdentityTagQueue,
}

impl Reconciler {
    /// Reconciles Services of a cluster with a cloud; what Octavia is at work on is put on the watchlist.
    pub(super) fn new(
        lists: Lists,
        config: Arc<Config>,
        cluster: ClusterIdentity,
        watchlist: Watchlist,
        creations: Creations,
        locks: LoadBalancerLocks,
    ) -> Self {
        let section = &config.load_balancer;
        let openstack = lists.openstack().clone();
        Self {
            observer: Observer::new(
                lists.clone(),
                cluster.clone(),
                watchlist.clone(),
                section.recreate_missing,
            ),
            records: Records::new(),
            locks,
            watchlist,
            creations,
            security_groups: SecurityGroups::new(openstack.neutron.clone()),
            resolver: Resolver::new(openstack),
            replacements: Replacements::new(),
            identity_tags: IdentityTagQueue::new(section.identity_tags_per_minute),
            lists,
            config,
            cluster,
        }
    }

    /// One reconciliation, with all that it has to say.
    pub(super) async fn reconcile(&self, goal: &Goal) -> Reconciliation {
        let mut report = Report::default();
        let (service, result) = match goal {
            Goal::Serve(intent) => (&intent.service, self.serve(intent, &mut report).await),
            Goal::Release(service) => (service, Box::pin(self.release(service, &mut report)).await),
        };
        let lacking = self.lists.openstack().client.newly_lacking();
        report.notices(lacking.iter().map(|lacking| Notice::warning(PART_MISSING, lacking.to_string())));
        report.end(service, result)
    }

    /// It is time to look for changes that somebody made in the cloud.
    pub(super) fn drift_due(&self, service: &ServiceKey) {
        self.records.drift_due(service);
    }

    /// The Services whose load balancer and floating IP will get the tags that say whose they are.
    pub(super) fn awaiting_identity_tags(&self) -> Vec<ServiceKey> {
        self.identity_tags.waiting()
    }

    /// A dry run: acts as a program does after its start-up delays.
    pub(super) fn begin_dry_run(&self) {
        self.replacements.skip_startup_delay();
    }

    /// Notes who knows all Services.
    pub(super) fn set_neighbours(&self, neighbours: Arc<dyn Neighbours>) {
        self.observer.set_neighbours(neighbours);
    }

    /// How many internal Services have a floating IP that somebody attached.
    pub(super) fn exposed_internal_services(&self) -> usize {
        self.records.warned_of(ON_INTERNAL)
    }

    /// The creations of load balancers.
    pub(super) fn creations(&self) -> &Creations {
        &self.creations
    }

    /// What Services claim things by.
    fn scope(&self) -> Scope<'_> {
        let section = &self.config.load_balancer;
        Scope {
            cluster: &self.cluster,
            former_cluster_names: &section.former_cluster_names,
            adopts_foreign: section.adopt_foreign_cluster,
            project_id: self.lists.openstack().project_id.as_deref(),
            others: Others(self.observer.neighbours()),
        }
    }
}

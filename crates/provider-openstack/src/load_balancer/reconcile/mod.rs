//! One reconciliation, from what a Service wants to what was done in the cloud.
//!
//! ```text
//! serve:   observe -> resolve -> desired -> plan -> apply -> note what happened
//!             ^                             |
//!             +-- by reading, where the plan needs more than the observation permits
//! release: find -> read -> plan -> apply, for each load balancer that the Service has
//! ```
//!
//! | module | does |
//! | --- | --- |
//! | `serve` | a Service that is to be served |
//! | `release` | a Service that goes, and load balancers that a Service used before |
//! | `retain` | lets a load balancer outlive its Service on purpose |
//! | `carry_out` | applies a plan as far as can be done now, and says what comes next |
//! | `stalled` | waits longer each time where nothing can be done although the load balancer is not PENDING |
//! | `addresses` | under which addresses clients reach a Service |
//! | `identity_tags` | spaces out the tags that load balancers made by OCCM get |
//! | `replacements` | lets one load balancer in ERROR be replaced at a time |
//! | `members_in_hand` | bounds the memory that reconciliations need on large clusters |

mod addresses;
mod carry_out;
mod identity_tags;
mod members_in_hand;
mod release;
mod replacements;
mod retain;
mod serve;
mod stalled;

use std::sync::Arc;

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::provider::{Neighbours, Reconciliation};
use openstack_ccm_core::service::{Goal, ServiceKey};
use openstack_ccm_openstack_api::OpenStack;
use tokio::sync::Semaphore;

use super::belief::{Beliefs, Event};
use super::creations::Creations;
use super::locks::LoadBalancerLocks;
use super::observe::Observer;
use super::ownership::{Others, Scope};
use super::poller::Watchlist;
use super::report::Report;
use super::resolve::Resolver;
use super::security_group::SecurityGroups;
use crate::config::Config;
use identity_tags::IdentityTagQueue;
use members_in_hand::MembersInHand;
use replacements::Replacements;

/// What all reconciliations share.
pub(super) struct Reconciler {
    openstack: OpenStack,
    config: Arc<Config>,
    cluster: ClusterIdentity,
    observer: Observer,
    beliefs: Beliefs,
    locks: LoadBalancerLocks,
    watchlist: Watchlist,
    creations: Creations,
    resolver: Resolver,
    security_groups: SecurityGroups,
    replacements: Replacements,
    identity_tags: IdentityTagQueue,
    members_in_hand: MembersInHand,
    /// For Services that lists show. See [`MOST_LISTED`].
    listed: Semaphore,
}

/// How many Services that lists show are compared with their digests at once. After a start that is all of them: each has a
/// whole plan in hand while all wait for the same few answers.
const MOST_LISTED: usize = 8;

impl Reconciler {
    /// Reconciles Services of a cluster with a cloud; what Octavia is at work on is put on the watchlist.
    pub(super) fn new(
        openstack: OpenStack,
        config: Arc<Config>,
        cluster: ClusterIdentity,
        watchlist: Watchlist,
        creations: Creations,
    ) -> Self {
        let section = &config.load_balancer;
        Self {
            observer: Observer::new(
                openstack.clone(),
                cluster.clone(),
                watchlist.clone(),
                section.recreate_missing,
            ),
            beliefs: Beliefs::default(),
            locks: LoadBalancerLocks::default(),
            watchlist,
            creations,
            resolver: Resolver::new(openstack.clone()),
            security_groups: SecurityGroups::new(openstack.neutron.clone()),
            replacements: Replacements::new(),
            identity_tags: IdentityTagQueue::new(section.identity_tags_per_minute),
            members_in_hand: MembersInHand::new(),
            listed: Semaphore::new(MOST_LISTED),
            openstack,
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
        self.beliefs.rest(&service.key);
        report.end(result)
    }

    /// It is time to look for changes that somebody made in the cloud.
    pub(super) fn drift_due(&self, service: &ServiceKey) {
        self.beliefs.note(service, &Event::DriftDue);
    }

    /// The Services whose load balancer and floating IP will get the tags that tell whose they are.
    pub(super) fn awaiting_identity_tags(&self) -> Vec<ServiceKey> {
        self.identity_tags.waiting()
    }

    /// What is reconciled is a plan of what a program will do that has run for a while.
    pub(super) fn look_ahead(&self) {
        self.replacements.count_as_settled();
    }

    /// Notes who knows all Services.
    pub(super) fn meet(&self, neighbours: Arc<dyn Neighbours>) {
        self.observer.meet(neighbours);
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
            project_id: self.openstack.project_id.as_deref(),
            others: Others(self.observer.neighbours()),
        }
    }
}

//! One reconciliation, from the wishes of a Service to the changes in the cloud.
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
//! [`serve`] states the protocol: what is read when, which answers count, when something is written, and what each answer leads to.
//!
//! | module | does |
//! | --- | --- |
//! | `serve` | a Service that is to be served |
//! | `release` | a Service that is deleted, and load balancers that a Service used before |
//! | `carry_out` | applies a plan as far as possible now, and determines what comes next |
//! | `stalled` | waits longer each time a load balancer cannot be changed although it is not PENDING |
//! | `addresses` | the addresses by which clients reach a Service |

mod addresses;
mod carry_out;
mod release;
mod serve;
mod stalled;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::lock::lock;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::provider::{Neighbours, Reconciliation, Wake};
use openstack_ccm_core::service::{Goal, ServiceKey};
use tracing::{info, warn};
use uuid::Uuid;

use super::plan::{DRAINED, ON_INTERNAL};
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
    dry_run: Mutex<Option<RemovedMembers>>,
    wake: Arc<dyn Wake>,
}

/// The members that a dry run removed from pools, by Service, each with the reason: the same once, whatever number of pools has it.
type RemovedMembers = BTreeMap<ServiceKey, BTreeSet<String>>;

impl Reconciler {
    /// Creates a reconciler of a cluster's Services; it puts PENDING load balancers on the watchlist, and wakes Services with `wake`.
    pub(super) fn new(
        lists: Lists,
        config: Arc<Config>,
        cluster: ClusterIdentity,
        watchlist: Watchlist,
        creations: Creations,
        locks: LoadBalancerLocks,
        wake: Arc<dyn Wake>,
    ) -> Self {
        let section = &config.load_balancer;
        let openstack = lists.openstack().clone();
        Self {
            observer: Observer::new(
                lists.clone(),
                cluster.clone(),
                watchlist.clone(),
                section.recreate_missing,
                section.drift_check_interval,
            ),
            records: Records::new(),
            locks,
            watchlist,
            creations,
            security_groups: SecurityGroups::new(openstack.neutron.clone()),
            resolver: Resolver::new(openstack),
            replacements: Replacements::new(),
            identity_tags: IdentityTagQueue::new(section.identity_tags_per_minute),
            dry_run: Mutex::new(None),
            lists,
            config,
            cluster,
            wake,
        }
    }

    /// Wakes the Services that ask for one of these addresses, which a Service has given up.
    fn given_up(&self, addresses: &[IpAddr], by: &ServiceKey) {
        let asking = self.records.asking_for(addresses);
        asking.iter().filter(|key| *key != by).for_each(|key| self.wake.wake(key));
    }

    /// Runs one reconciliation, and returns its result with all notices.
    pub(super) async fn reconcile(&self, goal: &Goal) -> Reconciliation {
        let mut report = Report::default();
        let (service, result) = match goal {
            Goal::Serve(intent) => (&intent.service, self.serve(intent, &mut report).await),
            Goal::Release(service) => (service, Box::pin(self.release(service, &mut report)).await),
        };
        for lacking in self.lists.openstack().client.newly_lacking() {
            warn!(%lacking, "the cloud lacks a part of its API");
            // The refused call may be about a Service of another namespace.
            report.notice(Notice::warning(PART_MISSING, without_ids(&lacking.to_string())));
        }
        report.end(service, result)
    }

    /// Has the next reconciliation look for changes that another client made in the cloud.
    pub(super) fn drift_due(&self, service: &ServiceKey) {
        self.records.drift_due(service);
    }

    /// Returns the Services whose load balancer and floating IP will get identity tags.
    pub(super) fn awaiting_identity_tags(&self) -> Vec<ServiceKey> {
        self.identity_tags.waiting()
    }

    /// Begins a dry run, which skips the start-up delays.
    pub(super) fn begin_dry_run(&self) {
        self.replacements.skip_startup_delay();
        *lock(&self.dry_run) = Some(RemovedMembers::new());
    }

    /// Reports removed members: in the log, and in a dry run to who made it.
    fn note_removed_members(&self, service: &ServiceKey, members: String) {
        info!(service = %service, members, "members removed");
        if let Some(removed) = lock(&self.dry_run).as_mut() {
            removed.entry(service.clone()).or_default().insert(members);
        }
    }

    /// Returns the members that the dry run removed from pools of the Service.
    pub(super) fn removed_members(&self, service: &ServiceKey) -> Vec<String> {
        let dry_run = lock(&self.dry_run);
        dry_run.iter().filter_map(|removed| removed.get(service)).flatten().cloned().collect()
    }

    /// Sets the source of all Services.
    pub(super) fn set_neighbours(&self, neighbours: Arc<dyn Neighbours>) {
        self.observer.set_neighbours(neighbours);
    }

    /// Returns how many internal Services have a floating IP that another client attached.
    pub(super) fn exposed_internal_services(&self) -> usize {
        self.records.warned_of(ON_INTERNAL)
    }

    /// Returns how many Services have a pool none of whose members takes connections because of what an administrator set.
    pub(super) fn drained_services(&self) -> usize {
        self.records.warned_of(DRAINED)
    }

    /// Returns the queue of load balancer creations.
    pub(super) fn creations(&self) -> &Creations {
        &self.creations
    }

    /// Returns what all claims of Services have in common.
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

/// Returns the text with `ID` in place of each UUID.
fn without_ids(text: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
    let words = text.split_inclusive(|letter| !is_part(letter));
    let masked = words.map(|word| {
        let id = word.trim_end_matches(|letter| !is_part(letter));
        if Uuid::try_parse(id).is_ok() { format!("ID{}", &word[id.len()..]) } else { word.to_owned() }
    });
    masked.collect()
}

//! The load balancer of a Service, from what it wants to what is done in the cloud.
//!
//! | step | module | does |
//! | --- | --- | --- |
//! | settings | [`annotations`] | all annotations, as one table |
//! | | [`settings`] | what the Service asks for: fields, annotations, class and cloud.conf as one |
//! | | [`names`] | names, descriptions and tags of what is made, and how to read them |
//! | | [`floating_subnet`] | which subnets a floating IP may come from |
//! | observe | `observe` | reads what is there |
//! | | `ownership` | says whose it is |
//! | resolve | `resolve` | looks up what nobody has written down |
//! | desired | [`desired`] | what is wanted, whole |
//! | | [`model`] | what is wanted and what is there, in the same comparable types |
//! | plan | [`plan`] | the difference, as steps in an order that is right wherever it stops |
//! | | [`step`] | the steps: one call to the cloud each |
//! | apply | `apply` | makes the calls |
//! | | `carry_out` | says what comes next |
//! | beside | `security_group` | lets the load balancer reach the nodes, in a straight line of its own |
//! | wait | [`poller`] | watches load balancers that Octavia works on |
//!
//! `serve` and `release` run through these for a Service that is to be served, and for one that goes; `recall` spares
//! the look at the cloud where what is `known` from earlier passes tells enough, `settled` where a `census` shows that
//! nothing changed since, `replacements` allow one at a time of those in ERROR, and batches of members are `unconfirmed`
//! for a while. `retain` lets a load balancer outlive its Service on purpose, `made_for_services` lists those among which one
//! may have outlived it by accident; `markings` spaces out the tags that what OCCM made gets. `memory`, `turns` and `report` hold what a pass has besides;
//! `published` says which addresses a Service has, `recreation` which settings come too late; `failure` explains what
//! the cloud refuses, and `missing` judges what cannot be found.

pub mod annotations;
mod apply;
mod belief;
pub mod desired;
pub(crate) mod failure;
pub mod floating_subnet;
mod locks;
pub mod model;
pub mod names;
mod observe;
mod orphans;
mod outputs;
mod ownership;
pub mod plan;
pub mod poller;
mod reconcile;
mod resolve;
mod security_group;
pub mod settings;
pub mod step;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::{LoadBalancers, MadeForServices, Neighbours, Pass, ProviderNames, Wake};
use openstack_ccm_core::service::{Goal, ServiceKey};
use openstack_ccm_openstack_api::OpenStack;

use crate::config::Config;
use crate::provider_names::PROVIDER_NAMES;
use belief::store::Memory;
use locks::LoadBalancerLocks;
use names::ClusterIdentity;
use observe::bulk_lists::BulkLists;
use observe::missing::MissingLoadBalancers;
use ownership::Scope;
use poller::{PollInterval, Poller, Watchlist};
use reconcile::identity_tags::IdentityTagQueue;
use reconcile::replacements::Replacements;
use reconcile::report::Report;
use resolve::Resolver;
use security_group::SecurityGroups;

/// Load balancers in Octavia.
pub struct OpenStackLoadBalancers {
    openstack: OpenStack,
    config: Arc<Config>,
    cluster: ClusterIdentity,
    resolver: Resolver,
    security_groups: SecurityGroups,
    watchlist: Watchlist,
    locks: LoadBalancerLocks,
    memory: Memory,
    replacements: Replacements,
    bulk_lists: BulkLists,
    missing: MissingLoadBalancers,
    identity_tags: IdentityTagQueue,
}

impl OpenStackLoadBalancers {
    /// Load balancers of a cluster in a cloud, and the poller that has to run beside them: it wakes the Services whose
    /// load balancer Octavia has finished.
    pub fn new(
        openstack: OpenStack,
        config: Arc<Config>,
        cluster: ClusterIdentity,
        wake: Arc<dyn Wake>,
    ) -> (Self, Poller) {
        let watchlist = Watchlist::default();
        let poller = Poller::new(openstack.octavia.clone(), watchlist.clone(), wake, PollInterval::default());
        let load_balancers = Self {
            resolver: Resolver::new(openstack.clone()),
            bulk_lists: BulkLists::new(openstack.clone()),
            missing: MissingLoadBalancers::new(openstack.clone(), cluster.clone()),
            identity_tags: IdentityTagQueue::new(config.load_balancer.identity_tags_per_minute),
            security_groups: SecurityGroups::new(openstack.neutron.clone()),
            openstack,
            config,
            cluster,
            watchlist,
            locks: LoadBalancerLocks::default(),
            memory: Memory::default(),
            replacements: Replacements::new(),
        };
        (load_balancers, poller)
    }

    /// What Services claim things by.
    fn scope(&self) -> Scope<'_> {
        let section = &self.config.load_balancer;
        Scope {
            cluster: &self.cluster,
            former_cluster_names: &section.former_cluster_names,
            adopts_foreign: section.adopt_foreign_cluster,
            project_id: self.openstack.project_id.as_deref(),
        }
    }
}

impl fmt::Debug for OpenStackLoadBalancers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStackLoadBalancers").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

#[async_trait]
impl LoadBalancers for OpenStackLoadBalancers {
    fn names(&self) -> ProviderNames {
        PROVIDER_NAMES
    }

    async fn reconcile(&self, goal: &Goal) -> Pass {
        let mut report = Report::default();
        let result = match goal {
            Goal::Serve(intent) => self.serve(intent, &mut report).await,
            Goal::Release(service) => self.release(service, &mut report).await,
        };
        report.end(result)
    }

    fn look_again(&self, service: &ServiceKey) {
        self.memory.look_again(service);
    }

    fn meet(&self, neighbours: Arc<dyn Neighbours>) {
        self.missing.meet(neighbours);
    }

    fn reads_annotation(&self, key: &str) -> bool {
        annotations::is_known(key) || annotations::is_ours(key)
    }

    async fn made_for_services(&self) -> Result<Vec<MadeForServices>, Failure> {
        self.list_made_for_services().await
    }
}

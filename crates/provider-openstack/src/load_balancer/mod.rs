//! Manages the load balancers of Services, from their wishes to the changes in the cloud.
//!
//! Each module names only modules above it.
//!
//! | step | module | does |
//! | --- | --- | --- |
//! | settings | [`annotations`] | all annotations, as one table |
//! | | `failure` | explains refusals of the cloud |
//! | | [`names`] | names, descriptions and tags of created objects, and how to parse them |
//! | | `objects` | desired and observed state, in the same comparable types; steps and their answers |
//! | | [`identity`] | who owns a load balancer: ids, what controllers wrote into the Service, ownership |
//! | | `report` | what a reconciliation reports besides its result |
//! | | [`settings`] | what the Service asks for: fields, annotations, class and cloud.conf combined |
//! | desired | `desired` | the whole desired state |
//! | plan | `plan` | the difference, as steps in an order that is safe wherever it stops |
//! | | `known` | what is known of the observed state, and which look is needed before the next step |
//! | state | `state` | all that is remembered of a Service and of a load balancer |
//! | read | `read` | reads everything, or checks what is expected; apart from the poller, nothing else reads Octavia |
//! | resolve | `resolve` | looks up what is not configured |
//! | apply | `apply` | makes the calls |
//! | wait | [`poll`] | watches load balancers that Octavia works on |
//! | beside | `security_group` | lets the load balancer reach the nodes, in steps of its own |
//! | all | `reconcile` | runs these steps for a Service to serve or to release |
//! | beside | `orphans` | lists the load balancers that may have outlived their Service by accident |

pub mod annotations;
mod apply;
mod desired;
pub(crate) mod failure;
pub mod identity;
mod known;
pub mod names;
mod objects;
mod orphans;
mod plan;
pub mod poll;
mod read;
mod reconcile;
mod report;
mod resolve;
mod security_group;
pub mod settings;
mod state;

use std::sync::Arc;

use async_trait::async_trait;
use openstack_ccm_core::advertise::SettingNames;
use openstack_ccm_core::cloud::ClusterIdentity;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::provider::{
    AnnotationUse, Gauge, LoadBalancers, Neighbours, OrphanCandidate, ProviderNames, Reconciliation, Wake,
};
use openstack_ccm_core::service::{Goal, ServiceKey};
use openstack_ccm_openstack_api::OpenStack;

use crate::config::Config;
use annotations::{ALLOW_CLUSTER_SOURCES, HOSTNAME, IP_MODE};
use orphans::OrphanCandidates;
use poll::Poller;
use read::lists::Lists;
use reconcile::Reconciler;
use state::creations::Creations;
use state::locks::LoadBalancerLocks;
use state::watchlist::Watchlist;

/// The names by which users, operators and dashboards know OpenStack as a provider. Event source and metrics are spelled as in the
/// Go implementation.
pub const PROVIDER_NAMES: ProviderNames = ProviderNames {
    event_source: "cloud-provider-openstack",
    metric_prefix: "cloudprovider_openstack",
    delete_command: "openstack loadbalancer delete --cascade",
    settings: SettingNames {
        ip_mode_annotation: IP_MODE.key,
        hostname_annotation: HOSTNAME.key,
        cluster_sources_annotation: Some(ALLOW_CLUSTER_SOURCES.key),
        ip_mode_setting: "ip-mode in cloud.conf",
        hostname_suffix_setting: "ingress-hostname-suffix in cloud.conf",
    },
};

/// Load balancers in Octavia.
pub struct OpenStackLoadBalancers {
    openstack: OpenStack,
    reconciler: Reconciler,
    orphan_candidates: OrphanCandidates,
}

impl OpenStackLoadBalancers {
    /// Creates the load balancers of a cluster in a cloud, and the poller that has to run alongside: it wakes the Services whose
    /// load balancer Octavia has finished.
    pub fn new(
        openstack: OpenStack,
        config: Arc<Config>,
        cluster: ClusterIdentity,
        wake: Arc<dyn Wake>,
    ) -> (Self, Poller) {
        let watchlist = Watchlist::default();
        let locks = LoadBalancerLocks::new(Arc::clone(&wake));
        let creations = Creations::new(Arc::clone(&wake));
        let observer = Arc::new(creations.clone());
        let lists = Lists::new(openstack.clone());
        let poller = Poller::new(lists.clone(), watchlist.clone(), observer);
        let load_balancers = Self {
            openstack,
            orphan_candidates: OrphanCandidates::new(lists.clone(), cluster.clone()),
            reconciler: Reconciler::new(lists, config, cluster, watchlist, creations, locks, wake),
        };
        (load_balancers, poller)
    }
}

#[async_trait]
impl LoadBalancers for OpenStackLoadBalancers {
    fn names(&self) -> ProviderNames {
        PROVIDER_NAMES
    }

    async fn reconcile(&self, goal: &Goal) -> Reconciliation {
        self.reconciler.reconcile(goal).await
    }

    fn expect_drift(&self, service: &ServiceKey) {
        self.reconciler.drift_due(service);
    }

    fn set_neighbours(&self, neighbours: Arc<dyn Neighbours>) {
        self.reconciler.set_neighbours(neighbours);
    }

    fn use_of_annotation(&self, key: &str) -> AnnotationUse {
        annotations::use_of(key)
    }

    fn begin_dry_run(&self) {
        self.reconciler.begin_dry_run();
    }

    fn awaiting_identity_tags(&self) -> Vec<ServiceKey> {
        self.reconciler.awaiting_identity_tags()
    }

    fn removed_members(&self, service: &ServiceKey) -> Vec<String> {
        self.reconciler.removed_members(service)
    }

    fn gauges(&self) -> Vec<Gauge> {
        let since = match self.openstack.log_in_refused_since() {
            Some(since) => since.as_second(),
            None => 0,
        };
        let refused = |name, help| Gauge { name, help, value: usize::try_from(since).unwrap_or_default() };
        let mut gauges = self.reconciler.creations().gauges();
        gauges.push(refused(
            "openstack_ccm_log_in_refused_timestamp_seconds",
            "Time since which Keystone has refused the login, in seconds since 1970; 0 if Keystone accepts the login",
        ));
        gauges.push(refused(
            "openstack_ccm_log_in_refused_since_seconds",
            "The same as openstack_ccm_log_in_refused_timestamp_seconds, under its name until 0.3",
        ));
        gauges.push(Gauge {
            name: "openstack_ccm_internal_services_with_floating_ip",
            help: "Internal Services to whose load balancer somebody has attached a floating IP",
            value: self.reconciler.exposed_internal_services(),
        });
        gauges.push(Gauge {
            name: "openstack_ccm_services_with_drained_pools",
            help: "Services with a pool none of whose members takes connections, because somebody set weight 0 or admin_state_up false in Octavia",
            value: self.reconciler.drained_services(),
        });
        gauges.push(Gauge {
            name: "openstack_ccm_cloud_parts_missing",
            help: "Optional parts of the OpenStack API that are known to be missing in the cloud",
            value: self.openstack.client.lacking().len(),
        });
        gauges
    }

    async fn orphan_candidates(&self) -> Result<Vec<OrphanCandidate>, Failure> {
        self.orphan_candidates.list().await
    }
}

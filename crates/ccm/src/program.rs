//! What a leader runs: the controllers over the provider. Everything it needs is passed in, so that tests run it whole.

use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use openstack_ccm_controllers::service::{ServiceController, ServiceControllerOptions, ServiceQueue};
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_provider_openstack::config::Config;
use openstack_ccm_provider_openstack::load_balancer::names::ClusterIdentity;
use openstack_ccm_provider_openstack::load_balancer::poller::Poller;
use openstack_ccm_provider_openstack::load_balancer::{OpenStackLoadBalancers, annotations};
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::health::{Health, Kind};

/// Name of the health check that passes when Services and Nodes have been listed.
const CACHES: &str = "caches";

/// What the command line says about the controllers.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    /// `--cluster-name`
    pub cluster_name: String,
    /// Settings of the service controller.
    pub service: ServiceControllerOptions,
}

/// The controllers, put together and not yet running.
pub struct Program {
    controller: ServiceController,
    poller: Poller,
}

impl Program {
    /// Puts the controllers over the provider. `client` must not repeat requests by itself; `cluster_uid` is the uid of
    /// the namespace kube-system.
    pub fn new(
        client: Client,
        openstack: OpenStack,
        config: Arc<Config>,
        cluster_uid: String,
        options: ProgramOptions,
        registry: &Mutex<Registry>,
    ) -> Self {
        let queue = ServiceQueue::new();
        let cluster = ClusterIdentity { name: options.cluster_name, uid: cluster_uid };
        let service = ServiceControllerOptions {
            node_selector_annotation: Some(annotations::NODE_SELECTOR.key.to_owned()),
            node_selector: config.load_balancer.node_selector.clone(),
            ..options.service
        };
        let (provider, poller) = OpenStackLoadBalancers::new(openstack, config, cluster, queue.waker());
        let mut registry = registry.lock().unwrap_or_else(PoisonError::into_inner);
        let controller = ServiceController::new(client, Arc::new(provider), queue, service, &mut registry);
        Self { controller, poller }
    }

    /// Works until `stop`.
    pub async fn run(self, health: &Health, stop: CancellationToken) {
        let Self { controller, poller } = self;
        let mut synced = controller.caches_synced();
        health.set(CACHES, Kind::Readiness, Some("services and nodes are not listed yet".to_owned()));
        let ready = async {
            synced.wait().await;
            health.set(CACHES, Kind::Readiness, None);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            result = controller.run(stop) => match result {
                Ok(()) => tracing::info!("the service controller has stopped"),
                Err(error) => tracing::error!("{:#}", anyhow::Error::new(error)),
            },
            // Both end with this future: running passes may still wait for the poller after the stop.
            () = poller.run(CancellationToken::new()) => {}
            () = ready => {}
        }
    }
}

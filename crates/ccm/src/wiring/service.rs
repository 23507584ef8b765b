//! The service controller over Octavia.

use std::sync::Arc;

use openstack_ccm_controllers::service::{ServiceController, ServiceControllerOptions, ServiceQueue};
use openstack_ccm_provider_openstack::load_balancer::names::ClusterIdentity;
use openstack_ccm_provider_openstack::load_balancer::poller::Poller;
use openstack_ccm_provider_openstack::load_balancer::{OpenStackLoadBalancers, annotations};
use tokio_util::sync::CancellationToken;

use super::Controller;
use crate::args::controllers::ControllerName;
use crate::program::Ground;

/// Puts the controller together; beside it runs the poller.
pub(crate) fn build(
    ground: &mut Ground<'_>,
    options: &ServiceControllerOptions,
) -> (ServiceController, Poller) {
    let config = Arc::clone(&ground.config);
    let queue = ServiceQueue::new();
    let cluster = ClusterIdentity { name: ground.cluster_name.clone(), uid: ground.cluster_uid.clone() };
    let options = ServiceControllerOptions {
        node_selector_annotation: Some(annotations::NODE_SELECTOR.key.to_owned()),
        node_selector: config.load_balancer.node_selector.clone(),
        resync: Some(config.load_balancer.drift_check_interval).filter(|interval| !interval.is_zero()),
        ..options.clone()
    };
    let client = ground.clients.of(ControllerName::ServiceLb);
    let (provider, poller) =
        OpenStackLoadBalancers::new(ground.openstack.clone(), config, cluster, queue.waker());
    let controller = ServiceController::new(
        client,
        Arc::new(provider),
        queue,
        options,
        ground.nodes,
        ground.registry,
        ground.work_queues,
    );
    (controller, poller)
}

/// The controller at work.
pub(crate) fn controller(ground: &mut Ground<'_>, options: &ServiceControllerOptions) -> Controller {
    let (controller, poller) = build(ground, options);
    let mut synced = controller.caches_synced();
    Controller {
        name: "service-lb-controller",
        listed: Box::pin(async move { synced.wait().await }),
        work: Box::new(|stop| {
            Box::pin(async move {
                tokio::select! {
                    result = controller.run(stop) => result,
                    // Both end with this future: running passes may still wait for the poller after the stop.
                    () = poller.run(CancellationToken::new()) => Ok(()),
                }
            })
        }),
    }
}

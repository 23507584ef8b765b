//! The service controller over Octavia.

use std::sync::Arc;

use openstack_ccm_controllers::service::{ServiceController, ServiceControllerOptions, ServiceQueue};
use openstack_ccm_provider_openstack::load_balancer::names::ClusterIdentity;
use openstack_ccm_provider_openstack::load_balancer::poller::Poller;
use openstack_ccm_provider_openstack::load_balancer::{OpenStackLoadBalancers, annotations};
use tokio_util::sync::CancellationToken;

use super::Controller;
use super::context::ControllerContext;
use crate::args::controllers::ControllerName;
use crate::creation_metrics;

/// The controller with what belongs to it.
pub(crate) struct ServiceParts {
    pub(crate) controller: ServiceController,
    /// Has to run beside the controller.
    pub(crate) poller: Poller,
    pub(crate) provider: Arc<OpenStackLoadBalancers>,
}

/// Puts the controller together.
pub(crate) fn build(context: &mut ControllerContext<'_>, options: &ServiceControllerOptions) -> ServiceParts {
    let config = Arc::clone(&context.config);
    let queue = ServiceQueue::new();
    let cluster = ClusterIdentity { name: context.cluster_name.clone(), uid: context.cluster_uid.clone() };
    let options = ServiceControllerOptions {
        node_selector_annotation: Some(annotations::NODE_SELECTOR.key.to_owned()),
        node_selector: config.load_balancer.node_selector.clone(),
        resync: Some(config.load_balancer.drift_check_interval).filter(|interval| !interval.is_zero()),
        ..options.clone()
    };
    let client = context.clients.of(ControllerName::ServiceLb);
    let (provider, poller) =
        OpenStackLoadBalancers::new(context.openstack.clone(), config, cluster, queue.waker());
    let provider = Arc::new(provider);
    creation_metrics::register(provider.creations(), context.registry);
    let controller = ServiceController::new(
        client,
        Arc::clone(&provider) as _,
        queue,
        options,
        context.nodes,
        context.registry,
        context.work_queues,
    );
    ServiceParts { controller, poller, provider }
}

/// The controller at work.
pub(crate) fn at_work(parts: ServiceParts) -> Controller {
    let ServiceParts { controller, poller, provider: _ } = parts;
    let mut synced = controller.caches_synced();
    Controller {
        name: "service-lb-controller",
        listed: Box::pin(async move { synced.wait().await }),
        work: Box::new(|stop| {
            Box::pin(async move {
                tokio::select! {
                    result = controller.run(stop) => result,
                    // Both end with this future: running reconciliations may still wait for the poller after the stop.
                    () = poller.run(CancellationToken::new()) => Ok(()),
                }
            })
        }),
    }
}

//! The service controller over the load balancers of the cloud.

use std::sync::Arc;

use openstack_ccm_controllers::service::{ServiceController, ServiceControllerOptions, ServiceQueue};
use openstack_ccm_core::cloud::{Background, LoadBalancing};
use openstack_ccm_core::provider::LoadBalancers;

use super::Controller;
use super::context::ControllerContext;
use crate::args::controllers::ControllerName;
use crate::provider_metrics;

/// The controller with what belongs to it.
pub(crate) struct ServiceParts {
    pub(crate) controller: ServiceController,
    /// Has to run beside the controller.
    pub(crate) background: Background,
    pub(crate) load_balancers: Arc<dyn LoadBalancers>,
}

/// Puts the controller together.
pub(crate) fn build(context: &mut ControllerContext<'_>, options: &ServiceControllerOptions) -> ServiceParts {
    let queue = ServiceQueue::new();
    let LoadBalancing {
        load_balancers,
        background,
        node_selector_annotation,
        node_selector,
        drift_check_interval,
    } = context.cloud.load_balancers(context.cluster.clone(), queue.waker());
    let options = ServiceControllerOptions {
        node_selector_annotation,
        node_selector,
        resync: drift_check_interval,
        ..options.clone()
    };
    provider_metrics::register(&load_balancers, context.registry);
    let controller = ServiceController::new(
        context.clients.of(ControllerName::ServiceLb),
        Arc::clone(&load_balancers),
        queue,
        options,
        context.nodes,
        context.registry,
        context.work_queues,
    );
    ServiceParts { controller, background, load_balancers }
}

/// The controller at work.
pub(crate) fn at_work(parts: ServiceParts) -> Controller {
    let ServiceParts { controller, background, load_balancers: _ } = parts;
    Controller {
        name: "service-lb-controller",
        listed: Box::pin(controller.listed()),
        work: Box::new(|stop| {
            Box::pin(async move {
                tokio::select! {
                    result = controller.run(stop) => result,
                    // Both end with this future: running reconciliations may still wait for the provider after the stop.
                    () = background => Ok(()),
                }
            })
        }),
    }
}

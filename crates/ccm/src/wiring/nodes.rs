//! The node controllers over the machines of the cloud.

use std::sync::Arc;

use openstack_ccm_controllers::node::{NodeController, NodeControllerOptions};
use openstack_ccm_controllers::node_lifecycle::{NodeLifecycleController, NodeLifecycleOptions};
use openstack_ccm_core::instance::Instances;

use super::Controller;
use super::context::ControllerContext;
use crate::args::controllers::ControllerName;

/// Puts the node controller together.
pub(crate) fn build_node(
    context: &mut ControllerContext<'_>,
    instances: Arc<dyn Instances>,
    options: NodeControllerOptions,
) -> NodeController {
    let client = context.clients.of(ControllerName::CloudNode);
    NodeController::new(client, instances, options, context.nodes, context.registry, context.work_queues)
}

/// The node controller at work.
pub(crate) fn node_at_work(controller: NodeController) -> Controller {
    Controller {
        name: ControllerName::CloudNode.canonical(),
        listed: Box::pin(controller.listed()),
        work: Box::new(|stop| Box::pin(controller.run(stop))),
    }
}

/// Puts the node lifecycle controller together.
pub(crate) fn build_lifecycle(
    context: &mut ControllerContext<'_>,
    instances: Arc<dyn Instances>,
    options: NodeLifecycleOptions,
) -> NodeLifecycleController {
    let client = context.clients.of(ControllerName::CloudNodeLifecycle);
    NodeLifecycleController::new(client, instances, options, context.nodes, context.registry)
}

/// The node lifecycle controller at work.
pub(crate) fn lifecycle_at_work(controller: NodeLifecycleController) -> Controller {
    Controller {
        name: ControllerName::CloudNodeLifecycle.canonical(),
        listed: Box::pin(controller.listed()),
        work: Box::new(|stop| Box::pin(controller.run(stop))),
    }
}

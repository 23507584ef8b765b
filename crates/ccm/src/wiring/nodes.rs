//! The node controllers over Nova and Neutron.

use std::sync::Arc;

use openstack_ccm_controllers::node::{NodeController, NodeControllerOptions};
use openstack_ccm_controllers::node_lifecycle::{NodeLifecycleController, NodeLifecycleOptions};
use openstack_ccm_core::instance::Instances;

use super::Controller;
use crate::args::controllers::ControllerName;
use crate::program::Ground;

/// Puts the node controller together.
pub(crate) fn build_node(
    ground: &mut Ground<'_>,
    instances: Arc<dyn Instances>,
    options: NodeControllerOptions,
) -> NodeController {
    let client = ground.clients.of(ControllerName::CloudNode);
    NodeController::new(client, instances, options, ground.nodes, ground.registry, ground.work_queues)
}

/// The node controller at work.
pub(crate) fn node(
    ground: &mut Ground<'_>,
    instances: Arc<dyn Instances>,
    options: NodeControllerOptions,
) -> Controller {
    let controller = build_node(ground, instances, options);
    Controller {
        name: ControllerName::CloudNode.canonical(),
        listed: Box::pin(controller.listed()),
        work: Box::new(|stop| Box::pin(controller.run(stop))),
    }
}

/// Puts the node lifecycle controller together.
pub(crate) fn build_lifecycle(
    ground: &mut Ground<'_>,
    instances: Arc<dyn Instances>,
    options: NodeLifecycleOptions,
) -> NodeLifecycleController {
    let client = ground.clients.of(ControllerName::CloudNodeLifecycle);
    NodeLifecycleController::new(client, instances, options, ground.nodes, ground.registry)
}

/// The node lifecycle controller at work.
pub(crate) fn lifecycle(
    ground: &mut Ground<'_>,
    instances: Arc<dyn Instances>,
    options: NodeLifecycleOptions,
) -> Controller {
    let controller = build_lifecycle(ground, instances, options);
    Controller {
        name: ControllerName::CloudNodeLifecycle.canonical(),
        listed: Box::pin(controller.listed()),
        work: Box::new(|stop| Box::pin(controller.run(stop))),
    }
}

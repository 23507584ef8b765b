//! The node controllers over Nova and Neutron.

use std::sync::Arc;

use openstack_ccm_controllers::node::{NodeController, NodeControllerOptions};
use openstack_ccm_controllers::node_lifecycle::{NodeLifecycleController, NodeLifecycleOptions};
use openstack_ccm_core::instance::Instances;

use super::Controller;
use crate::args::controllers::ControllerName;
use crate::program::Ground;

/// Puts the node controller together.
pub(crate) fn node(
    ground: &mut Ground<'_>,
    instances: Arc<dyn Instances>,
    options: NodeControllerOptions,
) -> Controller {
    let client = ground.clients.of(ControllerName::CloudNode);
    let controller =
        NodeController::new(client, instances, options, ground.nodes, ground.registry, ground.work_queues);
    Controller {
        name: ControllerName::CloudNode.canonical(),
        listed: Box::pin(controller.listed()),
        work: Box::new(|stop| Box::pin(controller.run(stop))),
    }
}

/// Puts the node lifecycle controller together.
pub(crate) fn lifecycle(
    ground: &mut Ground<'_>,
    instances: Arc<dyn Instances>,
    options: NodeLifecycleOptions,
) -> Controller {
    let client = ground.clients.of(ControllerName::CloudNodeLifecycle);
    let controller = NodeLifecycleController::new(client, instances, options, ground.nodes, ground.registry);
    Controller {
        name: ControllerName::CloudNodeLifecycle.canonical(),
        listed: Box::pin(controller.listed()),
        work: Box::new(|stop| Box::pin(controller.run(stop))),
    }
}

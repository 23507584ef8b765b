//! The route controller over Neutron.

use std::sync::Arc;

use openstack_ccm_controllers::route::{RouteController, RouteControllerOptions};
use openstack_ccm_provider_openstack::routes::OpenStackRoutes;

use super::Controller;
use crate::program::Ground;

/// Puts the controller together.
pub(crate) fn controller(ground: &mut Ground<'_>, options: &RouteControllerOptions) -> Controller {
    let provider = Arc::new(OpenStackRoutes::new(&ground.openstack, &ground.config));
    let controller = RouteController::new(ground.client.clone(), provider, options.clone(), ground.registry);
    Controller {
        name: "node-route-controller",
        listed: Box::pin(controller.listed()),
        work: Box::new(|stop| Box::pin(controller.run(stop))),
    }
}

//! Which controllers run, and their settings.

use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_controllers::route::RouteControllerOptions;
use openstack_ccm_controllers::service::ServiceControllerOptions;

use crate::args::controllers::ControllerName;

/// What the command line says about the controllers. One that is absent does not run.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    /// `--cluster-name`
    pub cluster_name: String,
    /// Settings of the service controller.
    pub service: Option<ServiceControllerOptions>,
    /// Settings of the route controller.
    pub route: Option<RouteControllerOptions>,
    /// Settings of the node controller.
    pub node: Option<NodeControllerOptions>,
    /// Settings of the node lifecycle controller.
    pub node_lifecycle: Option<NodeLifecycleOptions>,
}

impl Default for ProgramOptions {
    /// No controller.
    fn default() -> Self {
        Self {
            cluster_name: "kubernetes".to_owned(),
            service: None,
            route: None,
            node: None,
            node_lifecycle: None,
        }
    }
}

impl ProgramOptions {
    /// Whether a controller is to run.
    pub fn runs(&self, controller: ControllerName) -> bool {
        match controller {
            ControllerName::ServiceLb => self.service.is_some(),
            ControllerName::NodeRoute => self.route.is_some(),
            ControllerName::CloudNode => self.node.is_some(),
            ControllerName::CloudNodeLifecycle => self.node_lifecycle.is_some(),
        }
    }

    /// Canonical names of the controllers that are to run.
    pub fn names(&self) -> Vec<String> {
        let run = ControllerName::ALL.into_iter().filter(|controller| self.runs(*controller));
        run.map(|controller| controller.canonical().to_owned()).collect()
    }

    /// The same with some controllers only.
    #[must_use]
    pub fn only(&self, chosen: impl Fn(ControllerName) -> bool) -> Self {
        let Self { cluster_name, service, route, node, node_lifecycle } = self.clone();
        Self {
            cluster_name,
            service: service.filter(|_| chosen(ControllerName::ServiceLb)),
            route: route.filter(|_| chosen(ControllerName::NodeRoute)),
            node: node.filter(|_| chosen(ControllerName::CloudNode)),
            node_lifecycle: node_lifecycle.filter(|_| chosen(ControllerName::CloudNodeLifecycle)),
        }
    }
}

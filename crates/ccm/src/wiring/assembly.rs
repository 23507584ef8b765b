//! All controllers over the cloud: the same at work and on a dry run.

use openstack_ccm_controllers::WorkQueues;
use openstack_ccm_controllers::node::NodeController;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleController;
use openstack_ccm_controllers::nodes::NodeInformer;
use openstack_ccm_controllers::route::RouteController;
use openstack_ccm_core::cloud::{Cloud, ClusterIdentity};
use prometheus_client::registry::Registry;

use super::ProgramOptions;
use super::context::ControllerContext;
use super::service::ServiceParts;
use super::{nodes, route, service};
use crate::kubernetes::ControllerClients;

/// The controllers that the options name, and the watch of nodes that they share.
pub(crate) struct Assembly {
    pub(crate) nodes: NodeInformer,
    pub(crate) service: Option<ServiceParts>,
    pub(crate) route: Option<RouteController>,
    pub(crate) node: Option<NodeController>,
    pub(crate) node_lifecycle: Option<NodeLifecycleController>,
}

impl Assembly {
    /// Puts them together; `cluster_uid` is the uid of the namespace kube-system.
    pub(crate) fn new(
        clients: ControllerClients,
        cloud: &dyn Cloud,
        cluster_uid: String,
        options: ProgramOptions,
        registry: &mut Registry,
        work_queues: &WorkQueues,
    ) -> Self {
        let ProgramOptions {
            cluster_name,
            service: service_options,
            route: route_options,
            node,
            node_lifecycle,
        } = options;
        let instances = cloud.instances();
        let mut informer = NodeInformer::new(clients.shared().clone());
        let mut context = ControllerContext {
            clients,
            cloud,
            cluster: ClusterIdentity { name: cluster_name, uid: cluster_uid },
            nodes: &mut informer,
            registry,
            work_queues,
        };
        let service = service_options.map(|options| service::build(&mut context, &options));
        let route = route_options.map(|options| route::build(&mut context, &options));
        let node = instances.clone().zip(node);
        let node = node.map(|(instances, options)| nodes::build_node(&mut context, instances, options));
        let node_lifecycle = instances.zip(node_lifecycle);
        let node_lifecycle = node_lifecycle
            .map(|(instances, options)| nodes::build_lifecycle(&mut context, instances, options));
        Self { nodes: informer, service, route, node, node_lifecycle }
    }
}

//! What every controller is put together from.

use std::sync::Arc;

use openstack_ccm_controllers::WorkQueues;
use openstack_ccm_controllers::nodes::NodeInformer;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_provider_openstack::config::Config;
use prometheus_client::registry::Registry;

use crate::kubernetes::ControllerClients;

/// What every controller is put together from.
pub(crate) struct ControllerContext<'a> {
    pub(crate) clients: ControllerClients,
    pub(crate) openstack: OpenStack,
    pub(crate) config: Arc<Config>,
    pub(crate) cluster_name: String,
    /// The uid of the namespace kube-system.
    pub(crate) cluster_uid: String,
    /// The watch of nodes that all share.
    pub(crate) nodes: &'a mut NodeInformer,
    pub(crate) registry: &'a mut Registry,
    /// Where the queues of all controllers are shown.
    pub(crate) work_queues: &'a WorkQueues,
}

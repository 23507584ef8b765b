//! What every controller is put together from.

use openstack_ccm_controllers::WorkQueues;
use openstack_ccm_controllers::nodes::NodeInformer;
use openstack_ccm_core::cloud::{Cloud, ClusterIdentity};
use prometheus_client::registry::Registry;

use crate::kubernetes::ControllerClients;

/// What every controller is put together from.
pub(crate) struct ControllerContext<'a> {
    pub(crate) clients: ControllerClients,
    pub(crate) cloud: &'a dyn Cloud,
    pub(crate) cluster: ClusterIdentity,
    /// The watch of nodes that all share.
    pub(crate) nodes: &'a mut NodeInformer,
    pub(crate) registry: &'a mut Registry,
    /// Where the queues of all controllers are shown.
    pub(crate) work_queues: &'a WorkQueues,
}

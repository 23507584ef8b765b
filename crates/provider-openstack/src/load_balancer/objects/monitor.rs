//! Health monitors: their comparable attributes.

use openstack_ccm_openstack_api::octavia::{HealthMonitorType, HttpCheck, MonitorAttributes};

use super::Tags;

/// A health monitor as it is created.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MonitorSpec {
    /// Name. Not compared: children keep the name, and the index in it, from their creation.
    pub(crate) name: String,
    /// Type of the check. Cannot be changed.
    pub(crate) kind: HealthMonitorType,
    pub(crate) attributes: MonitorAttributes,
    /// Minimum tags. Empty where Octavia has no tags.
    pub(crate) tags: Tags,
}

/// The check of `spec.healthCheckNodePort`: the service proxy answers 200 where the node has a ready endpoint.
pub(crate) fn health_check_node_port() -> HttpCheck {
    HttpCheck::get("/healthz")
}

//! The names under which the controllers act: who says an Event (`source.component`), as the framework's controllers are known, and who
//! writes.

pub(crate) const SERVICE_CONTROLLER: &str = "service-controller";

pub(crate) const NODE_CONTROLLER: &str = "cloud-node-controller";

pub(crate) const NODE_LIFECYCLE_CONTROLLER: &str = "cloud-node-lifecycle-controller";

/// Who the API server notes as the manager of what is written (`metadata.managedFields`).
pub(crate) const FIELD_MANAGER: &str = "openstack-ccm";

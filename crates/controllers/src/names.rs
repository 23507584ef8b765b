//! The names under which the controllers act: the source of Events (`source.component`), as in the framework's controllers, and the
//! field manager.

pub(crate) const SERVICE_CONTROLLER: &str = "service-controller";

pub(crate) const NODE_CONTROLLER: &str = "cloud-node-controller";

pub(crate) const NODE_LIFECYCLE_CONTROLLER: &str = "cloud-node-lifecycle-controller";

/// The field manager that the API server notes for writes (`metadata.managedFields`).
pub(crate) const FIELD_MANAGER: &str = "openstack-ccm";

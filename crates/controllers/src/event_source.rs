//! Who says an Event (`source.component`), as the framework's controllers are known.

/// The service controller.
pub(crate) const SERVICE_CONTROLLER: &str = "service-controller";

/// The node controller.
pub(crate) const NODE_CONTROLLER: &str = "cloud-node-controller";

/// The node lifecycle controller.
pub(crate) const NODE_LIFECYCLE_CONTROLLER: &str = "cloud-node-lifecycle-controller";

//! Taints that the node controllers set and lift.

/// Set by a kubelet that waits for a cloud provider; recognised by its key alone.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Set on a node whose machine is shut down, with effect [`NO_SCHEDULE`] and without a value.
pub const SHUT_DOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// The effect that keeps new pods off a node.
pub const NO_SCHEDULE: &str = "NoSchedule";

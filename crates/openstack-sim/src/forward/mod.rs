//! Real forwarding: what an ACTIVE listener of a load balancer does with connections.

/// The state of forwarding: off until started.
#[derive(Debug, Default)]
pub(crate) struct Forwarding {}

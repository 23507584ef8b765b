//! What decides about a load balancer in ERROR, apart from the load balancer itself.

use crate::config::ErrorRecovery;

/// What decides about a load balancer in ERROR, as far as Octavia does not show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Recovery {
    /// `error-recovery`: the operator's choice.
    pub(crate) choice: ErrorRecovery,
    /// Whether the Service's `reclaim-policy` is not `delete`.
    pub(crate) retained: bool,
    /// Whether the Service records that this load balancer was ready.
    pub(crate) was_ready: bool,
    /// Whether the Service's status has an address, of this load balancer or of an earlier one.
    pub(crate) was_published: bool,
    /// The result of the failover request.
    pub(crate) failover: Failover,
    /// Why no load balancer is replaced now.
    pub(crate) no_replacement: Option<String>,
}

/// The result of a failover request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Failover {
    /// Failover has not been requested.
    #[default]
    NotAsked,
    /// Failover has been requested.
    Asked,
    /// Octavia refused, with this message.
    Refused(String),
}

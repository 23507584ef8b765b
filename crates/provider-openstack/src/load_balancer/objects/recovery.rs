//! What is known apart from the load balancer itself when it is in ERROR.

use crate::config::ErrorRecovery;

/// What decides about a load balancer in ERROR, as far as Octavia does not show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Recovery {
    /// `error-recovery`: the choice of the operator.
    pub(crate) choice: ErrorRecovery,
    /// Whether the Service's `reclaim-policy` is anything but `delete`.
    pub(crate) retained: bool,
    /// Whether the Service says that this load balancer was ready once.
    pub(crate) was_ready: bool,
    /// Whether the Service's status shows an address, be it of this load balancer or of one before it.
    pub(crate) was_published: bool,
    /// What became of the request to fail it over.
    pub(crate) failover: Failover,
    /// Why no load balancer is replaced at present.
    pub(crate) no_replacement: Option<String>,
}

/// What became of the request to fail a load balancer over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Failover {
    /// Octavia has not been asked.
    #[default]
    NotAsked,
    /// Octavia has been asked.
    Asked,
    /// Octavia refused, and said this.
    Refused(String),
}

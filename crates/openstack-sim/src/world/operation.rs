//! Work that Octavia has accepted and not finished: the reason why objects are PENDING.

use std::time::Duration;

use crate::octavia::capacity::JobId;

/// What kind of work it is. Delays, holds and failures are chosen by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// A load balancer with everything that was nested in its POST is built.
    LoadBalancerCreate,
    /// A load balancer's own attributes change.
    LoadBalancerUpdate,
    /// A load balancer goes, with its children where `cascade` was asked for.
    LoadBalancerDelete,
    /// An administrator's failover.
    LoadBalancerFailover,
    /// A listener is added.
    ListenerCreate,
    /// A listener changes.
    ListenerUpdate,
    /// A listener goes.
    ListenerDelete,
    /// A pool is added.
    PoolCreate,
    /// A pool changes.
    PoolUpdate,
    /// A pool goes with its members and its monitor.
    PoolDelete,
    /// `PUT /pools/ID/members`.
    MemberBatch,
    /// A single member is added.
    MemberCreate,
    /// A single member changes.
    MemberUpdate,
    /// A single member goes.
    MemberDelete,
    /// A health monitor is added.
    HealthMonitorCreate,
    /// A health monitor changes.
    HealthMonitorUpdate,
    /// A health monitor goes.
    HealthMonitorDelete,
}

impl OperationKind {
    /// All kinds.
    pub const ALL: [Self; 17] = [
        Self::LoadBalancerCreate,
        Self::LoadBalancerUpdate,
        Self::LoadBalancerDelete,
        Self::LoadBalancerFailover,
        Self::ListenerCreate,
        Self::ListenerUpdate,
        Self::ListenerDelete,
        Self::PoolCreate,
        Self::PoolUpdate,
        Self::PoolDelete,
        Self::MemberBatch,
        Self::MemberCreate,
        Self::MemberUpdate,
        Self::MemberDelete,
        Self::HealthMonitorCreate,
        Self::HealthMonitorUpdate,
        Self::HealthMonitorDelete,
    ];
}

/// One accepted piece of work.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) kind: OperationKind,
    /// The load balancer that is locked by it.
    pub(crate) load_balancer_id: String,
    /// The object that changes: the load balancer itself, a listener, a pool (for member batches too), a member, a monitor.
    pub(crate) target_id: String,
    /// When it is finished, unless something holds it.
    pub(crate) due: Duration,
    /// The work that has to be done first, where Octavia cannot do everything at once.
    pub(crate) job: Option<JobId>,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As asked.
    Done,
    /// The worker gave up.
    Failed,
}

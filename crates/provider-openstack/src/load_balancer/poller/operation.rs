//! What Octavia can be at work on, and what comes after it.

/// What Octavia is at work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::load_balancer) enum Operation {
    /// A new load balancer.
    Creation,
    /// The end of one.
    Deletion,
    /// A change of the load balancer itself.
    LoadBalancer,
    /// A listener: of all changes this takes longest.
    Listener,
    /// A pool.
    Pool,
    /// The members of a pool.
    Members,
    /// A health monitor.
    Monitor,
}

/// What a Service does once Octavia has ended its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::load_balancer) enum Afterwards {
    /// It sees what became of it.
    #[default]
    Look,
    /// It sends the next step of its plan, which relies on nothing that was not confirmed. If that is too early, Octavia refuses it, and
    /// nothing else happens.
    Write,
    /// Nothing: what was sent is confirmed later.
    Nothing,
}

impl Operation {
    /// Whether the load balancer is there before and after it.
    pub(super) fn is_change(self) -> bool {
        match self {
            Self::Creation | Self::Deletion => false,
            Self::LoadBalancer | Self::Listener | Self::Pool | Self::Members | Self::Monitor => true,
        }
    }
}

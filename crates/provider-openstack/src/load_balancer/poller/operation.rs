//! What Octavia can be at work on.

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

impl Operation {
    /// Whether the load balancer is there before and after it.
    pub(super) fn is_change(self) -> bool {
        match self {
            Self::Creation | Self::Deletion => false,
            Self::LoadBalancer | Self::Listener | Self::Pool | Self::Members | Self::Monitor => true,
        }
    }
}

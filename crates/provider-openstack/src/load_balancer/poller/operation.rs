//! What Octavia can be at work on.

use std::time::Duration;

/// What Octavia is at work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::load_balancer) enum Operation {
    /// A new load balancer, or one that is failed over.
    Creation,
    /// The end of one.
    Deletion,
    /// A change of the load balancer itself.
    LoadBalancer,
    /// A listener: of all changes this takes longest.
    Listener,
    Pool,
    /// The members of a pool.
    Members,
    /// A health monitor.
    Monitor,
}

impl Operation {
    /// When to look first. An amphora takes half a minute and more to boot; a change is mostly done after a second or two.
    pub(super) fn first_look(self) -> Duration {
        match self {
            Self::Creation => Duration::from_secs(4),
            Self::Deletion | Self::Listener => Duration::from_secs(2),
            Self::LoadBalancer | Self::Pool | Self::Members | Self::Monitor => Duration::from_secs(1),
        }
    }
}

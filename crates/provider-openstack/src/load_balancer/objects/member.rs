//! Members of pools.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Identifies a member in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MemberKey {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
}

impl fmt::Display for MemberKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.address, self.port).fmt(f)
    }
}

/// A member with all its attributes, since a batch resets missing ones to their defaults.
///
/// Key, name and `monitor_port` are compared. Subnet, `monitor_address`, weight, `backup` and `admin_state_up` of an existing
/// member belong to an administrator and are kept.
///
/// Shared between desired and observed state, plans and requests: copies of a thousand members for each changed load balancer would
/// be most of the memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    /// Name of the node.
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// Subnet through which the load balancer reaches the member; fixed at creation.
    pub(crate) subnet_id: Option<Arc<str>>,
    /// Port to check, if not `port`.
    pub(crate) monitor_port: Option<u16>,
    /// Address to check, if not `address`.
    pub(crate) monitor_address: Option<IpAddr>,
    /// Share of the connections; a member with weight 0 gets no new ones.
    pub(crate) weight: u16,
    /// Whether the member is used only when all others fail.
    pub(crate) backup: bool,
    /// Whether the member is used at all.
    pub(crate) admin_state_up: bool,
}

impl Member {
    pub(crate) fn key(&self) -> MemberKey {
        MemberKey { address: self.address, port: self.port }
    }
}

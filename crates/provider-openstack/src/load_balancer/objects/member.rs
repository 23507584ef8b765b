//! Members of pools.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::load_balancer::names;

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
/// member belong to an administrator and are kept, all but the subnet as long as the same machine has the address.
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

    /// Returns the member with what an administrator set on its machine when that was the member `before`.
    pub(crate) fn inheriting(self, before: &Self) -> Self {
        let Self { monitor_address, weight, backup, admin_state_up, .. } = *before;
        Self { monitor_address, weight, backup, admin_state_up, ..self }
    }

    /// Returns whether the member of this address was made for another Node. Names of serial mode, and any other text that names no
    /// Node, say nothing about the machine.
    pub(crate) fn is_of_another_node(&self, now: &Self) -> bool {
        let [before, now] = [&self.name, &now.name];
        before != now && names::is_object_name(before) && names::is_object_name(now)
    }

    /// Returns whether the member takes new connections, as far as that was set.
    pub(crate) fn takes_connections(&self) -> bool {
        self.weight > 0 && self.admin_state_up
    }
}

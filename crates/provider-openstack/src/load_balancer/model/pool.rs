//! Pools: their comparable attributes.

use openstack_ccm_openstack_api::octavia::{LbAlgorithm, PoolProtocol, SessionPersistenceType};

use super::Tags;

/// A pool as it is created, without members and monitor: Octavia accepts those only in the tree of a new load
/// balancer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolSpec {
    /// Name. Not compared, except to find a pool again that hangs on no listener yet.
    pub name: String,
    /// Protocol. Cannot be changed.
    pub protocol: PoolProtocol,
    /// What can be changed.
    pub attributes: PoolAttributes,
    /// Tags that it carries at least. Empty where Octavia has no tags.
    pub tags: Tags,
}

/// The attributes of a pool that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolAttributes {
    /// How it chooses a member.
    pub lb_algorithm: LbAlgorithm,
    /// What ties a client to a member. Cookie names and the timeouts of UDP are not managed.
    pub session_persistence: Option<SessionPersistenceType>,
}

//! Pools: their comparable attributes.

use std::fmt;

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
    /// What ties a client to a member.
    pub session_persistence: Option<Persistence>,
}

/// What ties a client to a member. Cookie names and masks of addresses are not managed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Persistence {
    /// What the load balancer goes by.
    pub kind: SessionPersistenceType,
    /// Longest silence of a client, in seconds. Octavia takes one for datagrams only. In what is wanted, absent means
    /// that it is not managed.
    pub timeout: Option<u32>,
}

impl Persistence {
    /// Whether what is there is what is wanted.
    pub fn satisfies(&self, wanted: &Self) -> bool {
        self.kind == wanted.kind && (wanted.timeout.is_none() || self.timeout == wanted.timeout)
    }
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        self.timeout.map_or(Ok(()), |timeout| write!(f, " for {timeout} s"))
    }
}

//! Pools: their comparable attributes.

use std::fmt;

use openstack_ccm_openstack_api::octavia::{
    LbAlgorithm, PoolProtocol, SessionPersistence, SessionPersistenceType,
};

use super::Tags;

/// A pool as it is created, without members and monitor: Octavia accepts those only in the tree of a new load
/// balancer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolSpec {
    /// Name. Not compared, except to find a pool again that no listener uses yet.
    pub(crate) name: String,
    /// Protocol. Cannot be changed.
    pub(crate) protocol: PoolProtocol,
    pub(crate) attributes: PoolAttributes,
    /// Tags that it carries at least. Empty where Octavia has no tags.
    pub(crate) tags: Tags,
}

/// The attributes of a pool that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolAttributes {
    /// How it chooses a member.
    pub(crate) lb_algorithm: LbAlgorithm,
    /// What ties a client to a member.
    pub(crate) session_persistence: Option<Persistence>,
}

/// What ties a client to a member. Cookie names and masks of addresses are not managed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Persistence {
    /// What the load balancer goes by.
    pub(crate) kind: SessionPersistenceType,
    /// Longest silence of a client, in seconds. Octavia takes one for datagrams only. In what is wanted, absent means
    /// that it is not managed.
    pub(crate) timeout: Option<u32>,
}

/// Tag of a pool whose session persistence the Service asked for. Octavia shows what somebody set by hand alike: without
/// the tag that would be taken for ours, and cleared.
const PERSISTENCE_SET_HERE: &str = "openstack-ccm-sets=session-persistence";

/// Tag of a pool that has a health monitor although only new load balancers get one: a monitor has to go before one of another type comes,
/// and nothing else shows meanwhile that there was one.
pub(crate) const MONITORED: &str = "openstack-ccm-sets=health-monitor";

impl PoolAttributes {
    /// The tags that record which of these attributes were set here, and so may be taken back here.
    pub(crate) fn set_here(&self) -> Tags {
        self.session_persistence.iter().map(|_| PERSISTENCE_SET_HERE.to_owned()).collect()
    }
}

/// Tags that record an attribute as set by this program although it is not wanted any more.
pub(crate) fn stale(observed: &Tags, wanted: &Tags) -> Tags {
    let is_stale = |tag: &&String| *tag == PERSISTENCE_SET_HERE && !wanted.contains(*tag);
    observed.iter().filter(is_stale).cloned().collect()
}

impl Persistence {
    /// What Octavia shows.
    pub(crate) fn of(seen: &SessionPersistence) -> Self {
        Self { kind: seen.kind.clone(), timeout: seen.persistence_timeout }
    }

    /// What Octavia is asked for.
    pub(crate) fn request(&self) -> SessionPersistence {
        let Self { kind, timeout } = self;
        SessionPersistence { kind: kind.clone(), persistence_timeout: *timeout }
    }

    pub(crate) fn satisfies(&self, wanted: &Self) -> bool {
        self.kind == wanted.kind && (wanted.timeout.is_none() || self.timeout == wanted.timeout)
    }
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        self.timeout.map_or(Ok(()), |timeout| write!(f, " for {timeout} s"))
    }
}

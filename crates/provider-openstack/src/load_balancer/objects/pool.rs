//! Pools: their comparable attributes.

use std::fmt;

use openstack_ccm_openstack_api::octavia::{
    LbAlgorithm, PoolProtocol, SessionPersistence, SessionPersistenceType,
};

use super::Tags;

/// A pool as it is created, without members and monitor: Octavia accepts those only together with a new load balancer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolSpec {
    /// Name. Compared only to recognise a pool that no listener uses yet.
    pub(crate) name: String,
    /// Protocol. Cannot be changed.
    pub(crate) protocol: PoolProtocol,
    pub(crate) attributes: PoolAttributes,
    /// Minimum tags. Empty where Octavia has no tags.
    pub(crate) tags: Tags,
}

/// The attributes of a pool that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolAttributes {
    /// How the pool chooses a member.
    pub(crate) lb_algorithm: LbAlgorithm,
    /// How clients stay with a member.
    pub(crate) session_persistence: Option<Persistence>,
}

/// How clients stay with a member. Cookie names and address masks are not managed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Persistence {
    /// What identifies a client.
    pub(crate) kind: SessionPersistenceType,
    /// Maximum idle time of a client, in seconds. Octavia accepts it for UDP and SCTP only. An absent desired value is not managed.
    pub(crate) timeout: Option<u32>,
}

/// Tag of a pool whose session persistence the Service asked for. Octavia also shows what other clients set: without the tag that
/// would be taken for ours, and cleared.
const PERSISTENCE_SET_HERE: &str = "openstack-ccm-sets=session-persistence";

/// Tag of a pool that has a health monitor although only new load balancers get one: a monitor is deleted before one of another
/// type is created, and meanwhile only this tag shows that there was one.
pub(crate) const MONITORED: &str = "openstack-ccm-sets=health-monitor";

impl PoolAttributes {
    /// Returns the tags that record which attributes this controller set, and so may clear.
    pub(crate) fn set_here(&self) -> Tags {
        self.session_persistence.iter().map(|_| PERSISTENCE_SET_HERE.to_owned()).collect()
    }
}

/// Returns the tags about attributes that this controller set and that are no longer wanted.
pub(crate) fn stale(observed: &Tags, wanted: &Tags) -> Tags {
    let is_stale = |tag: &&String| *tag == PERSISTENCE_SET_HERE && !wanted.contains(*tag);
    observed.iter().filter(is_stale).cloned().collect()
}

impl Persistence {
    /// Converts Octavia's representation.
    pub(crate) fn of(seen: &SessionPersistence) -> Self {
        Self { kind: seen.kind.clone(), timeout: seen.persistence_timeout }
    }

    /// Converts to Octavia's representation.
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

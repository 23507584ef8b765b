//! Pools: their comparable attributes.

use openstack_ccm_openstack_api::octavia::{PoolAttributes, PoolProtocol};

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

/// Octavia's name of session persistence.
pub(crate) const PERSISTENCE: &str = "session_persistence";

/// Tag of a pool whose session persistence the Service asked for. Octavia also shows what other clients set: without the tag that
/// would be taken for ours, and cleared.
const PERSISTENCE_SET_HERE: &str = "openstack-ccm-sets=session-persistence";

/// Tag of a pool that has a health monitor although only new load balancers get one: a monitor is deleted before one of another
/// type is created, and meanwhile only this tag shows that there was one.
pub(crate) const MONITORED: &str = "openstack-ccm-sets=health-monitor";

/// Returns the tags that record which attributes this controller set, and so may clear.
pub(crate) fn set_here(wanted: &PoolAttributes) -> Tags {
    wanted.session_persistence.iter().map(|_| PERSISTENCE_SET_HERE.to_owned()).collect()
}

/// Returns the tags about attributes that this controller set and that are no longer wanted.
pub(crate) fn stale(observed: &Tags, wanted: &Tags) -> Tags {
    let is_stale = |tag: &&String| *tag == PERSISTENCE_SET_HERE && !wanted.contains(*tag);
    observed.iter().filter(is_stale).cloned().collect()
}

//! What stands for content that is compared and not kept.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use openstack_ccm_core::service::Service;
use serde::{Deserialize, Serialize};

use crate::load_balancer::annotations::{
    CONVERGED_DIGEST, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID,
};
use crate::load_balancer::model::member::{Member, MemberKey};
use crate::load_balancer::model::tree::Desired;

/// 64 bits of a hash. Two that are equal stand for equal content.
///
/// Not stable between versions of the standard library: what is compared across processes holds the version of this
/// program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest(u64);

impl Digest {
    fn of(content: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The members of one pool: thousands of nodes under thousands of Services are too many to keep.
    pub(crate) fn of_members(members: &[Arc<Member>]) -> Self {
        Self::of(members)
    }

    /// Which members a pool has, whatever their attributes. The order does not matter.
    pub(crate) fn of_member_keys(keys: impl IntoIterator<Item = MemberKey>) -> Self {
        Self::of(keys.into_iter().collect::<BTreeSet<_>>())
    }

    /// A Service without what reconciliations write into it.
    pub(crate) fn of_service(service: &Service) -> Self {
        let mut input = Service { published: Vec::new(), is_published: false, ..service.clone() };
        for output in [LOAD_BALANCER_ID, LOAD_BALANCER_ADDRESS, OWNED_LOAD_BALANCER_ID, CONVERGED_DIGEST] {
            input.annotations.remove(output.key);
        }
        Self::of(input)
    }

    /// What a Service wants of a load balancer, and the `updated_at` that the load balancer had when it was so. Octavia sets
    /// `updated_at` with every change of anything on a load balancer, when the change begins and when it ends, failed ones
    /// included: what agreed at one `updated_at` agrees as long as that stands.
    pub(crate) fn of_tree(load_balancer_id: &str, updated_at: &str, desired: &Desired) -> Self {
        // Of the load balancer itself only the tags are compared; floating IPs are listed, and compared with the list.
        let Desired {
            load_balancer,
            listeners,
            floating_ip: _,
            serial: _,
            keeps_members: _,
            recovery: _,
            notices: _,
        } = desired;
        // Other versions of this program may compare more.
        let version = env!("CARGO_PKG_VERSION");
        Self::of((version, load_balancer_id, updated_at, &load_balancer.tags, listeners))
    }
}

/// As it is written into an annotation: 16 hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The digests of the members of one pool.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct MemberDigests {
    /// Of all their attributes.
    pub(super) attributes: Digest,
    /// Of their addresses and ports, which the status tree shows.
    pub(super) keys: Digest,
}

impl MemberDigests {
    pub(super) fn of(members: &[Arc<Member>]) -> Self {
        let keys = Digest::of_member_keys(members.iter().map(|member| member.key()));
        Self { attributes: Digest::of_members(members), keys }
    }
}

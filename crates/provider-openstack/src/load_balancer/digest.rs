//! What stands for content that is compared and not kept.

use std::hash::{DefaultHasher, Hash, Hasher};

use openstack_ccm_core::service::Service;

use crate::load_balancer::annotations::{
    CONVERGED_DIGEST, LOAD_BALANCER_ADDRESS, LOAD_BALANCER_ID, OWNED_LOAD_BALANCER_ID,
};
use crate::load_balancer::model::Desired;
use crate::load_balancer::step::Step;

/// 64 bits of a hash. Two that are equal stand for equal content.
///
/// Not stable between versions of the standard library, and kept in memory only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(u64);

impl Digest {
    fn of(content: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The steps of a plan, as they are shown.
    pub(crate) fn of_steps(steps: &[Step]) -> Self {
        Self::of(steps.iter().map(ToString::to_string).collect::<Vec<_>>())
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
        let Desired { load_balancer, listeners, metrics, .. } = desired;
        Self::of((load_balancer_id, updated_at, &load_balancer.tags, listeners, metrics))
    }
}

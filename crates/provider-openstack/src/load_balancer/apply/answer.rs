//! What Octavia's answer to a step shows.

use openstack_ccm_openstack_api::octavia::CreatedLoadBalancer;

/// What is there from now on, as far as only the answer tells.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The load balancer that was made, with the ids of all its children.
    LoadBalancer(Box<CreatedLoadBalancer>),
    /// Id of the listener, pool or health monitor that was made.
    Child(String),
    /// Nothing that the step does not say.
    Nothing,
}

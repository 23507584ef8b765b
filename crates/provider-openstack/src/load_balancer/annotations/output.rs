//! Annotations that this program writes for itself.

use super::kind::{Annotation, Form, Since, USUAL};

/// Whether the load balancer was made for the Service.
pub const OWNED_LOAD_BALANCER_ID: Annotation = Annotation {
    key: "loadbalancer.openstack.org/owned-load-balancer-id",
    form: Form::Output("UUID of a load balancer, or `none`"),
    effect: "The load balancer that was made for the Service, or adopted; `none` where it uses one that was made for somebody else. When the load balancer of `load-balancer-id` is gone, this tells whether a new one may be made.",
    since: Since::Version("0.1.0"),
    ..USUAL
};

/// What everything agreed with, and when.
pub const CONVERGED_DIGEST: Annotation = Annotation {
    key: "loadbalancer.openstack.org/settled",
    form: Form::Output("16 hexadecimal digits"),
    effect: "A digest of what the Service wanted when its load balancer last agreed with it, and of the load balancer's `updated_at` then. While both stand, a start of the controller reads nothing of the load balancer but its entry in the list. Removing it costs a few reads.",
    since: Since::Version("0.1.0"),
    ..USUAL
};

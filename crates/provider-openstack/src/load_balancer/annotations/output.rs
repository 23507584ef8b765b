//! Annotations that this program writes for itself.

use super::kind::{Annotation, AnnotationSource, Form, USUAL};

/// Whether the load balancer was made for the Service.
pub const OWNED_LOAD_BALANCER_ID: Annotation = Annotation {
    key: "loadbalancer.openstack.org/owned-load-balancer-id",
    form: Form::Output("UUID of a load balancer, or `none`"),
    effect: "The load balancer that was created for the Service, or adopted; `none` if the Service uses one that was created for somebody else. If the load balancer in `load-balancer-id` is gone, this says whether a new one may be created.",
    since: AnnotationSource::Version("0.1.0"),
    ..USUAL
};

/// What everything agreed with, and when.
pub const CONVERGED_DIGEST: Annotation = Annotation {
    key: "loadbalancer.openstack.org/settled",
    form: Form::Output("16 hexadecimal digits"),
    effect: "A digest of the Service's settings when its load balancer was last up to date, and of the load balancer's `updated_at` at that time. While both are unchanged, a start of the controller only reads the load balancer's entry in the list. Removing the annotation costs a few reads.",
    since: AnnotationSource::Version("0.1.0"),
    ..USUAL
};

//! A table of all annotations of a Service that have an effect here: key, form, default, effect.
//!
//! The table is the only place with the keys. Settings ([`super::settings`]) use its forms and ranges; the warning about unknown
//! keys and the reference page are generated from it.

mod aspect;
mod extensions;
mod kind;
mod reference;
mod shared;
mod table;

pub use aspect::{Aspect, Aspects, InsertedHeader, Kind};
pub use extensions::*;
pub use kind::{Annotation, AnnotationSource, Change, Empty, Form};
use openstack_ccm_core::provider::AnnotationUse;
pub use reference::reference_markdown;
pub use shared::*;
pub use table::ALL;

/// Keys with this prefix belong to this controller.
pub const PREFIX: &str = "loadbalancer.openstack.org/";

/// Keys with this older prefix belong to it too.
pub const OLD_PREFIX: &str = "service.beta.kubernetes.io/openstack-";

impl Annotation {
    /// Returns the annotation of an attribute.
    pub(crate) fn of(kind: Kind, name: &str) -> Option<&'static Self> {
        ALL.iter().find(|annotation| annotation.aspects.iter().any(|one| one.is_of(kind, name)))
    }
}

/// Returns whether a key is in the table.
pub fn is_known(key: &str) -> bool {
    ALL.iter().any(|annotation| annotation.key == key)
}

/// Returns how this provider uses an annotation with this key.
pub fn use_of(key: &str) -> AnnotationUse {
    if is_known(key) {
        AnnotationUse::Meaning
    } else if is_ours(key) || is_of_ovhcloud(key) {
        AnnotationUse::Message
    } else {
        AnnotationUse::None
    }
}

/// Returns whether a key belongs to the load balancers of OVHcloud's managed Kubernetes, whose clusters often come from there.
pub fn is_of_ovhcloud(key: &str) -> bool {
    ["service.beta.kubernetes.io/ovh-loadbalancer-", "loadbalancer.ovhcloud.com/"]
        .iter()
        .any(|prefix| key.starts_with(prefix))
}

/// Returns whether a key has one of our prefixes, and so should be in the table.
pub fn is_ours(key: &str) -> bool {
    key.starts_with(PREFIX) || key.starts_with(OLD_PREFIX)
}

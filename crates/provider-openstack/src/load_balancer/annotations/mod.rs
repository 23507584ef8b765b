//! All annotations of a Service that mean something here, as one table: key, form, default, effect.
//!
//! The table is the only place where a key is written. Reading ([`super::settings`]) takes forms and ranges from it; the
//! warning about unknown keys and the reference page are made from it.

mod extensions;
mod kind;
mod reference;
mod shared;
mod table;

pub use extensions::*;
pub use kind::{Annotation, AnnotationSource, Change, Empty, Form};
use openstack_ccm_core::provider::AnnotationUse;
pub use reference::reference_markdown;
pub use shared::*;
pub use table::ALL;

/// Keys with this prefix belong to this program.
pub const PREFIX: &str = "loadbalancer.openstack.org/";

/// Keys with this older prefix do so too.
pub const OLD_PREFIX: &str = "service.beta.kubernetes.io/openstack-";

/// Whether a key is in the table.
pub fn is_known(key: &str) -> bool {
    ALL.iter().any(|annotation| annotation.key == key)
}

/// What the key of an annotation is to this provider.
pub fn use_of(key: &str) -> AnnotationUse {
    if is_known(key) {
        AnnotationUse::Meaning
    } else if is_ours(key) {
        AnnotationUse::Message
    } else {
        AnnotationUse::None
    }
}

/// Whether a key would have to be in the table: its prefix is one of ours.
pub fn is_ours(key: &str) -> bool {
    key.starts_with(PREFIX) || key.starts_with(OLD_PREFIX)
}

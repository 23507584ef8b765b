//! Objects from lists and watches: fields that are never read are skipped during decoding.
//!
//! An API server takes objects of 1.5 MiB. 60,000 annotations with names of three letters, and the `managedFields` that list them, fit
//! into one object and take 15 MiB decoded: a limit after decoding comes too late. So this module bounds names and values by
//! bytes, and lists by their number of entries.
//!
//! | module | holds |
//! | --- | --- |
//! | `interest` | which metadata a program reads |
//! | `metadata`, `annotations`, `managers` | `metadata` |
//! | `service`, `node` | these two kinds |
//! | `at_most`, `limits` | lists with a bound, and all bounds |

mod annotations;
mod at_most;
mod interest;
mod limits;
mod managers;
mod metadata;
mod node;
mod service;
#[cfg(test)]
mod tests;

pub use annotations::shortened;
pub use interest::Interest;
pub(crate) use interest::InterestedStream;
pub use limits::{MAX_METADATA_ENTRIES, MAX_PORTS, MAX_SOURCE_RANGES, MAX_VALUES_SIZE};
pub use metadata::{FINALIZER, metadata};
pub use node::Node;
pub use service::Service;

/// Lets a type with a field `metadata` be listed and watched like the type of a kind.
#[macro_export]
macro_rules! listed_as {
    ($listed:ty, $kind:ty) => {
        impl k8s_openapi::Resource for $listed {
            const API_VERSION: &'static str = <$kind as k8s_openapi::Resource>::API_VERSION;
            const GROUP: &'static str = <$kind as k8s_openapi::Resource>::GROUP;
            const KIND: &'static str = <$kind as k8s_openapi::Resource>::KIND;
            const VERSION: &'static str = <$kind as k8s_openapi::Resource>::VERSION;
            const URL_PATH_SEGMENT: &'static str = <$kind as k8s_openapi::Resource>::URL_PATH_SEGMENT;
            type Scope = <$kind as k8s_openapi::Resource>::Scope;
        }

        impl k8s_openapi::Metadata for $listed {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }
    };
}

//! The functions that are fed: those that the tests feed too.

#[path = "../../crates/provider-openstack/tests/any_input/answers.rs"]
mod answers;
#[path = "../../crates/provider-openstack/tests/any_input/entries.rs"]
mod entries;

pub use answers::answers;
pub use entries::{ENTRIES, Entry, annotations, cloud_conf, clouds_yaml, floating_subnet};

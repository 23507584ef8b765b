//! The functions that are fed: those that the tests feed too.

#[path = "../../crates/provider-openstack/tests/any_input/answers.rs"]
mod answers;
#[path = "../../crates/provider-openstack/tests/any_input/entries.rs"]
mod entries;
#[path = "../../crates/doctor/tests/any_input/entries.rs"]
mod rules_of_nodes;

pub use answers::answers;
pub use entries::{ENTRIES, Entry, annotations, cloud_conf, clouds_yaml, floating_subnet};
pub use rules_of_nodes::rules;

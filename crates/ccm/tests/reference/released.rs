//! Since which release there is a flag, an Event or a metric: `released.txt` has a line for each, `VERSION NAME`. What has none is new.

use openstack_ccm_provider_openstack::released::{PROGRAM, developed, marked};

const RELEASED: &str = include_str!("released.txt");
/// The oldest version that the list knows apart from those before it.
const OLDEST: &str = "0.2.0";

/// The names, each with its release.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    RELEASED.lines().filter_map(|line| line.split_once(' ')).map(|(version, name)| (name, version))
}

/// What stands before the meaning of what the oldest version did not have: `Since 0.3.0, not released yet. `
pub(crate) fn since(name: &str) -> String {
    let version = all().find(|(known, _)| *known == name).map_or(developed(PROGRAM), |(_, version)| version);
    if version == OLDEST { String::new() } else { format!("Since {}. ", marked(version, PROGRAM)) }
}

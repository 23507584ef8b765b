//! The version of this program.

use std::sync::LazyLock;

/// The commit that the program was built from; empty where the build does not say (`OPENSTACK_CCM_COMMIT`).
pub const COMMIT: &str = match option_env!("OPENSTACK_CCM_COMMIT") {
    Some(commit) => commit,
    None => "",
};

static VERSION: LazyLock<String> = LazyLock::new(|| match COMMIT {
    "" => env!("CARGO_PKG_VERSION").to_owned(),
    commit => format!("{} (commit {commit})", env!("CARGO_PKG_VERSION")),
});

/// Returns the version, with the commit where it is known: `0.1.0 (commit 0f1e2d3c4b5a)`.
pub fn version() -> &'static str {
    &VERSION
}

//! Each write passes the gate: nobody else has a way to send one.

use std::path::{Path, PathBuf};

use regex::Regex;
use rstest::rstest;

use crate::layers::{files, product};

/// The product files of some crates that match a pattern, relative to `crates`.
fn matching(crates: &[&str], pattern: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = |name: &&str| root.join(name).join("src");
    let all: Vec<PathBuf> = crates.iter().map(folder).flat_map(|folder| files(&folder)).collect();
    let found = all.iter().filter(|file| {
        let name = file.file_name().unwrap().to_string_lossy();
        !name.contains("tests") && pattern.is_match(&product(file))
    });
    let mut found: Vec<String> =
        found.map(|file| file.strip_prefix(&root).unwrap().to_string_lossy().into_owned()).collect();
    found.sort();
    found
}

/// Packages of the program.
pub(crate) const PACKAGES: &[&str] = &[
    "advertise",
    "canary",
    "ccm",
    "controllers",
    "core",
    "doctor",
    "manager",
    "openstack-api",
    "overlay",
    "provider-openstack",
    "runtime",
    "tools",
];

#[rstest]
#[case::permits_are_made(PACKAGES, r"\bPermit \{ fence", &["core/src/permit.rs"])]
#[case::permits_are_asked_for(PACKAGES, r"\.permit\(Target::", &["manager/src/kubernetes/guard.rs", "openstack-api/src/client/mod.rs"])]
// A dry run passes on reads only.
#[case::requests_are_sent_to_openstack(PACKAGES, r"\b(transport|cloud|view)\.send\(", &[
    "openstack-api/src/client/mod.rs", "openstack-api/src/dry_run/mod.rs", "openstack-api/src/dry_run/view.rs",
    "openstack-api/src/dry_run/writes.rs"])]
#[case::http_clients_are_made(&["provider-openstack", "controllers", "advertise", "canary", "runtime"],
    r"reqwest::Client|Client::try_from|Client::new\(|Client::try_default", &[])]
fn only_these_files_have_a_way_past_the_gate(
    #[case] crates: &[&str],
    #[case] pattern: &str,
    #[case] expected: &[&str],
) {
    assert_eq!(matching(crates, pattern), expected);
}

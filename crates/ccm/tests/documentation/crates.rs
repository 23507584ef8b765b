//! Which crate of the program may name which, and how much the one is that an auditor reads.

use std::fs;

use regex::Regex;
use rstest::rstest;

use crate::layers::files;
use crate::pages::{read, repository};

/// The crates of the workspace that a crate depends on, tests left out.
fn dependencies(package: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{package}/Cargo.toml"));
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let name = Regex::new(r"(?m)^openstack-ccm-([\w-]+?)(?:\.workspace| =)").unwrap();
    name.captures_iter(section).map(|found| found[1].to_owned()).collect()
}

/// What a person types calls what runs in a cluster, and the program for clusters embeds no simulator.
#[rstest]
#[case::manager("manager", "controllers", &["tools", "doctor", "openstack-api", "provider-openstack", "openstack-sim", "kube-sim"])]
#[case::controllers("controllers", "core", &["manager", "tools", "openstack-api", "provider-openstack"])]
#[case::tools("tools", "manager", &["demo", "openstack-sim", "kube-sim"])]
#[case::provider("provider-openstack", "core", &["manager", "tools", "controllers", "advertise", "runtime"])]
#[case::doctor("doctor", "openstack-api", &["tools", "provider-openstack", "openstack-sim", "kube-sim"])]
fn a_crate_depends_on_none_of_those_above_it(
    #[case] package: &str,
    #[case] known: &str,
    #[case] above: &[&str],
) {
    let dependencies = dependencies(package);
    assert!(dependencies.iter().any(|one| one == known), "the manifest is read: {dependencies:?}");
    let wrong: Vec<_> = dependencies.iter().filter(|one| above.contains(&one.as_str())).collect();
    assert!(wrong.is_empty(), "{package} depends on {wrong:?}");
}

#[test]
fn the_lines_of_the_manager_are_as_many_as_contributing_says() {
    let sources = files(&repository().join("crates/manager/src"));
    let lines: usize = sources.iter().map(|file| fs::read_to_string(file).unwrap().lines().count()).sum();
    let page = read("CONTRIBUTING.md");
    let said =
        Regex::new(r"`manager` has ([\d,]+) lines").unwrap().captures(&page).expect("it says how many");
    let said: usize = said[1].replace(',', "").parse().unwrap();
    assert!(
        lines.abs_diff(said) <= said / 20,
        "the manager has {lines} lines, and CONTRIBUTING.md says {said}"
    );
}

//! The compatibility table is written from the tests themselves: a behaviour is in the table because a test shows it.
//!
//! A test of a scenario says so in its doc comment, in one line for each id:
//!
//! ```text
//! /// An internal Service gets no floating IP.
//! ///
//! /// Contract: F8, same.
//! /// Contract: C6, better: an Event names the subnet that was meant.
//! /// Switch: `floating-subnet-id` brings the former choice back.
//! ```
//!
//! `Contract` stands for the behaviours of the Go openstack-cloud-controller-manager, `Framework` for those that every
//! cloud-controller-manager shares, `Defect` for the known defects of the former. `differences.txt` has the words for users.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests say what they expect by panicking, as the tests do"
)]

mod catalog;
mod differences;
mod page;
#[allow(dead_code, reason = "the tests of the whole program use other parts")]
mod planned;
mod proof;
mod scan;

use std::path::{Path, PathBuf};

use crate::scan::Scenario;

/// The workspace's folder of crates.
fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn scenarios() -> Vec<Scenario> {
    scan::folder(&crates())
}

#[test]
fn every_scenario_that_a_test_names_exists_and_has_a_verdict() {
    let wrong: Vec<String> = scenarios()
        .iter()
        .filter(|scenario| !catalog::has(scenario.source, &scenario.id) || scenario.verdict.is_empty())
        .map(|scenario| {
            format!("{}: {} {} in {}", scenario.test, scenario.source.line(), scenario.id, scenario.file)
        })
        .collect();
    assert!(wrong.is_empty(), "unknown ids or missing verdicts:\n{}", wrong.join("\n"));
}

#[test]
fn a_test_that_claims_a_scenario_says_what_it_shows() {
    let silent: Vec<String> = scenarios()
        .iter()
        .filter(|scenario| scenario.what.is_empty() || scenario.test.is_empty())
        .map(|scenario| format!("{} in {}", scenario.id, scenario.file))
        .collect();
    assert!(silent.is_empty(), "no sentence, or no test below the line:\n{}", silent.join("\n"));
}

#[test]
fn the_compatibility_pages_are_what_the_tests_show() {
    let scenarios = scenarios();
    for (path, page) in [
        ("ccm/tests/compatibility/SCENARIOS.md", page::markdown(&scenarios, &planned::kept())),
        ("../docs/reference/compatibility.md", page::differences(&differences::kept())),
    ] {
        let file = crates().join(path);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(kept == page, "{path} differs from the tests; `make docs` regenerates it");
    }
}

/// A reader who comes from OCCM finds each difference that a test shows, and none that no test shows.
#[test]
fn every_difference_is_on_the_page_and_is_shown_by_a_test() {
    let (scenarios, differences) = (scenarios(), differences::kept());
    let differs = |scenario: &&Scenario| scenario.verdict.starts_with("better") || scenario.switch.is_some();
    for scenario in scenarios.iter().filter(differs) {
        let row = differences.iter().find(|difference| difference.shows_in(scenario));
        let row = row.unwrap_or_else(|| {
            panic!("say in differences.txt what {} {} is about", scenario.source.line(), scenario.id)
        });
        let codes = scenario.switch.iter().flat_map(|switch| switch.split('`').skip(1).step_by(2));
        for code in codes {
            assert!(row.switch.contains(code), "{} {}: {code}", scenario.source.line(), scenario.id);
        }
    }
    for difference in &differences {
        for (source, id) in &difference.scenarios {
            assert!(
                scenarios
                    .iter()
                    .filter(differs)
                    .any(|scenario| scenario.source == *source && scenario.id == *id),
                "{} {id} of differences.txt is shown by no test",
                source.line()
            );
        }
        assert!(!difference.occm.is_empty() && !difference.here.is_empty(), "{difference:?}");
    }
}

/// That a test which runs the whole program stands in the list, and what the list says of it, the test itself checks.
#[test]
fn the_list_of_what_is_planned_names_tests_of_scenarios() {
    let tests: Vec<String> = scenarios().iter().filter_map(proof::whole_program).collect();
    let outcomes = planned::kept();
    let stale = outcomes.keys().filter(|name| !tests.iter().any(|test| planned::is_case_of(name, test)));
    let stale: Vec<&String> = stale.collect();
    assert!(stale.is_empty(), "no tests of scenarios any more: {stale:#?}");
}

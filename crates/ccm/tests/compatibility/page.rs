//! Writes the compatibility page.

use std::fmt::Write as _;

use crate::catalog::{SECTIONS, Section, Source};
use crate::proof::{self, Outcomes};
use crate::scan::{Scenario, of};

const HEAD: &str = "\
# All scenarios of compatibility

<!-- Generated from the doc comments of the tests. Change them there, then run:
     UPDATE_DOCS=1 cargo test -p openstack-ccm --test compatibility -->

What the Go openstack-cloud-controller-manager (OCCM) does and what `openstack-ccm` does instead, one line for each test
that shows it. [What differs](../../../../docs/reference/compatibility.md) is the page for users. *same*: the outcome is OCCM's. *better*: OCCM's outcome hurts its users, ours does not; where somebody may
want the former behaviour back, the line names the switch.
";

const USERS: &str = "\
# What differs from OCCM

<!-- Generated from the doc comments of the tests. Change them there, then run:
     UPDATE_DOCS=1 cargo test -p openstack-ccm --test compatibility -->

Everything else is as the Go openstack-cloud-controller-manager (OCCM) does it. Where somebody may want the former behaviour
back, the line names the switch. See also [values that are read differently](values-read-differently.md). Each line, and each
behaviour that is the same, is shown by a test: [all scenarios](../../crates/ccm/tests/compatibility/SCENARIOS.md).
";

/// The page for users: what is not the same, in as few words as there are.
pub(crate) fn differences(scenarios: &[Scenario]) -> String {
    let mut page = USERS.to_owned();
    for section in SECTIONS {
        let mut rows: Vec<String> = Vec::new();
        for id in section.ids() {
            for scenario in of(scenarios, section, &id) {
                let Some(difference) = difference(scenario) else { continue };
                if !rows.iter().any(|row| row.contains(&difference)) {
                    rows.push(format!("- {difference}\n"));
                }
            }
        }
        if !rows.is_empty() {
            let _ = write!(page, "\n## {}\n\n{}", section.title, rows.concat());
        }
    }
    page
}

/// `Two long names never become one. Switch: …`
fn difference(scenario: &Scenario) -> Option<String> {
    let verdict = scenario.verdict.trim_end_matches('.');
    let what = verdict.strip_prefix("better").map(|rest| rest.trim_start_matches([':', ' ']));
    let mut text = match (what, &scenario.switch) {
        (None, None) => return None,
        (Some(what), _) if !what.is_empty() => capital(what),
        (Some(_) | None, _) => scenario.what.trim_end_matches('.').to_owned(),
    };
    if let Some(switch) = &scenario.switch {
        let _ = write!(text, ". Switch: {}", switch.trim_end_matches('.'));
    }
    text.push('.');
    Some(text)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The whole page.
pub(crate) fn markdown(scenarios: &[Scenario], outcomes: &Outcomes) -> String {
    let mut page = HEAD.to_owned();
    let shown: usize = SECTIONS
        .iter()
        .map(|section| section.ids().filter(|id| of(scenarios, section, id).next().is_some()).count())
        .sum();
    let all: usize = SECTIONS.iter().map(|section| section.ids().count()).sum();
    let _ = write!(page, "\n{shown} of {all} scenarios are shown by tests.\n");
    page.push_str(&proof::markdown(scenarios, outcomes));
    for (source, title) in [
        (Source::Contract, "OpenStack cloud controller manager"),
        (Source::Framework, "Cloud-controller-manager framework"),
        (Source::Defect, "Defects of OCCM that are done better"),
    ] {
        let _ = write!(page, "\n## {title}\n");
        for section in SECTIONS.iter().filter(|section| section.source == source) {
            page.push_str(&table(scenarios, section));
        }
    }
    page
}

fn table(scenarios: &[Scenario], section: &Section) -> String {
    let mut text = format!("\n### {}\n", section.title);
    let (shown, missing): (Vec<String>, Vec<String>) =
        section.ids().partition(|id| of(scenarios, section, id).next().is_some());
    if !shown.is_empty() {
        text.push_str("\n| Id | What | Verdict | Test |\n| --- | --- | --- | --- |\n");
    }
    for scenario in shown.iter().flat_map(|id| of(scenarios, section, id)) {
        text.push_str(&row(scenario));
    }
    if !missing.is_empty() {
        let _ = write!(text, "\nNot shown by a test yet: {}.\n", missing.join(", "));
    }
    text
}

fn row(scenario: &Scenario) -> String {
    let mut verdict = scenario.verdict.trim_end_matches('.').to_owned();
    if let Some(switch) = &scenario.switch {
        let _ = write!(verdict, ". Switch: {}", switch.trim_end_matches('.'));
    }
    let cell = |text: &str| text.replace('|', "\\|");
    format!("| {} | {} | {} | `{}` |\n", scenario.id, cell(&scenario.what), cell(&verdict), scenario.test)
}

//! Writes the compatibility page.

use std::fmt::Write as _;

use crate::catalog::{SECTIONS, Section, Source};
use crate::differences::Difference;
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

<!-- Generated from crates/ccm/tests/compatibility/differences.txt. Change it there, then run:
     UPDATE_DOCS=1 cargo test -p openstack-ccm --test compatibility -->

Everything else is as the Go openstack-cloud-controller-manager (OCCM) does it. See also [values that are read
differently](values-read-differently.md). Each line, and each behaviour that is the same, is shown by a test: [all
scenarios](../../crates/ccm/tests/compatibility/SCENARIOS.md).
";

/// The page for users: what is not the same.
pub(crate) fn differences(differences: &[Difference]) -> String {
    let mut page = USERS.to_owned();
    let mut section = "";
    for difference in differences {
        if difference.section != section {
            section = difference.section;
            // Writing to a String cannot fail.
            let _ = write!(
                page,
                "\n## {section}\n\n| OCCM | openstack-ccm | At the switch |\n| --- | --- | --- |\n"
            );
        }
        let cell = |text: &str| text.replace('|', "\\|");
        let Difference { occm, here, switch, .. } = difference;
        let _ = writeln!(page, "| {} | {} | {} |", cell(occm), cell(here), cell(switch));
    }
    page
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

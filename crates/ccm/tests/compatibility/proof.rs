//! How many scenarios are compared with a plan, and why the others are not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::catalog::SECTIONS;
use crate::planned::{BETWEEN, COMPARED, WHOLE_PROGRAM, is_case_of, test_name};
use crate::scan::{Scenario, of};

/// What became of the comparison in each test, by its name.
pub(crate) type Outcomes = BTreeMap<String, String>;

/// Whether all that was done in a scenario is what was planned.
#[derive(Debug, PartialEq)]
enum Standing {
    Compared,
    /// The first cause why something escaped the comparison.
    Escaped(String),
    /// No test of it runs the whole program, but one of these.
    Apart(String),
}

/// The name of a test of the whole program, as the test framework has it.
pub(crate) fn whole_program(scenario: &Scenario) -> Option<String> {
    let file = scenario.file.strip_prefix(WHOLE_PROGRAM)?;
    Some(test_name(file, &scenario.test))
}

/// Outcomes of a test and of all its cases.
pub(crate) fn outcomes_of<'a>(outcomes: &'a Outcomes, test: &str) -> impl Iterator<Item = &'a String> {
    outcomes.iter().filter(move |(name, _)| is_case_of(name, test)).map(|(_, outcome)| outcome)
}

/// What the tests of one scenario show together: each that runs the whole program has to compare all.
fn standing(scenarios: &[&Scenario], outcomes: &Outcomes) -> Standing {
    let whole: Vec<String> = scenarios.iter().filter_map(|scenario| whole_program(scenario)).collect();
    if whole.is_empty() {
        return Standing::Apart(scenarios.first().map_or_else(String::new, |scenario| part(&scenario.file)));
    }
    let mut escapes = whole.iter().filter_map(|test| escape(test, outcomes));
    escapes.next().map_or(Standing::Compared, Standing::Escaped)
}

/// The first cause why something in a test escaped the comparison.
fn escape(test: &str, outcomes: &Outcomes) -> Option<String> {
    if outcomes_of(outcomes, test).next().is_none() {
        return Some("no program runs in the test".to_owned());
    }
    let escaped = outcomes_of(outcomes, test).find(|outcome| *outcome != COMPARED)?;
    escaped.split(BETWEEN).next().map(str::to_owned)
}

/// The crate of a test; the tests of the program's own crate by their folder.
fn part(file: &str) -> String {
    let mut folders = file.split('/');
    let name = folders.next().unwrap_or_default();
    match (name, folders.next(), folders.next()) {
        ("ccm", Some("tests"), Some(folder)) => format!("ccm/tests/{folder}"),
        _ => name.to_owned(),
    }
}

/// The paragraph about it on the page.
pub(crate) fn markdown(scenarios: &[Scenario], outcomes: &Outcomes) -> String {
    let (mut all, mut compared) = (0, 0);
    let (mut escaped, mut apart) = (BTreeMap::new(), BTreeMap::new());
    for section in SECTIONS {
        for id in section.ids() {
            all += 1;
            match standing(&of(scenarios, section, &id).collect::<Vec<_>>(), outcomes) {
                Standing::Compared => compared += 1,
                Standing::Escaped(cause) => *escaped.entry(cause).or_default() += 1,
                Standing::Apart(part) => *apart.entry(part).or_default() += 1,
            }
        }
    }
    let mut text = format!(
        "\nBefore whatever the whole program does in a test, a [plan](../../../../docs/guides/plan-changes.md) of it is made. In {compared} of {all} \
         scenarios all calls that change anything were those of the plan, none missing and none beside, in order. Why not in \
         the others, by the first cause:\n\n| Scenarios | Why not all is compared with a plan |\n| ---: | --- |\n"
    );
    rows(&mut text, &escaped, str::to_owned);
    rows(&mut text, &apart, |part| format!("shown without the whole program, by tests in `{part}`"));
    text
}

/// The largest number first.
fn rows(text: &mut String, counts: &BTreeMap<String, usize>, line: impl Fn(&str) -> String) {
    let mut counts: Vec<(&String, &usize)> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (name, count) in counts {
        let _ = writeln!(text, "| {count} | {} |", line(name));
    }
}

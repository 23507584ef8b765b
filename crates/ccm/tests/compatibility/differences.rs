//! What differs from OCCM, in words for its users: `differences.txt`.

use crate::catalog::Source;
use crate::scan::Scenario;

const KEPT: &str = include_str!("differences.txt");

/// One difference, which may show in several scenarios.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) section: &'static str,
    pub(crate) scenarios: Vec<(Source, &'static str)>,
    pub(crate) occm: &'static str,
    pub(crate) here: &'static str,
    /// What to do at the switch; empty for nothing.
    pub(crate) switch: &'static str,
}

impl Difference {
    pub(crate) fn shows_in(&self, scenario: &Scenario) -> bool {
        self.scenarios.iter().any(|(source, id)| *source == scenario.source && *id == scenario.id)
    }
}

/// All of them, by section, in the order of the file.
pub(crate) fn kept() -> Vec<Difference> {
    let mut section = "";
    let mut found = Vec::new();
    for block in KEPT.split("\n\n").skip(1) {
        let (head, rest) = block.trim().split_once('\n').unwrap_or((block.trim(), ""));
        if let Some(title) = head.strip_prefix("# ") {
            section = title;
            continue;
        }
        let line =
            |name: &str| rest.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        found.push(Difference {
            section,
            scenarios: head.split(' ').map(named).collect(),
            occm: line("occm:"),
            here: line("here:"),
            switch: line("switch:"),
        });
    }
    found
}

/// `C5`, `FS1` of the framework, `D60` of the defects.
fn named(text: &'static str) -> (Source, &'static str) {
    if let Some(number) = text.strip_prefix('D') {
        return (Source::Defect, number);
    }
    match text.strip_prefix('F').filter(|rest| rest.starts_with(char::is_alphabetic)) {
        Some(id) => (Source::Framework, id),
        None => (Source::Contract, text),
    }
}

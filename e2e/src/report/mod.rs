//! What a run has seen, and its tables.

pub(crate) mod cost;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use cost::{Cost, Sender};

/// The scenario that counts what changes cost.
pub(crate) const COSTS: &str = "24 calls";
/// The same beside OCCM.
pub(crate) const COSTS_BESIDE_OCCM: &str = "28 beside OCCM";

/// One thing that was looked at: what was expected and what was seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub scenario: String,
    /// Under which circumstances.
    pub case: String,
    /// What was seen, in one line.
    pub seen: String,
    /// Whether this is what was expected.
    pub passed: bool,
    /// How long it took.
    pub took: Duration,
    /// What it cost, where that was measured.
    pub cost: Option<Cost>,
}

impl Finding {
    /// Something that went wrong outside of the scenarios.
    pub(crate) fn failure(scenario: &str, case: &str, seen: &str) -> Self {
        let (scenario, case, seen) = (scenario.to_owned(), case.to_owned(), seen.to_owned());
        Self { scenario, case, seen, passed: false, took: Duration::ZERO, cost: None }
    }

    pub(crate) fn line(&self) -> String {
        let verdict = if self.passed { "ok  " } else { "FAIL" };
        let seconds = self.took.as_secs_f32();
        format!("{verdict} {} | {} | {} ({seconds:.1} s)", self.scenario, self.case, self.seen)
    }

    fn row(&self, width: Option<usize>) -> String {
        let result = if self.passed { "ok" } else { "**FAILED**" };
        // A bar would end the cell.
        let mut seen = self.seen.replace('|', "/").replace('\n', " ");
        if let Some(width) = width.filter(|width| seen.chars().count() > *width) {
            seen = seen.chars().take(width - 3).chain("...".chars()).collect();
        }
        let seconds = self.took.as_secs_f32();
        format!("| {result} | {} | {} | {seen} | {seconds:.1} |", self.scenario, self.case)
    }
}

/// The table of findings, as Markdown, with cells of at most this width.
pub(crate) fn table(findings: &[Finding], width: Option<usize>) -> String {
    let head = "| Result | Scenario | Case | Seen | Seconds |\n| --- | --- | --- | --- | ---: |";
    let rows = findings.iter().map(|finding| finding.row(width));
    std::iter::once(head.to_owned()).chain(rows).collect::<Vec<_>>().join("\n")
}

/// All findings of a run.
#[derive(Default)]
pub(crate) struct Report {
    findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Whether something was looked at and all of it was as expected.
    pub(crate) fn passed(&self) -> bool {
        !self.findings.is_empty() && self.failures().next().is_none()
    }

    /// Whether no case has run.
    pub(crate) fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// What was not as expected.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.passed)
    }

    /// How many cases there were and how many failed.
    pub(crate) fn summary(&self) -> String {
        format!("{} cases, {} failed", self.findings.len(), self.failures().count())
    }

    /// The table of all findings, as Markdown, with cells of at most this width.
    pub(crate) fn table(&self, width: Option<usize>) -> String {
        table(&self.findings, width)
    }

    /// The table of what changes cost, as Markdown; absent where nothing was measured.
    pub(crate) fn costs(&self) -> Option<String> {
        let rows: Vec<String> = self.costs_of(COSTS, Sender::OpenstackCcm).map(Cost::row).collect();
        (!rows.is_empty()).then(|| format!("{}\n{}", Cost::HEAD, rows.join("\n")))
    }

    /// The same beside what they cost OCCM; absent where that was not measured.
    pub(crate) fn costs_beside_occm(&self) -> Option<String> {
        let costs = |by| self.costs_of(COSTS_BESIDE_OCCM, by);
        let occm = |change: &str| costs(Sender::Occm).find(|cost| cost.change == change);
        let rows: Vec<String> =
            costs(Sender::OpenstackCcm).map(|cost| cost.row_beside(occm(&cost.change))).collect();
        (!rows.is_empty()).then(|| format!("{}\n{}", Cost::HEAD_BESIDE, rows.join("\n")))
    }

    fn costs_of(&self, scenario: &str, by: Sender) -> impl Iterator<Item = &Cost> {
        let findings = self.findings.iter().filter(move |finding| finding.scenario == scenario);
        findings.filter_map(|finding| finding.cost.as_ref()).filter(move |cost| cost.by == by)
    }

    /// Writes the tables to a file.
    pub(crate) fn write(&self, path: &Path, took: Duration) -> Result<()> {
        let (table, summary) = (self.table(None), self.summary());
        let tables = [self.costs(), self.costs_beside_occm()];
        let costs: String = tables.into_iter().flatten().map(|costs| format!("{costs}\n\n")).collect();
        let text = format!("# End-to-end report\n\n{costs}{table}\n\n{summary} in {} s.\n", took.as_secs());
        Ok(std::fs::write(path, text)?)
    }
}

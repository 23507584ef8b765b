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

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    Passed,
    Failed,
    /// Nobody looked: an earlier case of the scenario had run into its time.
    LeftOut,
}

/// One thing that was looked at: what was expected and what was seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub scenario: String,
    /// Under which circumstances.
    pub case: String,
    /// What was seen, in one line.
    pub seen: String,
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
    /// What it cost, where that was measured.
    pub cost: Option<Cost>,
}

impl Finding {
    /// Something that went wrong outside of the scenarios.
    pub(crate) fn failure(scenario: &str, case: &str, seen: &str) -> Self {
        let (scenario, case, seen) = (scenario.to_owned(), case.to_owned(), seen.to_owned());
        Self { scenario, case, seen, verdict: Verdict::Failed, took: Duration::ZERO, cost: None }
    }

    pub(crate) fn line(&self) -> String {
        let verdict = match self.verdict {
            Verdict::Passed => "ok  ",
            Verdict::Failed => "FAIL",
            Verdict::LeftOut => "left",
        };
        let seconds = self.took.as_secs_f32();
        format!("{verdict} {} | {} | {} ({seconds:.1} s)", self.scenario, self.case, self.seen)
    }

    fn row(&self, width: Option<usize>) -> String {
        let result = match self.verdict {
            Verdict::Passed => "ok",
            Verdict::Failed => "**FAILED**",
            Verdict::LeftOut => "left out",
        };
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

/// A group that was begun, and what was seen in its attempts.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub group: &'static str,
    /// The attempt that counts.
    pub judged: Attempt,
    /// An attempt before it, which counts for nothing.
    pub earlier: Option<Attempt>,
}

/// What was seen of a group in one go.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub findings: Vec<Finding>,
}

impl Attempt {
    /// Whether something was looked at, and no case failed.
    pub(crate) fn is_good(&self) -> bool {
        !self.findings.is_empty() && self.findings.iter().all(|finding| finding.verdict != Verdict::Failed)
    }
}

/// All that a run has seen.
#[derive(Default)]
pub(crate) struct Report {
    /// What counts.
    findings: Vec<Finding>,
    /// Groups that were begun twice, with the rows of their first attempt.
    earlier: Vec<(&'static str, Vec<Finding>)>,
    /// Groups that were not begun, and why.
    left_out: Vec<(&'static str, String)>,
}

impl Report {
    pub(crate) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Adds a group: the attempt that counts, and the one before it below the table.
    pub(crate) fn add_group(&mut self, begun: Begun) {
        self.findings.extend(begun.judged.findings);
        self.earlier.extend(begun.earlier.map(|attempt| (begun.group, attempt.findings)));
    }

    /// A group was not begun.
    pub(crate) fn leave_out(&mut self, group: &'static str, reason: &str) {
        self.left_out.push((group, reason.to_owned()));
    }

    /// Whether something was looked at and all of it was as expected.
    pub(crate) fn passed(&self) -> bool {
        self.count(Verdict::Passed) > 0 && self.count(Verdict::Failed) == 0
    }

    /// Whether no case has run.
    pub(crate) fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }

    /// What was not as expected.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.verdict == Verdict::Failed)
    }

    /// How many cases there were, and what became of them.
    pub(crate) fn summary(&self) -> String {
        let [passed, failed, left_out] =
            [Verdict::Passed, Verdict::Failed, Verdict::LeftOut].map(|verdict| self.count(verdict));
        let cases = format!("{passed} cases passed, {failed} failed, {left_out} left out");
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for (group, reason) in &self.left_out {
            match groups.iter_mut().find(|(known, _)| known == reason) {
                Some((_, names)) => names.push(group),
                None => groups.push((reason, vec![group])),
            }
        }
        if groups.is_empty() {
            return cases;
        }
        let why = groups.iter().map(|(reason, names)| format!("{} ({reason})", names.join(", ")));
        let why = why.collect::<Vec<_>>().join("; ");
        let count = self.left_out.len();
        format!("{cases}, {count} {} left out: {why}", if count == 1 { "group" } else { "groups" })
    }

    /// Names the groups that were begun twice; nothing where there is none.
    pub(crate) fn begun_twice(&self) -> Option<String> {
        let line = |(group, findings): &(&str, Vec<Finding>)| {
            let failed = findings.iter().find(|finding| finding.verdict == Verdict::Failed);
            let first = failed
                .map_or_else(String::new, |finding| format!(", the first time ended by: {}", finding.line()));
            format!("begun twice: {group}{first}")
        };
        let lines: Vec<String> = self.earlier.iter().map(line).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// The table of all findings that count, as Markdown, with cells of at most this width.
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
        let first = |(group, findings): &(&str, Vec<Finding>)| {
            format!(
                "\n## First attempt of {group}, which counts for nothing\n\n{}\n",
                self::table(findings, None)
            )
        };
        let earlier: String = self.earlier.iter().map(first).collect();
        let seconds = took.as_secs();
        let text = format!("# End-to-end report\n\n{costs}{table}\n\n{summary}; {seconds} s.\n{earlier}");
        Ok(std::fs::write(path, text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(case: &str, verdict: Verdict) -> Finding {
        Finding { verdict, ..Finding::failure("1 x", case, "seen") }
    }

    #[test]
    fn rows_of_a_first_attempt_are_shown_and_not_counted() {
        let attempt = |verdict| Attempt { findings: vec![finding("a", verdict)] };
        let mut report = Report::default();
        report.add_group(Begun {
            group: "life",
            judged: attempt(Verdict::Passed),
            earlier: Some(attempt(Verdict::Failed)),
        });
        assert!(report.passed());
        assert_eq!(report.summary(), "1 cases passed, 0 failed, 0 left out");
        assert!(
            report
                .begun_twice()
                .unwrap()
                .starts_with("begun twice: life, the first time ended by: FAIL 1 x | a")
        );
        let page = std::env::temp_dir().join(format!("openstack-ccm-e2e-report-{}.md", std::process::id()));
        report.write(&page, Duration::from_secs(3)).unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        std::fs::remove_file(page).unwrap();
        let (counted, earlier) = text.split_once("## First attempt of life").unwrap();
        assert!(!counted.contains("FAILED") && earlier.contains("**FAILED**"), "{text}");
    }

    #[test]
    fn what_was_left_out_is_named_once_for_each_reason() {
        let mut report = Report::default();
        report.add(finding("a", Verdict::Passed));
        report.add(finding("b", Verdict::LeftOut));
        for (group, reason) in [("old", "no network"), ("gate", "no network"), ("ovn", "no time")] {
            report.leave_out(group, reason);
        }
        assert!(report.passed());
        assert_eq!(
            report.summary(),
            "1 cases passed, 0 failed, 1 left out, 3 groups left out: old, gate (no network); ovn (no time)"
        );
    }

    #[test]
    fn an_attempt_without_a_case_is_not_good() {
        assert!(!Attempt { findings: Vec::new() }.is_good());
        assert!(!Attempt { findings: vec![finding("a", Verdict::Failed)] }.is_good());
        assert!(Attempt { findings: vec![finding("a", Verdict::Passed)] }.is_good());
    }
}

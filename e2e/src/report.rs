//! What a run says while it works and at its end.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

/// Prints a line at once.
pub(crate) fn say(line: &str) {
    // A closed pipe is no reason to stop a run.
    writeln!(std::io::stdout(), "{line}").ok();
}

/// One thing that was looked at: what was expected and what was seen.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Which scenario.
    pub scenario: String,
    /// Under which circumstances.
    pub case: String,
    /// What was seen, in one line.
    pub seen: String,
    /// Whether this is what was expected.
    pub passed: bool,
    /// How long it took.
    pub took: Duration,
}

/// All findings of a run.
#[derive(Default)]
pub(crate) struct Report {
    findings: Vec<Finding>,
}

impl Report {
    /// Adds a finding and prints it.
    pub(crate) fn add(&mut self, finding: Finding) {
        let verdict = if finding.passed { "ok  " } else { "FAIL" };
        let seconds = finding.took.as_secs_f32();
        say(&format!(
            "{verdict} {} | {} | {} ({seconds:.1} s)",
            finding.scenario, finding.case, finding.seen
        ));
        self.findings.push(finding);
    }

    /// Whether something was looked at and all of it was as expected.
    pub(crate) fn passed(&self) -> bool {
        !self.findings.is_empty() && self.findings.iter().all(|finding| finding.passed)
    }

    /// The table of all findings, as Markdown.
    pub(crate) fn table(&self) -> String {
        let mut table =
            "| Result | Scenario | Case | Seen | Seconds |\n| --- | --- | --- | --- | ---: |".to_owned();
        for finding in &self.findings {
            let result = if finding.passed { "ok" } else { "**FAILED**" };
            // A bar would end the cell.
            let seen = finding.seen.replace('|', "/").replace('\n', " ");
            let (scenario, case, seconds) = (&finding.scenario, &finding.case, finding.took.as_secs_f32());
            table.push_str(&format!("\n| {result} | {scenario} | {case} | {seen} | {seconds:.1} |"));
        }
        table
    }

    /// Writes the table to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, path: &Path, took: Duration) -> Result<()> {
        let text =
            format!("# End-to-end report\n\n{}\n\nThe whole run took {} s.\n", self.table(), took.as_secs());
        Ok(std::fs::write(path, text)?)
    }
}

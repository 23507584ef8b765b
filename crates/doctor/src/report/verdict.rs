//! The verdicts on single checks and on hops.

use std::fmt;

use crate::code::Severity;
use crate::finding::{Check, Gap};
use crate::question::HopReport;

/// The verdict on a hop: the worst of its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// No check applied.
    Skipped,
    /// All checks passed.
    Ok,
    /// For some checks there is nothing to look at.
    NotSeen,
    /// Some checks could not be made.
    NotKnown,
    Warning,
    Break,
}

impl Verdict {
    /// Returns the verdict in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Ok => "ok",
            Self::NotSeen => "not-seen",
            Self::NotKnown => "not-known",
            Self::Warning => "warning",
            Self::Break => "break",
        }
    }

    fn of(check: &Check) -> Self {
        match check {
            Check::Skipped(_) => Self::Skipped,
            Check::Ok(_) => Self::Ok,
            Check::Unknown(unknown) if unknown.gap == Gap::NotKnown => Self::NotKnown,
            Check::Unknown(_) => Self::NotSeen,
            Check::Found(finding) => match finding.severity() {
                Severity::Info => Self::Ok,
                Severity::Warning => Self::Warning,
                Severity::Error => Self::Break,
            },
        }
    }
}

impl HopReport {
    /// Returns the verdict on the hop.
    pub fn verdict(&self) -> Verdict {
        self.checks().iter().map(Verdict::of).max().unwrap_or(Verdict::NotKnown)
    }
}

/// The counts of results over several Services and their leftovers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub errors: usize,
    pub warnings: usize,
    /// Checks that passed, including those with information only.
    pub ok: usize,
    /// Checks that could not be made.
    pub not_known: usize,
    /// Checks for which there is nothing to look at.
    pub not_seen: usize,
}

impl Counts {
    /// Counts the results of some checks.
    pub fn of<'a>(checks: impl IntoIterator<Item = &'a Check>) -> Self {
        let mut counts = Self::default();
        for check in checks {
            match Verdict::of(check) {
                Verdict::Break => counts.errors += 1,
                Verdict::Warning => counts.warnings += 1,
                Verdict::Ok => counts.ok += 1,
                Verdict::NotKnown => counts.not_known += 1,
                Verdict::NotSeen => counts.not_seen += 1,
                Verdict::Skipped => {}
            }
        }
        counts
    }

    /// Returns whether a finding has at least this severity.
    pub fn reaches(&self, severity: Severity) -> bool {
        match severity {
            Severity::Error => self.errors > 0,
            Severity::Warning | Severity::Info => self.errors + self.warnings > 0,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize, what: &str| {
            if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
        };
        let Self { errors, warnings, ok, not_known, not_seen } = *self;
        let (errors, warnings) = (plural(errors, "error"), plural(warnings, "warning"));
        write!(f, "{errors}, {warnings}, {ok} ok, {not_known} not known, {not_seen} not seen")
    }
}

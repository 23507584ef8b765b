//! What looks come to, alone and together.

use std::fmt;

use crate::code::Severity;
use crate::finding::Check;
use crate::question::HopReport;

/// What a hop comes to: the worst of its looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// There was nothing to look at.
    Skipped,
    /// All is well.
    Ok,
    /// It could not be looked at, or not all of it.
    Unknown,
    Warning,
    Break,
}

impl Verdict {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Break => "break",
        }
    }

    fn of(check: &Check) -> Self {
        match check {
            Check::Skipped(_) => Self::Skipped,
            Check::Ok(_) => Self::Ok,
            Check::Unknown(_) => Self::Unknown,
            Check::Found(finding) => match finding.severity() {
                Severity::Info => Self::Ok,
                Severity::Warning => Self::Warning,
                Severity::Error => Self::Break,
            },
        }
    }
}

impl HopReport {
    /// What it comes to.
    pub fn verdict(&self) -> Verdict {
        self.checks().iter().map(Verdict::of).max().unwrap_or(Verdict::Unknown)
    }
}

/// What all looks at several Services, and at what is left over, come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub errors: usize,
    pub warnings: usize,
    /// What is well; information counts as that.
    pub ok: usize,
    /// What somebody asked for and could not be looked at.
    pub unknown: usize,
}

impl Counts {
    /// Counts some looks.
    pub fn of<'a>(checks: impl IntoIterator<Item = &'a Check>) -> Self {
        let mut counts = Self::default();
        for check in checks {
            match Verdict::of(check) {
                Verdict::Break => counts.errors += 1,
                Verdict::Warning => counts.warnings += 1,
                Verdict::Ok => counts.ok += 1,
                Verdict::Unknown if matches!(check, Check::Unknown(unknown) if !unknown.asked) => {}
                Verdict::Unknown => counts.unknown += 1,
                Verdict::Skipped => {}
            }
        }
        counts
    }

    /// Whether something at or above this was found.
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
        let Self { errors, warnings, ok, unknown } = *self;
        write!(f, "{}, {}, {ok} ok, {unknown} unknown", plural(errors, "error"), plural(warnings, "warning"))
    }
}

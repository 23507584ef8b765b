//! The report as a table, as JSON, and as a diagram. This module makes all text from outside printable.
//!
//! | module | writes |
//! | --- | --- |
//! | [`table`] | lines for users: all results, or only problems |
//! | [`json`] | for programs; its schema is `docs/reference/schemas/doctor.json` |
//! | [`mermaid`] | the paths of packets, with the break on them |

pub mod json;
pub mod mermaid;
pub mod table;

use clap::ValueEnum;

use crate::code::{Code, Severity};
use crate::finding::{Check, Gap};
use crate::hop::Origin;
use crate::question::HopReport;
use crate::report::{Counts, End, Report};

/// The complete result of one run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// A report for each Service.
    pub reports: Vec<Report>,
    /// The leftovers; absent where the user did not ask for them.
    pub leftovers: Option<Vec<Check>>,
    /// What the user asked for and does not exist.
    pub absent: Vec<String>,
}

/// What the exit code shall show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// 3 also for anything that was not seen.
    Unseen,
    /// 2 for warnings too.
    Warning,
    /// 2 for errors only.
    Error,
}

impl FailOn {
    fn severity(self) -> Severity {
        match self {
            Self::Warning => Severity::Warning,
            Self::Error | Self::Unseen => Severity::Error,
        }
    }
}

impl Outcome {
    /// Lists all checks that were made.
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        let of_hops = self.reports.iter().flat_map(|report| report.hops.iter().flat_map(HopReport::checks));
        of_hops.chain(self.leftovers.iter().flatten())
    }

    /// Counts the results of all checks.
    pub fn counts(&self) -> Counts {
        Counts::of(self.checks())
    }

    /// Returns whether nothing was found that makes doctor fail.
    pub fn is_success(&self, fail_on: FailOn) -> bool {
        !self.counts().reaches(fail_on.severity())
    }

    /// Returns the exit code, as for all subcommands: 2 for a finding of at least this severity; otherwise 3 if something is not
    /// known, or a user has to look; otherwise 0.
    pub fn exit_code(&self, fail_on: FailOn) -> u8 {
        let counts = self.counts();
        let is_blind =
            |check: &Check| matches!(check, Check::Unknown(unknown) if unknown.gap == Gap::HeaderNotSeen);
        if !self.is_success(fail_on) {
            2
        } else if counts.not_known > 0
            || !self.absent.is_empty()
            || (fail_on == FailOn::Unseen && counts.not_seen > 0)
            || self.checks().any(is_blind)
            || self.reports.iter().any(needs_a_person)
        {
            3
        } else {
            0
        }
    }
}

/// Returns whether packets may end, or a setting or a flag has to be corrected, although no severe finding exists.
fn needs_a_person(report: &Report) -> bool {
    let is_doubtful = |origin: Origin| matches!(report.end(origin), End::Ends(..) | End::MayEnd(..));
    Origin::ALL.into_iter().any(is_doubtful)
        || report.findings().any(|(_, finding)| matches!(finding.code, Code::D003 | Code::D512))
}

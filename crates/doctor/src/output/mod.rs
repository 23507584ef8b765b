//! The report as a table, as JSON, and as a diagram. All text from outside is made fit to print here.
//!
//! | module | writes |
//! | --- | --- |
//! | [`table`] | lines for people, all of them or what is not well |
//! | [`json`] | for programs; its schema is `docs/reference/schemas/doctor.json` |
//! | [`mermaid`] | the ways of packets, with the break on them |

pub mod json;
pub mod mermaid;
pub mod table;

use crate::code::{Code, Severity};
use crate::finding::Check;
use crate::hop::Origin;
use crate::question::HopReport;
use crate::report::{Counts, End, Report};

/// All that one run says.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// A report for each Service.
    pub reports: Vec<Report>,
    /// What is left over; absent where nobody asked.
    pub leftovers: Option<Vec<Check>>,
}

impl Outcome {
    /// All looks that were taken.
    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        let of_hops = self.reports.iter().flat_map(|report| report.hops.iter().flat_map(HopReport::checks));
        of_hops.chain(self.leftovers.iter().flatten())
    }

    /// What all of them come to.
    pub fn counts(&self) -> Counts {
        Counts::of(self.checks())
    }

    /// The exit code, as all subcommands have it: 0 where all is well, 2 where something at or above a severity was found, 3 where
    /// nothing was, but something that somebody asked for is not known, or a person has to look.
    pub fn exit_code(&self, fail_on: Severity) -> u8 {
        let counts = self.counts();
        if counts.reaches(fail_on) {
            2
        } else if counts.unknown > 0 || self.reports.iter().any(needs_a_person) {
            3
        } else {
            0
        }
    }
}

/// Whether packets may end, or a setting or a flag has to be corrected, although nothing severe was found.
fn needs_a_person(report: &Report) -> bool {
    let is_doubtful = |origin: Origin| matches!(report.end(origin), End::Ends(..) | End::MayEnd(..));
    Origin::ALL.into_iter().any(is_doubtful)
        || report.findings().any(|(_, finding)| matches!(finding.code, Code::D003 | Code::D512))
}

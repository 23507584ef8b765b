//! The report as a table, as JSON, and as a diagram. All text from outside is made fit to print here.
//!
//! | module | writes |
//! | --- | --- |
//! | [`table`] | lines for people, all of them or what is not well |
//! | [`json`] | for programs; its schema is `docs/reference/doctor.schema.json` |
//! | [`mermaid`] | the ways of packets, with the break on them |

pub mod json;
pub mod mermaid;
pub mod table;

use crate::finding::Check;
use crate::report::{Counts, Report};

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
        let of_hops = self.reports.iter().flat_map(|report| report.hops.iter().flat_map(|hop| &hop.checks));
        of_hops.chain(self.leftovers.iter().flatten())
    }

    /// What all of them come to.
    pub fn counts(&self) -> Counts {
        Counts::of(self.checks())
    }
}

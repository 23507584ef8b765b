//! Optional parts of a cloud's API: the table of them, and the words in which a cloud says that it lacks one.

mod table;
mod unknown;

use std::fmt;

pub use table::{Access, FEATURES, Feature, OptionalPart};
pub(crate) use unknown::{refuses_a_filter, unknown_names};

/// A part that the cloud lacks, with the evidence. As text it contains nothing that a user wrote, and no id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    pub part: OptionalPart,
    /// The kind of call, and how it is answered.
    pub evidence: String,
    /// The answer in full, for operators.
    pub answer: String,
}

impl fmt::Display for Lacking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Feature { name, promised_by, without, .. } = self.part.feature();
        write!(
            formatter,
            "{name}: the cloud does not provide what {promised_by} promises ({}); without it, {without}",
            self.evidence
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_row() {
        for part in OptionalPart::ALL {
            assert_eq!(part.feature().part, Some(part));
        }
        assert_eq!(FEATURES.iter().filter(|feature| feature.part.is_some()).count(), OptionalPart::ALL.len());
    }
}

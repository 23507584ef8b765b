//! The questions of a hop, and their answers.
//!
//! The report of a hop is built from a struct with a field for each question, and an answer is never empty. So a forgotten
//! question does not compile, and a question without an answer is unknown: neither looks like a hop without problems.

use crate::finding::Check;
use crate::hop::Hop;

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(Vec<Check>);

impl Answer {
    /// Returns the findings, or the result of `otherwise` where there are none.
    pub fn found(checks: Vec<Check>, otherwise: impl FnOnce() -> Check) -> Self {
        Self(if checks.is_empty() { vec![otherwise()] } else { checks })
    }

    /// Judges each subject, and drops duplicate results; without a subject the answer is `of_none`.
    pub fn each<T>(
        subjects: impl IntoIterator<Item = T>,
        of_none: impl FnOnce() -> Check,
        mut judge: impl FnMut(T) -> Check,
    ) -> Self {
        let mut checks: Vec<Check> = Vec::new();
        for subject in subjects {
            let check = judge(subject);
            if !checks.contains(&check) {
                checks.push(check);
            }
        }
        Self::found(checks, of_none)
    }

    /// Appends another answer.
    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        self.0.extend(other.into().0);
        self
    }

    pub(crate) fn checks(self) -> Vec<Check> {
        self.0
    }
}

impl From<Check> for Answer {
    fn from(check: Check) -> Self {
        Self(vec![check])
    }
}

/// The result of a hop, built only from the answers to its questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopReport {
    hop: Hop,
    checks: Vec<Check>,
}

impl HopReport {
    /// Builds the report of a hop from its answers, without duplicate checks.
    pub(crate) fn of<const QUESTIONS: usize>(hop: Hop, answers: [Answer; QUESTIONS]) -> Self {
        const { assert!(QUESTIONS > 0, "a hop without a question would always be well") }
        let mut checks: Vec<Check> = Vec::new();
        for check in answers.into_iter().flat_map(Answer::checks) {
            if !checks.contains(&check) {
                checks.push(check);
            }
        }
        Self { hop, checks }
    }

    pub fn hop(&self) -> Hop {
        self.hop
    }

    /// Returns the checks in order.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }
}

/// Defines the questions of a hop.
macro_rules! questions {
    ($(#[$about:meta])* $name:ident at $hop:ident { $($(#[$what:meta])* $question:ident,)+ }) => {
        $(#[$about])*
        pub(super) struct $name {
            $($(#[$what])* pub(super) $question: $crate::question::Answer,)+
        }

        impl $name {
            /// Answers all questions with the same check.
            #[allow(dead_code, reason = "not every hop has something that answers all of its questions")]
            pub(super) fn all(check: &$crate::finding::Check) -> Self {
                Self { $($question: check.clone().into(),)+ }
            }

            pub(super) fn report(self) -> $crate::question::HopReport {
                let Self { $($question,)+ } = self;
                $crate::question::HopReport::of($crate::hop::Hop::$hop, [$($question,)+])
            }
        }
    };
}
pub(crate) use questions;

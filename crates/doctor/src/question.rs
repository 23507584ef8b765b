//! The questions of a hop, and their answers.
//!
//! The report of a hop is built from a struct with a field for each question, and an answer is never empty. So a forgotten
//! question does not compile, and a question without an answer is unknown: neither looks like a hop without problems.

use crate::code::Stops;
use crate::finding::{Check, Finding, unknown};
use crate::hop::{Hop, Scope};

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(Vec<Check>);

impl Answer {
    /// Returns the findings, or the result of `otherwise` where there are none.
    pub fn found(checks: Vec<Check>, otherwise: impl FnOnce() -> Check) -> Self {
        Self(if checks.is_empty() { vec![otherwise()] } else { checks })
    }

    /// Judges each subject; without a subject the answer is `of_none`.
    pub fn each<T>(
        subjects: impl IntoIterator<Item = T>,
        of_none: impl FnOnce() -> Check,
        judge: impl FnMut(T) -> Check,
    ) -> Self {
        Self::found(subjects.into_iter().map(judge).collect(), of_none)
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

impl From<Finding> for Answer {
    fn from(finding: Finding) -> Self {
        Check::from(finding).into()
    }
}

impl From<Box<Check>> for Answer {
    fn from(check: Box<Check>) -> Self {
        (*check).into()
    }
}

/// The answer where the question could be asked, or what was missing.
impl From<Result<Self, Self>> for Answer {
    fn from(asked: Result<Self, Self>) -> Self {
        asked.unwrap_or_else(|missing| missing)
    }
}

/// Returns a fact, or, where it could not be gathered, an answer that says so: `the nodes cannot be read: forbidden`. That matters to
/// the packets of these clients.
pub(crate) fn read<'a, T>(
    fact: &'a Result<T, String>,
    missing: &str,
    matters: Stops,
) -> Result<&'a T, Answer> {
    let gap = |cause: &String| unknown(format!("{missing}: {cause}")).about(Scope::default(), matters);
    fact.as_ref().map_err(|cause| gap(cause).into())
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
            /// Answers all questions alike.
            #[allow(dead_code, reason = "not every hop has something that answers all of its questions")]
            pub(super) fn all(answer: impl Into<$crate::question::Answer>) -> Self {
                let answer = answer.into();
                Self { $($question: answer.clone(),)+ }
            }

            pub(super) fn report(self) -> $crate::question::HopReport {
                let Self { $($question,)+ } = self;
                $crate::question::HopReport::of($crate::hop::Hop::$hop, [$($question,)+])
            }
        }
    };
}
pub(crate) use questions;

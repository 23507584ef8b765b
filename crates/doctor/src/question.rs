//! The questions of a hop, and what they came to.
//!
//! A report of a hop is made of a struct with a field for each question, and an answer is never empty. So a question that was
//! forgotten does not compile, and one that nobody could answer is not known: neither looks like a hop that is well.

use crate::finding::Check;
use crate::hop::Hop;

/// What one question came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(Vec<Check>);

impl Answer {
    /// What was found, or else that this is so.
    pub fn found(checks: Vec<Check>, otherwise: impl FnOnce() -> Check) -> Self {
        Self(if checks.is_empty() { vec![otherwise()] } else { checks })
    }

    /// One of each subject; of no subject that it comes to this. What is said twice is said once.
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

    /// This, and that as well.
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

/// What a hop comes to: made of the answers to its questions only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopReport {
    hop: Hop,
    checks: Vec<Check>,
}

impl HopReport {
    /// The report of a hop with these questions. What several questions came to is said once.
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

    /// What was looked at, in order.
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
            /// All of them come to the same.
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

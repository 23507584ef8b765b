//! What became of the groups of a run. A group is begun at most twice, whatever ended it, and the second attempt counts as a whole.

use anyhow::Result;

use crate::report::{Attempt, Begun, Finding, Report};
use crate::run::docs::Seen;
use crate::run::queue::Queue;
use crate::scenario::Group;

/// What became of a group in one go through the queue.
pub(crate) struct Outcome {
    pub group: &'static Group,
    pub end: End,
}

pub(crate) enum End {
    Begun(Attempt),
    NotBegun(Cause),
}

/// Why a group was not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// This machine lacks something, or does not get it.
    Machine(String),
    Time(String),
    /// What it is made of cannot be built.
    Broken(String),
}

impl Outcome {
    /// What the queue holds of a group.
    ///
    /// # Errors
    /// The queue cannot be read.
    pub(crate) fn of(group: &'static Group, queue: &Queue, cause: impl FnOnce() -> Cause) -> Result<Self> {
        if !queue.was_taken(group) {
            return Ok(Self { group, end: End::NotBegun(cause()) });
        }
        let mut findings = queue.findings(group)?;
        if !queue.is_done(group) {
            findings.push(Finding::failure("group", group.name, "it did not come to its end"));
        }
        Ok(Self { group, end: End::Begun(Attempt { findings }) })
    }

    /// Whether it was begun and has failed.
    pub(crate) fn is_red(&self) -> bool {
        matches!(&self.end, End::Begun(attempt) if !attempt.is_good())
    }

    /// What was seen, where it was begun and all of it went well.
    pub(crate) fn good(&self) -> Option<Seen<'_>> {
        match &self.end {
            End::Begun(attempt) if attempt.is_good() => Some((self.group, &attempt.findings)),
            _ => None,
        }
    }
}

/// Groups as they stand after both rounds: one that was begun a second time is judged by that alone.
pub(crate) fn after_both(first: Vec<Outcome>, second: Vec<Outcome>) -> Vec<(Outcome, Option<Attempt>)> {
    let mut second = second;
    let judged = first.into_iter().map(|outcome| {
        let again = second.iter().position(|again| again.group.name == outcome.group.name);
        match again.map(|place| second.swap_remove(place)) {
            Some(again @ Outcome { end: End::Begun(_), .. }) => match outcome.end {
                End::Begun(earlier) => (again, Some(earlier)),
                End::NotBegun(_) => (again, None),
            },
            _ => (outcome, None),
        }
    });
    judged.collect()
}

/// The report of a run.
pub(crate) fn report(outcomes: Vec<(Outcome, Option<Attempt>)>, if_possible: bool) -> Report {
    let mut report = Report::default();
    let could_begin =
        outcomes.iter().any(|(outcome, _)| matches!(&outcome.end, End::NotBegun(Cause::Time(_))));
    for (Outcome { group, end }, earlier) in outcomes {
        match end {
            End::Begun(judged) => report.add_group(Begun { group: group.name, judged, earlier }),
            End::NotBegun(Cause::Broken(reason)) => {
                report.add(Finding::failure("group", group.name, &reason));
            }
            End::NotBegun(Cause::Machine(reason)) if !if_possible => {
                report.add(Finding::failure("group", group.name, &reason));
            }
            End::NotBegun(Cause::Machine(reason) | Cause::Time(reason)) => {
                report.leave_out(group.name, &reason);
            }
        }
    }
    if report.is_empty() && could_begin {
        report.add(Finding::failure("run", "groups", "none was begun, although this machine could run them"));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;
    use crate::scenario::GROUPS;

    fn begun(number: usize, verdicts: &[Verdict]) -> Outcome {
        let finding =
            |verdict: &Verdict| Finding { verdict: *verdict, ..Finding::failure("1 x", "a", "seen") };
        let findings = verdicts.iter().map(finding).collect();
        Outcome { group: &GROUPS[number], end: End::Begun(Attempt { findings }) }
    }

    fn not_begun(number: usize, cause: Cause) -> Outcome {
        Outcome { group: &GROUPS[number], end: End::NotBegun(cause) }
    }

    fn judged(first: Vec<Outcome>, second: Vec<Outcome>) -> Report {
        report(after_both(first, second), true)
    }

    #[test]
    fn the_whole_second_attempt_counts_and_nothing_of_the_first_one() {
        use Verdict::{Failed, Passed};
        let first = || vec![begun(0, &[Passed]), begun(1, &[Passed, Failed])];
        assert!(!judged(first(), Vec::new()).passed());
        let well = judged(first(), vec![begun(1, &[Passed, Passed])]);
        assert!(well.passed());
        assert!(well.summary().starts_with("3 cases passed, 0 failed"), "{}", well.summary());
        assert!(!judged(first(), vec![begun(1, &[Failed, Passed])]).passed());
    }

    #[test]
    fn what_there_is_no_time_for_stays_red() {
        let late = || vec![not_begun(1, Cause::Time("600 s are over".into()))];
        let report = judged(vec![begun(1, &[Verdict::Failed])], late());
        assert!(!report.passed());
        assert_eq!(report.summary(), "0 cases passed, 1 failed, 0 left out");
    }

    #[test]
    fn what_cannot_be_fetched_is_left_out_and_what_cannot_be_built_is_red() {
        let first = |cause| vec![begun(0, &[Verdict::Passed]), not_begun(1, cause)];
        let no_network = || Cause::Machine("etcd could not be fetched".into());
        let report = judged(first(no_network()), Vec::new());
        assert!(report.passed());
        assert_eq!(
            report.summary(),
            "1 cases passed, 0 failed, 0 left out, 1 group left out: life (etcd could not be fetched)"
        );
        assert!(!judged(first(Cause::Broken("wrong sum".into())), Vec::new()).passed());
        assert!(!super::report(after_both(first(no_network()), Vec::new()), false).passed());
    }

    #[test]
    fn a_run_that_begins_nothing_is_red_where_it_could_have() {
        let no_time = judged(vec![not_begun(0, Cause::Time("900 s are over".into()))], Vec::new());
        assert!(!no_time.is_empty() && !no_time.passed());
        let no_network = judged(vec![not_begun(0, Cause::Machine("no network".into()))], Vec::new());
        assert!(no_network.is_empty());
    }
}

//! All of a plan in one line, and as an exit code.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use super::line::Changes;
use super::outlook::{Outlook, State};

/// The sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// When the plan was made: it is a photograph.
    pub time: Timestamp,
    /// Objects that would be created, changed and deleted.
    #[serde(flatten)]
    pub changes: Changes,
    /// Subjects that the user or the operator has to change something for.
    pub refused: usize,
    /// Subjects that the cloud is at work on.
    pub waits: usize,
    /// Subjects that could not be planned.
    pub unknown: usize,
    /// Subjects whose connections would be interrupted.
    pub interrupted: usize,
    /// Subjects in all.
    pub subjects: usize,
}

impl Summary {
    /// The sum of these, which were planned at `time`.
    pub fn of(outlooks: &[Outlook], time: Timestamp) -> Self {
        let count = |holds: fn(&Outlook) -> bool| outlooks.iter().filter(|one| holds(one)).count();
        Self {
            time: time.round(jiff::Unit::Second).unwrap_or(time),
            changes: Changes::of(outlooks.iter().flat_map(|one| &one.changes)),
            refused: count(|one| matches!(one.state, State::Refused(_))),
            waits: count(|one| matches!(one.state, State::Waits(_))),
            unknown: count(|one| matches!(one.state, State::Unknown(_))),
            interrupted: count(|one| !one.interruptions.is_empty()),
            subjects: outlooks.len(),
        }
    }

    /// 0 nothing would be done, 2 something would, 3 something is refused, 1 something could not be planned.
    pub fn exit_code(&self) -> u8 {
        if self.unknown > 0 {
            1
        } else if self.refused > 0 {
            3
        } else if self.changes != Changes::default() || self.waits > 0 {
            2
        } else {
            0
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changes, refused, waits, unknown, .. } = self;
        write!(f, "Plan: {changes}")?;
        for (count, what) in
            [(refused, "refused"), (waits, "waiting for the cloud"), (unknown, "could not be planned")]
        {
            if *count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        f.write_str(".")
    }
}

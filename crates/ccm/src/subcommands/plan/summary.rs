//! All of a plan as text for people, in one line, and as an exit code.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use serde::Serialize;

use super::adoption::Adoption;
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

/// Bold, where the reader's terminal can show it.
fn bold(text: &str, colours: bool) -> String {
    if colours { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// The plan. What interrupts connections is said first and last.
pub(super) fn text(
    outlooks: &[Outlook],
    summary: &Summary,
    adoption: Option<&Adoption>,
    colours: bool,
) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut line = |parts: fmt::Arguments<'_>| {
        let _ = text.write_fmt(parts);
        text.push('\n');
    };
    line(format_args!("{}, as of {}", interruption(summary, colours), summary.time));
    for one in outlooks.iter().filter(|one| !one.interruptions.is_empty()) {
        for interruption in &one.interruptions {
            line(format_args!("  {}: {interruption}", one.subject));
        }
    }
    for one in outlooks.iter().filter(|one| is_worth_a_word(one)) {
        line(format_args!("{}", head(one)));
        for change in &one.changes {
            let mut parts: Vec<String> = Vec::new();
            parts.extend((!change.name.is_empty()).then(|| change.name.clone()));
            parts.extend(change.id.as_ref().map(|id| format!("({id})")));
            let fields: Vec<String> = change.fields.iter().map(ToString::to_string).collect();
            parts.extend((!fields.is_empty()).then(|| fields.join("; ")));
            line(format_args!("  {:<3} {:<15} {}", change.mark, change.kind, parts.join(" ")));
        }
        if !one.unchanged.is_empty() {
            let counts: Vec<String> =
                one.unchanged.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            line(format_args!("  =   {}: no change", counts.join(", ")));
        }
        match &one.state {
            State::Converged => {}
            State::Waits(cause) => line(format_args!("  !   waits           {cause}")),
            State::Refused(cause) => line(format_args!("  !   refused         {cause}")),
            State::Unknown(cause) => line(format_args!("  !   could not plan  {cause}")),
        }
        for warning in &one.warnings {
            line(format_args!("  !   warning         {warning}"));
        }
    }
    if let Some(adoption) = adoption {
        line(format_args!("{adoption}"));
    }
    line(format_args!("{summary} {}.", interruption(summary, colours)));
    text
}

fn is_worth_a_word(one: &Outlook) -> bool {
    !one.changes.is_empty() || one.state != State::Converged || !one.warnings.is_empty()
}

fn head(one: &Outlook) -> String {
    let id = one.load_balancer.as_ref().map(|id| format!("   load balancer {id}"));
    let maker = one.made_by.as_ref().map(|maker| format!(" (made by {maker})"));
    format!("{}{}{}", one.subject, id.unwrap_or_default(), maker.unwrap_or_default())
}

fn interruption(summary: &Summary, colours: bool) -> String {
    match summary.interrupted {
        0 if summary.unknown > 0 => {
            "No interruption is known, but not everything could be planned".to_owned()
        }
        0 => "No connection is interrupted".to_owned(),
        1 => bold("Connections of 1 Service are INTERRUPTED", colours),
        many => bold(&format!("Connections of {many} Services are INTERRUPTED"), colours),
    }
}

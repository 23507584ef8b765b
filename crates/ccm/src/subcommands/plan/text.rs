//! A plan for people.

use std::fmt::Write as _;

use super::adoption::Adoption;
use super::outlook::{Outlook, State};
use super::summary::Summary;

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
    let mut line = |parts: std::fmt::Arguments<'_>| {
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

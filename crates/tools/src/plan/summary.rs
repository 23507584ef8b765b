//! A plan as text for users, as one line, and as an exit code.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use serde::Serialize;

use super::adoption::Adoption;
use super::changes::{Changes, lines};
use super::forecast::{Forecast, State};
use crate::help::{EXIT_FOUND, EXIT_NEEDS_A_PERSON};
use crate::output::plural;

/// The totals of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// When the plan was made; later changes are not in it.
    pub time: Timestamp,
    /// Objects that would be created, changed and deleted.
    #[serde(flatten)]
    pub changes: Changes,
    /// Subjects for which the user or the operator has to change something.
    pub refused: usize,
    /// Subjects on which the cloud is working.
    pub waits: usize,
    /// Subjects that could not be planned.
    pub unknown: usize,
    /// Subjects with interrupted connections.
    pub interrupted: usize,
    /// Services that switch the PROXY protocol, at which moment their pods have to follow.
    pub proxy_switches: usize,
    /// Services whose load balancer keeps a setting that should change.
    pub kept: usize,
    /// Examined Services.
    pub services: usize,
    /// Examined nodes; absent where only Services were planned.
    pub nodes: Option<usize>,
    /// Questions for the user to answer first.
    pub questions: Vec<String>,
}

impl Summary {
    /// Sums the forecasts, which were made at `time`.
    pub fn of(forecasts: &[Forecast], time: Timestamp, looked_at: LookedAt) -> Self {
        let LookedAt { services, nodes, cluster_name } = looked_at;
        let count = |holds: fn(&Forecast) -> bool| forecasts.iter().filter(|one| holds(one)).count();
        Self {
            time: time.round(jiff::Unit::Second).unwrap_or(time),
            changes: Changes::of(forecasts.iter().flat_map(|one| &one.changes)),
            refused: count(|one| matches!(one.state, State::Refused(_))),
            waits: count(|one| matches!(one.state, State::Waits(_))),
            unknown: count(|one| matches!(one.state, State::Unknown(_))),
            interrupted: count(|one| !one.interruptions.is_empty()),
            proxy_switches: count(|one| one.proxy_switches > 0),
            kept: count(|one| matches!(one.state, State::Keeps(_))),
            services,
            nodes,
            questions: questions(forecasts, cluster_name),
        }
    }

    /// Returns the exit code; for its meaning see [`crate::help`].
    pub fn exit_code(&self) -> u8 {
        if self.unknown > 0 {
            1
        } else if self.refused + self.kept > 0 || !self.questions.is_empty() {
            EXIT_NEEDS_A_PERSON
        } else if self.changes != Changes::default() || self.waits > 0 {
            EXIT_FOUND
        } else {
            0
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changes, refused, kept, waits, unknown, services, nodes, .. } = self;
        match *changes == Changes::default() {
            true => f.write_str("No changes")?,
            false => write!(f, "Plan: {changes}")?,
        }
        for (count, what) in [
            (refused, "refused"),
            (kept, "with a setting that is kept"),
            (waits, "waiting for the cloud"),
            (unknown, "could not be planned"),
        ] {
            if *count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        write!(f, ": {}", plural(*services, "Service"))?;
        if let Some(nodes) = nodes {
            write!(f, ", {}", plural(*nodes, "node"))?;
        }
        f.write_str(" checked.")
    }
}

/// The scope of a plan.
#[derive(Clone, Copy, Debug)]
pub struct LookedAt<'a> {
    /// Examined Services.
    pub services: usize,
    /// Examined nodes, if nodes were planned too.
    pub nodes: Option<usize>,
    /// The value of `--cluster-name`.
    pub cluster_name: &'a str,
}

/// Asks about the cluster name if names of load balancers have another one: everything else may be wrong then.
fn questions(forecasts: &[Forecast], cluster_name: &str) -> Vec<String> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for name in
        forecasts.iter().filter_map(|one| one.other_cluster.as_deref()).filter(|name| *name != cluster_name)
    {
        *counts.entry(name).or_default() += 1;
    }
    let question = |(name, count): (&str, usize)| {
        let (verb, services) =
            if count == 1 { ("is", "1 load balancer") } else { ("are", &*format!("{count} load balancers")) };
        format!(
            "{services} {verb} named kube_service_{name}_…, but this plan is for --cluster-name={cluster_name}. If {name} is the right \
             name, plan again with --cluster-name={name}; if the cluster was renamed, add {name} to former-cluster-names in cloud.conf. Do not \
             change any Service until then."
        )
    };
    counts.into_iter().map(question).collect()
}

/// Returns the text in bold, if the terminal shows styles.
fn bold(text: &str, colours: bool) -> String {
    if colours { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Renders the plan. Interruptions of connections are both first and last.
pub(super) fn text(
    forecasts: &[Forecast],
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
    for question in &summary.questions {
        line(format_args!("! {}", bold(question, colours)));
    }
    line(format_args!("Planned at {}: {}.", summary.time, interruption(summary, colours)));
    if summary.proxy_switches > 0 {
        line(format_args!(
            "! {} the PROXY protocol: switch the pods at the same moment, see below.",
            if summary.proxy_switches == 1 {
                "1 Service switches".to_owned()
            } else {
                format!("{} Services switch", summary.proxy_switches)
            }
        ));
    }
    for one in forecasts.iter().filter(|one| !one.interruptions.is_empty()) {
        for interruption in &one.interruptions {
            line(format_args!("  {}: {interruption}", one.subject));
        }
    }
    for one in forecasts.iter().filter(|one| is_worth_a_word(one)) {
        line(format_args!("{}", head(one)));
        for change in lines(&one.changes) {
            line(format_args!("{change}"));
        }
        for members in &one.removed_members {
            line(format_args!("      reason          {members}"));
        }
        if !one.unchanged.is_empty() {
            let counts: Vec<String> =
                one.unchanged.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            line(format_args!("  =   {}: no change", counts.join(", ")));
        }
        match &one.state {
            State::Settled => {}
            State::Waits(cause) => line(format_args!("  !   waits           {cause}")),
            State::Keeps(cause) => line(format_args!("  !   keeps           {cause}")),
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
    line(format_args!("{summary}"));
    text
}

fn is_worth_a_word(one: &Forecast) -> bool {
    !one.changes.is_empty() || one.state != State::Settled || !one.warnings.is_empty()
}

fn head(one: &Forecast) -> String {
    let id = one.load_balancer.as_ref().map(|id| format!("   load balancer {id}"));
    let maker = one.made_by.as_ref().map(|maker| format!(" (made by {maker})"));
    format!("{}{}{}", one.subject, id.unwrap_or_default(), maker.unwrap_or_default())
}

fn interruption(summary: &Summary, colours: bool) -> String {
    match summary.interrupted {
        0 if summary.unknown > 0 => {
            "no interruption is expected, but not everything could be planned".to_owned()
        }
        0 if summary.proxy_switches > 0 => {
            bold("connections FAIL until the pods switch the PROXY protocol too", colours)
        }
        0 if !summary.questions.is_empty() => "not reliable until the question is answered".to_owned(),
        0 => "no connections will be interrupted".to_owned(),
        1 => bold("connections of 1 Service will be INTERRUPTED", colours),
        many => bold(&format!("connections of {many} Services will be INTERRUPTED"), colours),
    }
}

//! The ways of packets from a pod, a node and outside, with the break on them, as a diagram that people paste into an issue.

use std::fmt::Write as _;

use super::Outcome;
use crate::hop::{Hop, Origin};
use crate::report::{End, Report};
use openstack_ccm_core::text::printable;

/// A diagram for each Service, in one text.
pub fn text(outcome: &Outcome) -> String {
    let diagrams: Vec<String> = outcome.reports.iter().map(diagram).collect();
    diagrams.join("\n")
}

pub fn diagram(report: &Report) -> String {
    let mut text = String::from("flowchart LR\n");
    let destinations = report.destinations.join(", ");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  %% {}", one_line(&report.subject));
    for (id, label) in [("pod", "a pod"), ("node", "a process on a node"), ("outside", "a client outside")] {
        let _ = writeln!(text, "  {id}([\"{label}\"])");
    }
    for hop in &report.hops {
        let label = match hop.hop {
            Hop::Status if !destinations.is_empty() => format!("{} {destinations}", hop.hop.title()),
            other => other.title().to_owned(),
        };
        let verdict = hop.verdict().as_str();
        let _ = writeln!(text, "  {}[\"{}<br/>{verdict}\"]:::{}", id(hop.hop), quoted(&label), verdict);
    }
    for (origin, start) in Origin::ALL.into_iter().zip(["pod", "node", "outside"]) {
        way(&mut text, report, origin, start);
    }
    for (class, style) in [
        ("ok", "stroke:#2e7d32"),
        ("warning", "stroke:#f9a825,stroke-width:3px"),
        ("break", "stroke:#c62828,stroke-width:3px"),
        ("unknown", "stroke:#757575,stroke-dasharray:4"),
        ("skipped", "stroke:#bdbdbd"),
    ] {
        let _ = writeln!(text, "  classDef {class} {style}");
    }
    text
}

/// The arrows of one way, up to where it ends.
fn way(text: &mut String, report: &Report, origin: Origin, start: &str) {
    let end = report.end(origin);
    let stop = match &end {
        End::Ends(hop, ..) => Some(*hop),
        End::MayEnd(..) | End::Arrives { .. } | End::Unknown(_) => None,
    };
    let arrow = if matches!(end, End::Unknown(_) | End::MayEnd(..)) { "-.->" } else { "-->" };
    let mut from = start.to_owned();
    for hop in report.route(origin) {
        if Some(hop) == stop {
            let label = match &end {
                End::Ends(_, code, _) => code.as_str(),
                _ => "",
            };
            let _ = writeln!(text, "  {from} --x|{label}| {}", id(hop));
            return;
        }
        let _ = writeln!(text, "  {from} {arrow} {}", id(hop));
        from = id(hop).to_owned();
    }
}

fn id(hop: Hop) -> &'static str {
    match hop {
        Hop::Name => "hop1",
        Hop::Status => "hop2",
        Hop::Node => "hop3",
        Hop::Way => "hop4",
        Hop::LoadBalancer => "hop5",
        Hop::Header => "hop6",
        Hop::Member => "hop7",
        Hop::NodePort => "hop8",
        Hop::Backend => "hop9",
    }
}

/// A text between quotation marks: mermaid reads entities and tags in it.
fn quoted(text: &str) -> String {
    let mut shown = String::new();
    for character in printable(text).chars() {
        match character {
            '"' => shown.push_str("#quot;"),
            '#' => shown.push_str("#35;"),
            '<' => shown.push_str("#lt;"),
            '>' => shown.push_str("#gt;"),
            '`' => shown.push_str("#96;"),
            other => shown.push(other),
        }
    }
    shown
}

/// A comment may not hold what ends it, nor what mermaid reads as a directive.
fn one_line(text: &str) -> String {
    printable(text).replace(['{', '}'], "")
}

//! A diagram of the paths of packets from pods, nodes and outside, with the break on them, to paste into an issue.

use std::fmt::Write as _;

use super::Outcome;
use crate::hop::{Hop, Origin};
use crate::report::{End, Report, Verdict};
use openstack_ccm_core::text::printable;

/// Renders a diagram for each Service, all in one text.
pub fn text(outcome: &Outcome) -> String {
    let diagrams: Vec<String> = outcome.reports.iter().map(diagram).collect();
    diagrams.join("\n")
}

/// A node of the diagram, with the hops that are judged there.
#[derive(Clone, Copy)]
struct Place {
    id: &'static str,
    label: &'static str,
    hops: &'static [Hop],
}

const PLACES: [Place; 5] = [
    Place { id: "proxy", label: "service proxy of the node", hops: &[Hop::Node] },
    Place { id: "balancer", label: "load balancer", hops: &[Hop::LoadBalancer, Hop::Header] },
    Place { id: "member", label: "node port of a member", hops: &[Hop::Member, Hop::NodePort] },
    Place { id: "application", label: "application", hops: &[Hop::Backend] },
    Place { id: "controller", label: "controller", hops: &[Hop::Controller] },
];

/// An arrow between two places, with the hops that a packet meets on it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Arrow {
    from: &'static str,
    to: &'static str,
    hops: &'static [Hop],
}

const FROM_POD: Arrow = Arrow { from: "pod", to: "proxy", hops: &[Hop::Name, Hop::Status, Hop::Node] };
const FROM_NODE: Arrow = Arrow { from: "node", to: "proxy", hops: &[Hop::Name, Hop::Status, Hop::Node] };
const FROM_OUTSIDE: Arrow =
    Arrow { from: "outside", to: "balancer", hops: &[Hop::Name, Hop::Status, Hop::Way] };
const THROUGH: Arrow = Arrow { from: "proxy", to: "balancer", hops: &[Hop::Way] };
const TO_MEMBER: Arrow =
    Arrow { from: "balancer", to: "member", hops: &[Hop::LoadBalancer, Hop::Header, Hop::Member] };
const TO_APPLICATION: Arrow =
    Arrow { from: "member", to: "application", hops: &[Hop::NodePort, Hop::Backend] };
/// The short circuit, which the status allows.
const AROUND: Arrow =
    Arrow { from: "proxy", to: "application", hops: &[Hop::Status, Hop::NodePort, Hop::Backend] };

/// The fate of packets on an arrow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// No packets get here.
    Unused,
    Pass,
    /// Some packets may not pass, or it is not known.
    Doubt,
    End,
}

pub fn diagram(report: &Report) -> String {
    let mut text = String::from("flowchart LR\n");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  %% {}", one_line(&report.subject));
    for (id, label) in [("pod", "pods"), ("node", "processes on nodes"), ("outside", "clients outside")] {
        let _ = writeln!(text, "  {id}([\"{label}\"])");
    }
    let destinations = report.destinations.join(", ");
    for Place { id, label, hops } in PLACES {
        let shown = if id == "balancer" { format!("{label} {destinations}") } else { label.to_owned() };
        let of_place = report.hops.iter().filter(|hop| hops.contains(&hop.hop()));
        let verdict = of_place.map(crate::question::HopReport::verdict).max().unwrap_or(Verdict::NotKnown);
        let verdict = verdict.as_str();
        let _ = writeln!(text, "  {id}[\"{}<br/>{verdict}\"]:::{verdict}", quoted(shown.trim_end()));
    }
    let mut red = Vec::new();
    for (number, (arrow, fate, label)) in arrows(report).into_iter().enumerate() {
        let shape = match fate {
            Fate::Unused => "-.-",
            Fate::Pass => "-->",
            Fate::Doubt => "-.->",
            Fate::End => "--x",
        };
        let around = (arrow == AROUND).then_some("short circuit");
        let words: Vec<&str> = around.into_iter().chain(label.as_deref()).collect();
        let label = if words.is_empty() { String::new() } else { format!("|\"{}\"|", words.join(" ")) };
        let _ = writeln!(text, "  {} {shape}{label} {}", arrow.from, arrow.to);
        if fate == Fate::End {
            red.push(number.to_string());
        }
    }
    let _ = writeln!(text, "  controller -.- balancer");
    if !red.is_empty() {
        let _ = writeln!(text, "  linkStyle {} stroke:#c62828,stroke-width:3px", red.join(","));
    }
    for (class, style) in [
        ("ok", "stroke:#2e7d32"),
        ("warning", "stroke:#f9a825,stroke-width:3px"),
        ("break", "stroke:#c62828,stroke-width:3px"),
        ("not-seen", "stroke:#2e7d32,stroke-dasharray:4"),
        ("not-known", "stroke:#757575,stroke-dasharray:4"),
        ("skipped", "stroke:#bdbdbd"),
    ] {
        let _ = writeln!(text, "  classDef {class} {style}");
    }
    text
}

/// Lists each arrow once, with the worst fate of its packets and the code of the break.
fn arrows(report: &Report) -> Vec<(Arrow, Fate, Option<String>)> {
    let mut arrows = vec![FROM_POD, FROM_NODE, FROM_OUTSIDE, THROUGH, TO_MEMBER, TO_APPLICATION];
    if report.short_circuit() {
        arrows.push(AROUND);
    }
    let mut drawn: Vec<(Arrow, Fate, Option<String>)> =
        arrows.into_iter().map(|arrow| (arrow, Fate::Unused, None)).collect();
    for origin in Origin::ALL {
        let end = report.end(origin);
        for (arrow, fate, code) in on_the_way(report, origin, &end) {
            if let Some(known) = drawn.iter_mut().find(|(known, ..)| *known == arrow)
                && fate > known.1
            {
                (known.1, known.2) = (fate, code);
            }
        }
    }
    drawn
}

/// Lists the arrows that packets of an origin take, up to where they end.
fn on_the_way(report: &Report, origin: Origin, end: &End) -> Vec<(Arrow, Fate, Option<String>)> {
    let first = match origin {
        Origin::Pod => FROM_POD,
        Origin::Node => FROM_NODE,
        Origin::Outside => FROM_OUTSIDE,
    };
    let around = origin != Origin::Outside && report.short_circuit();
    let way: &[Arrow] = match (origin, around) {
        (Origin::Outside, _) => &[TO_MEMBER, TO_APPLICATION],
        (_, true) => &[AROUND],
        (_, false) => &[THROUGH, TO_MEMBER, TO_APPLICATION],
    };
    let mut taken = Vec::new();
    for arrow in std::iter::once(&first).chain(way) {
        // The status allows the short circuit, so the diagram shows its break on the arrow of the short circuit.
        let meets =
            |hop: &Hop| arrow.hops.contains(hop) && !(around && *arrow == first && *hop == Hop::Status);
        match end {
            End::Ends(hop, code, _) if meets(hop) => {
                taken.push((*arrow, Fate::End, Some(code.to_string())));
                return taken;
            }
            End::MayEnd(hop, code, _) if meets(hop) => {
                taken.push((*arrow, Fate::Doubt, Some(code.to_string())));
            }
            End::NotKnown(hops) if hops.iter().any(meets) => {
                taken.push((*arrow, Fate::Doubt, Some("not known".to_owned())));
            }
            End::NoFault { unseen, .. } if unseen.iter().any(|(hop, _)| meets(hop)) => {
                taken.push((*arrow, Fate::Doubt, Some("not seen".to_owned())));
            }
            _ => taken.push((*arrow, Fate::Pass, None)),
        }
    }
    taken
}

/// Escapes a text between quotation marks, in which mermaid reads entities and tags.
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

/// Escapes a comment: it must not contain line breaks, nor what mermaid reads as a directive.
fn one_line(text: &str) -> String {
    printable(text).replace(['{', '}'], "")
}

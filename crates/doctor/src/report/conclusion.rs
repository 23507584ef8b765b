//! Where packets end, in one of five words, and what that stands on.

use std::collections::BTreeSet;
use std::fmt;

use openstack_ccm_core::text::some_of;

use crate::code::Code;
use crate::hop::{Flow, Hop, Origin};

/// Where packets end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// An object shows that they end.
    Ends(Hop, Code, String),
    /// An object shows that they may end, or that only some of them do.
    MayEnd(Hop, Code, String),
    /// The end is not known, because questions about these hops failed.
    NotKnown(BTreeSet<Hop>),
    /// All that was seen is as it should be.
    NoFault {
        /// Whether nodes send packets around the load balancer.
        around: bool,
        /// What no object shows.
        unseen: BTreeSet<(Hop, String)>,
    },
    /// The application answered packets.
    Arrives {
        /// Whether nodes send packets around the load balancer.
        around: bool,
        /// The nodes that sent them.
        nodes: BTreeSet<String>,
    },
}

impl End {
    /// Returns the end in one word, as programs read it.
    pub fn verdict(&self) -> &'static str {
        match self {
            Self::Ends(..) => "ends",
            Self::MayEnd(..) => "may-end",
            Self::NotKnown(_) => "not-known",
            Self::NoFault { .. } => "no-fault-found",
            Self::Arrives { .. } => "arrives",
        }
    }

    /// Returns whether nothing is wrong or in doubt.
    pub fn is_green(&self) -> bool {
        matches!(self, Self::NoFault { .. } | Self::Arrives { .. })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = |around: bool| if around { "around" } else { "through" };
        match self {
            Self::Ends(hop, code, text) => write!(f, "ends at {hop}: {text} [{code}]"),
            Self::MayEnd(hop, code, text) => write!(f, "may end at {hop}: {text} [{code}]"),
            Self::NotKnown(hops) => {
                let hops: Vec<&str> = hops.iter().map(|hop| hop.title()).collect();
                write!(f, "not known: {} could not be checked", listed(&hops))
            }
            Self::NoFault { around, unseen } => {
                write!(f, "no fault found {} the load balancer (no packet was sent", way(*around))?;
                let mut said: Vec<&str> = Vec::new();
                for (_, text) in unseen {
                    if !said.contains(&text.as_str()) {
                        said.push(text);
                    }
                }
                if !said.is_empty() {
                    write!(f, "; not seen: {}", said.join("; "))?;
                }
                f.write_str(")")
            }
            Self::Arrives { around, nodes } => {
                let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
                let way = way(*around);
                write!(
                    f,
                    "arrives at the application {way} the load balancer (answered on {})",
                    some_of(&nodes, 5)
                )
            }
        }
    }
}

/// `a, b and c`
pub(super) fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}

/// The end of the packets of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    pub flow: Flow,
    pub end: End,
    /// The only networks from which clients are admitted; empty for all.
    pub only_from: Vec<String>,
    /// Policies whose pods are not admitted.
    pub not_from: Vec<String>,
}

/// The ends of the packets of one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    pub origin: Origin,
    /// The end of all flows together.
    pub end: End,
    /// The only networks from which clients are admitted; empty for all.
    pub only_from: Vec<String>,
    /// Policies whose pods are not admitted.
    pub not_from: Vec<String>,
    /// The end of each flow.
    pub flows: Vec<FlowEnd>,
}

impl Conclusion {
    pub(super) fn of(origin: Origin, flows: Vec<FlowEnd>) -> Self {
        let all = |of: fn(&FlowEnd) -> &Vec<String>| -> Vec<String> {
            let names: BTreeSet<&String> = flows.iter().flat_map(of).collect();
            names.into_iter().cloned().collect()
        };
        let (mut only_from, not_from) = (all(|flow| &flow.only_from), all(|flow| &flow.not_from));
        if flows.iter().any(|flow| flow.only_from.is_empty()) {
            only_from.clear();
        }
        Self { origin, end: sum(&flows), only_from, not_from, flows }
    }
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.end.fmt(f)?;
        if self.end.is_green() && !self.only_from.is_empty() {
            write!(f, ", from {} only", some_of(&self.only_from, 3))?;
        }
        if self.end.is_green() && !self.not_from.is_empty() {
            write!(f, ", but not from the pods of NetworkPolicy {}", some_of(&self.not_from, 3))?;
        }
        let well: Vec<String> = self.flows.iter().filter(|flow| flow.end.is_green()).map(port_of).collect();
        if matches!(self.end, End::MayEnd(..)) && !well.is_empty() && well.len() < self.flows.len() {
            write!(f, "; no fault found for {}", some_of(&well, 3))?;
        }
        Ok(())
    }
}

fn port_of(flow: &FlowEnd) -> String {
    let Flow { to, port } = &flow.flow;
    if to.is_empty() { port.to_string() } else { format!("{to} {port}") }
}

/// Combines the ends of several flows: the worst counts.
fn sum(flows: &[FlowEnd]) -> End {
    let ends = || flows.iter().map(|flow| &flow.end);
    let first = |wanted: fn(&End) -> bool| ends().find(|end| wanted(end)).cloned();
    match first(|end| matches!(end, End::Ends(..))) {
        Some(End::Ends(hop, code, text)) if !ends().all(|end| matches!(end, End::Ends(..))) => {
            return End::MayEnd(hop, code, text);
        }
        Some(end) => return end,
        None => {}
    }
    if let Some(end) = first(|end| matches!(end, End::MayEnd(..))) {
        return end;
    }
    let (mut dark, mut unseen, mut answered_on) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut is_around, mut is_seen) = (false, true);
    for end in ends() {
        match end {
            End::NotKnown(hops) => dark.extend(hops.iter().copied()),
            End::NoFault { around, unseen: more } => {
                (is_around, is_seen) = (is_around | around, false);
                unseen.extend(more.iter().cloned());
            }
            End::Arrives { around, nodes } => {
                is_around |= around;
                answered_on.extend(nodes.iter().cloned());
            }
            End::Ends(..) | End::MayEnd(..) => {}
        }
    }
    if flows.is_empty() {
        dark.insert(Hop::Status);
    }
    match (dark.is_empty(), is_seen) {
        (false, _) => End::NotKnown(dark),
        (true, false) => End::NoFault { around: is_around, unseen },
        (true, true) => End::Arrives { around: is_around, nodes: answered_on },
    }
}

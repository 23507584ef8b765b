//! Where packets end, and the evidence for it.

use std::fmt;

use openstack_ccm_core::text::some_of;

use crate::code::Code;
use crate::hop::{Flow, Hop, Origin};

/// The kind of evidence for a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// None: the end is not known.
    Unknown,
    /// The state of objects of Kubernetes and of the cloud.
    Derived,
    /// An answered packet.
    Seen,
}

impl Grade {
    /// Returns the grade in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Derived => "derived",
            Self::Seen => "seen",
        }
    }
}

/// Where packets end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// At the application.
    Arrives {
        /// Whether nodes send packets around the load balancer.
        around: bool,
        /// Whether a packet was sent and answered.
        seen: bool,
    },
    Ends(Hop, Code, String),
    /// Packets may end at a hop, or only some of them do.
    MayEnd(Hop, Code, String),
    /// The end is not known, because these hops have unknown results.
    Unknown(Vec<Hop>),
}

impl End {
    /// Returns the end in one word.
    pub fn verdict(&self) -> &'static str {
        match self {
            Self::Arrives { seen: true, .. } => "reaches",
            Self::Arrives { seen: false, .. } => "should-reach",
            Self::Ends(..) => "ends",
            Self::MayEnd(..) => "may-end",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Returns the kind of evidence.
    pub fn grade(&self) -> Grade {
        match self {
            Self::Arrives { seen: true, .. } => Grade::Seen,
            Self::Arrives { seen: false, .. } | Self::Ends(..) | Self::MayEnd(..) => Grade::Derived,
            Self::Unknown(_) => Grade::Unknown,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrives { around, seen } => {
                let way = if *around { "around" } else { "through" };
                match seen {
                    true => write!(f, "reaches the application {way} the load balancer (seen)"),
                    false => {
                        write!(f, "should reach the application {way} the load balancer (no packet sent)")
                    }
                }
            }
            Self::Ends(hop, code, text) => write!(f, "ends at {hop}: {text} [{code}]"),
            Self::MayEnd(hop, code, text) => write!(f, "may end at {hop}: {text} [{code}]"),
            Self::Unknown(hops) => {
                let hops: Vec<&str> = hops.iter().map(|hop| hop.title()).collect();
                write!(f, "not known: {} could not be checked", listed(&hops))
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
}

/// The ends of the packets of one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    pub origin: Origin,
    /// The end of all flows together.
    pub end: End,
    /// The only networks from which clients are admitted; empty for all.
    pub only_from: Vec<String>,
    /// The end of each flow.
    pub flows: Vec<FlowEnd>,
}

impl Conclusion {
    pub(super) fn of(origin: Origin, flows: Vec<FlowEnd>) -> Self {
        let mut only_from: Vec<String> = flows.iter().flat_map(|flow| flow.only_from.clone()).collect();
        only_from.sort();
        only_from.dedup();
        if flows.iter().any(|flow| flow.only_from.is_empty()) {
            only_from.clear();
        }
        Self { origin, end: sum(&flows), only_from, flows }
    }

    /// Returns whether packets arrive, as far as is known.
    pub fn is_green(&self) -> bool {
        matches!(self.end, End::Arrives { .. })
    }
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.end.fmt(f)?;
        if self.is_green() && !self.only_from.is_empty() {
            write!(f, ", from {} only", some_of(&self.only_from, 3))?;
        }
        let well: Vec<String> =
            self.flows.iter().filter(|flow| matches!(flow.end, End::Arrives { .. })).map(port_of).collect();
        if matches!(self.end, End::MayEnd(..)) && !well.is_empty() && well.len() < self.flows.len() {
            write!(f, "; not so {}", some_of(&well, 3))?;
        }
        Ok(())
    }
}

fn port_of(flow: &FlowEnd) -> String {
    let Flow { to, port } = &flow.flow;
    if to.is_empty() { port.to_string() } else { format!("{to} {port}") }
}

/// Combines the ends of several flows.
fn sum(flows: &[FlowEnd]) -> End {
    let ends = || flows.iter().map(|flow| &flow.end);
    let first = |wanted: fn(&End) -> bool| ends().find(|end| wanted(end)).cloned();
    if let Some(end) = first(|end| matches!(end, End::Ends(..))) {
        return match end {
            End::Ends(hop, code, text) if !ends().all(|end| matches!(end, End::Ends(..))) => {
                End::MayEnd(hop, code, text)
            }
            end => end,
        };
    }
    if let Some(end) = first(|end| matches!(end, End::MayEnd(..))) {
        return end;
    }
    let mut dark: Vec<Hop> = Vec::new();
    let (mut is_around, mut is_seen) = (false, !flows.is_empty());
    for end in ends() {
        match end {
            End::Unknown(hops) => dark.extend(hops),
            End::Arrives { around, seen } => {
                is_around |= around;
                is_seen &= seen;
            }
            End::Ends(..) | End::MayEnd(..) => {}
        }
    }
    dark.sort_unstable();
    dark.dedup();
    if flows.is_empty() {
        dark.push(Hop::Status);
    }
    if dark.is_empty() { End::Arrives { around: is_around, seen: is_seen } } else { End::Unknown(dark) }
}

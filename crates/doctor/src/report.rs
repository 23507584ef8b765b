//! All that is said about one Service, and where packets to it end.

use std::fmt;

use crate::code::{Code, Severity};
use crate::finding::{Check, Finding, Unknown};
use crate::hop::{Flow, Hop, Origin};
use crate::question::HopReport;
use openstack_ccm_core::text::some_of;

/// What a hop comes to: the worst of its looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// There was nothing to look at.
    Skipped,
    /// All is well.
    Ok,
    /// It could not be looked at, or not all of it.
    Unknown,
    Warning,
    Break,
}

impl Verdict {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Break => "break",
        }
    }

    fn of(check: &Check) -> Self {
        match check {
            Check::Skipped(_) => Self::Skipped,
            Check::Ok(_) => Self::Ok,
            Check::Unknown(_) => Self::Unknown,
            Check::Found(finding) => match finding.severity() {
                Severity::Info => Self::Ok,
                Severity::Warning => Self::Warning,
                Severity::Error => Self::Break,
            },
        }
    }
}

impl HopReport {
    /// What it comes to.
    pub fn verdict(&self) -> Verdict {
        self.checks().iter().map(Verdict::of).max().unwrap_or(Verdict::Unknown)
    }
}

/// What a conclusion stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Nobody knows.
    Unknown,
    /// Objects of Kubernetes and of the cloud.
    Derived,
    /// A packet.
    Seen,
}

impl Grade {
    /// In one word.
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
        /// Whether nodes take a short cut around the load balancer.
        around: bool,
        /// Whether one was sent, and answered.
        seen: bool,
    },
    Ends(Hop, Code, String),
    /// Perhaps, or for some, at a hop.
    MayEnd(Hop, Code, String),
    /// Nobody knows, because this is not known of these hops.
    Unknown(Vec<Hop>),
}

impl End {
    /// In one word.
    pub fn verdict(&self) -> &'static str {
        match self {
            Self::Arrives { seen: true, .. } => "reaches",
            Self::Arrives { seen: false, .. } => "should-reach",
            Self::Ends(..) => "ends",
            Self::MayEnd(..) => "may-end",
            Self::Unknown(_) => "unknown",
        }
    }

    /// What it stands on.
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
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}

/// What becomes of packets of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    pub flow: Flow,
    pub end: End,
    /// Networks outside of which clients are refused; empty for all.
    pub only_from: Vec<String>,
}

/// What becomes of packets from one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    pub origin: Origin,
    /// All of them together.
    pub end: End,
    /// Networks outside of which clients are refused; empty for all.
    pub only_from: Vec<String>,
    /// To each address or hostname, at each port.
    pub flows: Vec<FlowEnd>,
}

impl Conclusion {
    fn of(origin: Origin, flows: Vec<FlowEnd>) -> Self {
        let mut only_from: Vec<String> = flows.iter().flat_map(|flow| flow.only_from.clone()).collect();
        only_from.sort();
        only_from.dedup();
        if flows.iter().any(|flow| flow.only_from.is_empty()) {
            only_from.clear();
        }
        Self { origin, end: sum(&flows), only_from, flows }
    }

    /// Whether nothing speaks against it that packets arrive.
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

/// What the ends of several flows come to together.
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

/// All that is said about one Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// `shop/web`
    pub subject: String,
    /// Where clients go: `203.0.113.10`, or a hostname.
    pub destinations: Vec<String>,
    /// What packets may be about: each destination, at each port.
    pub flows: Vec<Flow>,
    /// Destinations to which nodes are expected to send packets of pods around the load balancer.
    pub around: Vec<String>,
    /// Destinations that are hostnames.
    pub hostnames: Vec<String>,
    /// Flows in which pods on all nodes dialled, and were answered by the application.
    pub answered: Vec<Flow>,
    /// Flows with the networks from which the listener accepts connections.
    pub only_from: Vec<(Flow, Vec<String>)>,
    /// The hops, in order.
    pub hops: Vec<HopReport>,
}

impl Report {
    /// All findings, in order.
    pub fn findings(&self) -> impl Iterator<Item = (Hop, &Finding)> {
        self.hops.iter().flat_map(|report| {
            report.checks().iter().filter_map(move |check| match check {
                Check::Found(finding) => Some((report.hop(), finding)),
                _ => None,
            })
        })
    }

    fn unknowns(&self) -> impl Iterator<Item = (Hop, &Unknown)> {
        self.hops.iter().flat_map(|report| {
            report.checks().iter().filter_map(move |check| match check {
                Check::Unknown(unknown) => Some((report.hop(), unknown)),
                _ => None,
            })
        })
    }

    /// Whether nodes are expected to send packets around the load balancer.
    pub fn short_circuit(&self) -> bool {
        !self.around.is_empty()
    }

    fn goes_around(&self, origin: Origin, flow: &Flow) -> bool {
        origin != Origin::Outside && self.around.contains(&flow.to)
    }

    /// The hops that packets of a flow from there meet.
    fn route(&self, origin: Origin, flow: &Flow) -> Vec<Hop> {
        let around = self.goes_around(origin, flow);
        let by_name = self.hostnames.contains(&flow.to);
        Hop::ALL.into_iter().filter(|hop| is_met(*hop, origin, around, by_name)).collect()
    }

    /// Where packets of a flow from there end.
    fn end_of(&self, origin: Origin, flow: &Flow) -> End {
        let around = self.goes_around(origin, flow);
        let route = self.route(origin, flow);
        let stops = |surely: bool| {
            self.findings()
                .filter(|(hop, finding)| route.contains(hop) && finding.scope.holds(flow))
                .find(|(_, finding)| finding.surely == surely && finding.stops.concerns(origin, !around))
                .map(|(hop, finding)| (hop, finding.code, finding.text.clone()))
        };
        if let Some((hop, code, text)) = stops(true) {
            return End::Ends(hop, code, text);
        }
        if let Some((hop, code, text)) = stops(false) {
            return End::MayEnd(hop, code, text);
        }
        if origin == Origin::Pod && self.answered.contains(flow) {
            return End::Arrives { around, seen: true };
        }
        let unknowns = self.unknowns().filter(|(hop, unknown)| {
            route.contains(hop) && unknown.scope.holds(flow) && unknown.matters.concerns(origin, !around)
        });
        let mut dark: Vec<Hop> = unknowns.map(|(hop, _)| hop).collect();
        dark.extend(route.iter().filter(|hop| self.hops.iter().all(|report| report.hop() != **hop)));
        dark.sort_unstable();
        dark.dedup();
        if dark.is_empty() { End::Arrives { around, seen: false } } else { End::Unknown(dark) }
    }

    /// What becomes of packets from there.
    pub fn conclusion(&self, origin: Origin) -> Conclusion {
        let only_from = |flow: &Flow| {
            let known = self.only_from.iter().find(|(one, _)| one == flow && origin == Origin::Outside);
            known.map(|(_, networks)| networks.clone()).unwrap_or_default()
        };
        let flows = self.flows.iter().map(|flow| FlowEnd {
            flow: flow.clone(),
            end: self.end_of(origin, flow),
            only_from: only_from(flow),
        });
        Conclusion::of(origin, flows.collect())
    }

    /// Where packets from there end, all of them together.
    pub fn end(&self, origin: Origin) -> End {
        self.conclusion(origin).end
    }

    /// Whether packets arrive from everywhere, as far as anybody can say.
    pub fn is_green(&self) -> bool {
        Origin::ALL.into_iter().all(|origin| self.conclusion(origin).is_green())
    }

    /// Whether nothing at all was found about it, and nothing is unknown.
    pub fn is_quiet(&self) -> bool {
        let worst = self.hops.iter().map(HopReport::verdict).max();
        self.is_green() && worst.is_none_or(|worst| worst <= Verdict::Ok)
    }

    /// `shop/web (203.0.113.10)`
    pub fn title(&self) -> String {
        match self.destinations.as_slice() {
            [] => self.subject.clone(),
            destinations => format!("{} ({})", self.subject, destinations.join(", ")),
        }
    }

    /// The sentence at the end: where packets from pods, from nodes and from outside end.
    pub fn sentence(&self) -> String {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for origin in Origin::ALL {
            let text = self.conclusion(origin).to_string();
            match groups.iter_mut().find(|(known, _)| *known == text) {
                Some((_, origins)) => origins.push(origin.to_string()),
                None => groups.push((text, vec![origin.to_string()])),
            }
        }
        let part = |(text, origins): &(String, Vec<String>)| {
            let origins: Vec<&str> = origins.iter().map(String::as_str).collect();
            format!("from {}: {text}", listed(&origins))
        };
        format!("{}: {}.", self.title(), groups.iter().map(part).collect::<Vec<_>>().join("; "))
    }
}

fn is_met(hop: Hop, origin: Origin, around: bool, by_name: bool) -> bool {
    match hop {
        Hop::Controller => false,
        Hop::Status | Hop::NodePort | Hop::Backend => true,
        Hop::Name => by_name || origin == Origin::Pod,
        Hop::Node => origin != Origin::Outside,
        // Policies of clients act before a short circuit ends, too.
        Hop::Way => true,
        Hop::LoadBalancer | Hop::Header | Hop::Member => !around,
    }
}

/// What all looks at several Services, and at what is left over, come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub errors: usize,
    pub warnings: usize,
    /// What is well; information counts as that.
    pub ok: usize,
    /// What somebody asked for and could not be looked at.
    pub unknown: usize,
}

impl Counts {
    /// Counts some looks.
    pub fn of<'a>(checks: impl IntoIterator<Item = &'a Check>) -> Self {
        let mut counts = Self::default();
        for check in checks {
            match Verdict::of(check) {
                Verdict::Break => counts.errors += 1,
                Verdict::Warning => counts.warnings += 1,
                Verdict::Ok => counts.ok += 1,
                Verdict::Unknown if matches!(check, Check::Unknown(unknown) if !unknown.asked) => {}
                Verdict::Unknown => counts.unknown += 1,
                Verdict::Skipped => {}
            }
        }
        counts
    }

    /// Whether something at or above this was found.
    pub fn reaches(&self, severity: Severity) -> bool {
        match severity {
            Severity::Error => self.errors > 0,
            Severity::Warning | Severity::Info => self.errors + self.warnings > 0,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize, what: &str| {
            if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
        };
        let Self { errors, warnings, ok, unknown } = *self;
        write!(f, "{}, {}, {ok} ok, {unknown} unknown", plural(errors, "error"), plural(warnings, "warning"))
    }
}

#[cfg(test)]
mod tests {
    use openstack_ccm_core::service::Protocol;

    use super::*;
    use crate::finding::{ok, unknown};
    use crate::hop::{Port, Scope};
    use crate::question::Answer;

    const HTTPS: Port = Port { number: 443, protocol: Protocol::Tcp };
    const DNS: Port = Port { number: 53, protocol: Protocol::Udp };

    fn report(short_circuit: bool, odd: &[(Hop, Check)]) -> Report {
        let hops = Hop::ALL.map(|hop| {
            let mut checks: Vec<Check> = vec![ok("fine")];
            checks.extend(odd.iter().filter(|(at, _)| *at == hop).map(|(_, check)| check.clone()));
            HopReport::of(hop, [Answer::found(checks, || ok("fine"))])
        });
        let to = "203.0.113.10".to_owned();
        Report {
            subject: "shop/web".into(),
            destinations: vec![to.clone()],
            flows: [HTTPS, DNS].map(|port| Flow { to: to.clone(), port }).into(),
            around: short_circuit.then_some(to).into_iter().collect(),
            hostnames: Vec::new(),
            answered: Vec::new(),
            only_from: Vec::new(),
            hops: hops.into(),
        }
    }

    #[test]
    fn a_packet_should_reach_only_where_every_hop_was_looked_at() {
        let all = report(false, &[]);
        assert_eq!(
            all.sentence(),
            "shop/web (203.0.113.10): from pods, nodes and outside: should reach the application through the load balancer (no packet sent)."
        );
        let dark = report(false, &[(Hop::Member, unknown("no cloud"))]);
        assert_eq!(dark.end(Origin::Outside), End::Unknown(vec![Hop::Member]));
        let mut missing = report(false, &[]);
        missing.hops.retain(|report| report.hop() != Hop::LoadBalancer);
        assert_eq!(missing.end(Origin::Outside), End::Unknown(vec![Hop::LoadBalancer]));
    }

    #[test]
    fn a_short_circuit_ends_packets_from_inside_and_none_from_outside() {
        let found = Finding::new(Code::D201, "published as VIP");
        let broken = report(true, &[(Hop::Status, found.into())]);
        assert!(matches!(broken.end(Origin::Pod), End::Ends(Hop::Status, Code::D201, _)));
        assert_eq!(broken.end(Origin::Outside), End::Arrives { around: false, seen: false });
    }

    #[test]
    fn packets_around_the_load_balancer_do_not_meet_its_faults() {
        let found = Finding::new(Code::D601, "pool is TCP");
        let broken = report(true, &[(Hop::Header, found.into())]);
        assert_eq!(broken.end(Origin::Pod), End::Arrives { around: true, seen: false });
        assert!(matches!(broken.end(Origin::Outside), End::Ends(Hop::Header, Code::D601, _)));
    }

    #[test]
    fn what_may_stop_some_is_not_said_to_stop_all() {
        let found = Finding::new(Code::D501, "listener is in ERROR");
        let broken = report(false, &[(Hop::LoadBalancer, found.into())]);
        assert!(matches!(broken.end(Origin::Outside), End::MayEnd(Hop::LoadBalancer, Code::D501, _)));
        let one_port = Finding::new(Code::D503, "no listener").at(HTTPS);
        let broken = report(false, &[(Hop::LoadBalancer, one_port.into())]);
        let conclusion = broken.conclusion(Origin::Outside);
        assert!(matches!(conclusion.end, End::MayEnd(Hop::LoadBalancer, Code::D503, _)));
        let verdicts: Vec<&str> = conclusion.flows.iter().map(|flow| flow.end.verdict()).collect();
        assert_eq!(verdicts, ["ends", "should-reach"]);
        assert!(conclusion.to_string().ends_with("; not so 203.0.113.10 53/UDP"), "{conclusion}");
    }

    /// A packet proves what nobody could look at, and not what is known to be broken.
    #[test]
    fn what_was_seen_is_said_to_be_seen() {
        let mut seen = report(false, &[(Hop::Member, unknown("no cloud"))]);
        seen.answered = seen.flows.clone();
        assert_eq!(seen.end(Origin::Pod), End::Arrives { around: false, seen: true });
        assert!(matches!(seen.end(Origin::Outside), End::Unknown(_)));
        assert!(seen.sentence().contains("reaches the application through the load balancer (seen)"));
        seen.answered.pop();
        assert!(matches!(seen.end(Origin::Pod), End::Unknown(_)), "one port is not all of them");
    }

    #[test]
    fn what_is_not_known_of_one_port_leaves_the_others() {
        let doubt = unknown("it has no monitor").about(Scope::port(DNS), crate::code::Stops::All);
        let conclusion = report(false, &[(Hop::Member, doubt)]).conclusion(Origin::Pod);
        let verdicts: Vec<&str> = conclusion.flows.iter().map(|flow| flow.end.verdict()).collect();
        assert_eq!(verdicts, ["should-reach", "unknown"]);
        assert_eq!(conclusion.end, End::Unknown(vec![Hop::Member]));
    }
}

//! All that is said about one Service, and where packets to it end.

use std::fmt;

use crate::code::{Code, Severity};
use crate::finding::{Check, Finding};
use crate::hop::{Hop, Origin};

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopReport {
    pub hop: Hop,
    /// What was looked at, in order.
    pub checks: Vec<Check>,
}

impl HopReport {
    /// What it comes to. A hop at which nobody looked is not known.
    pub fn verdict(&self) -> Verdict {
        self.checks.iter().map(Verdict::of).max().unwrap_or(Verdict::Unknown)
    }
}

/// Where packets from one place end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// At the application.
    Arrives {
        /// Whether nodes take a short cut around the load balancer.
        around: bool,
    },
    Ends(Hop, Code, String),
    /// Perhaps, or for some, at a hop.
    MayEnd(Hop, Code, String),
    /// Nobody knows, because these were not looked at.
    Unknown(Vec<Hop>),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrives { around: false } => {
                f.write_str("reaches the application through the load balancer")
            }
            Self::Arrives { around: true } => {
                f.write_str("reaches the application, around the load balancer")
            }
            Self::Ends(hop, code, text) => write!(f, "ends at {hop}: {text} [{code}]"),
            Self::MayEnd(hop, code, text) => write!(f, "may end at {hop}: {text} [{code}]"),
            Self::Unknown(hops) => {
                let hops: Vec<String> = hops.iter().map(|hop| format!("\"{}\"", hop.title())).collect();
                write!(f, "may or may not arrive: {} could not be looked at in full", hops.join(", "))
            }
        }
    }
}

/// All that is said about one Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// `shop/web`
    pub subject: String,
    /// Where clients go: `203.0.113.10`, or a hostname.
    pub destinations: Vec<String>,
    /// Whether nodes are expected to send packets of pods around the load balancer.
    pub short_circuit: bool,
    /// Whether pods on all nodes dialled, and were answered: then it does not matter what could not be looked at.
    pub answered: bool,
    /// The hops, in order.
    pub hops: Vec<HopReport>,
}

impl Report {
    /// All findings, in order.
    pub fn findings(&self) -> impl Iterator<Item = (Hop, &Finding)> {
        let of = |report: &'_ HopReport| report.hop;
        self.hops.iter().flat_map(move |report| {
            report.checks.iter().filter_map(move |check| match check {
                Check::Found(finding) => Some((of(report), finding)),
                _ => None,
            })
        })
    }

    /// The hops that packets from there meet.
    pub fn route(&self, origin: Origin) -> Vec<Hop> {
        let around = self.goes_around(origin);
        Hop::ALL.into_iter().filter(|hop| is_met(*hop, origin, around)).collect()
    }

    fn goes_around(&self, origin: Origin) -> bool {
        self.short_circuit && origin != Origin::Outside
    }

    /// Where packets from there end.
    pub fn end(&self, origin: Origin) -> End {
        let around = self.goes_around(origin);
        let route = self.route(origin);
        let stops = |surely: bool| {
            self.findings()
                .filter(|(hop, _)| route.contains(hop))
                .find(|(_, finding)| {
                    let entry = finding.code.entry();
                    (entry.surely && !finding.partial) == surely && entry.stops.concerns(origin, !around)
                })
                .map(|(hop, finding)| (hop, finding.code, finding.text.clone()))
        };
        let (sure, doubtful) = (stops(true), stops(false));
        if let Some((hop, code, text)) = sure {
            return End::Ends(hop, code, text);
        }
        if let Some((hop, code, text)) = doubtful {
            return End::MayEnd(hop, code, text);
        }
        let is_dark = |report: &&HopReport| report.checks.is_empty() || has_unknown(report);
        let dark = self.hops.iter().filter(|report| route.contains(&report.hop)).filter(is_dark);
        let mut dark: Vec<Hop> = dark.map(|report| report.hop).collect();
        dark.extend(route.iter().filter(|hop| self.hops.iter().all(|report| report.hop != **hop)));
        dark.sort_unstable();
        let is_proven = origin == Origin::Pod && self.answered;
        if dark.is_empty() || is_proven { End::Arrives { around } } else { End::Unknown(dark) }
    }

    /// The sentence at the end: where packets from a pod, from a node and from outside end.
    pub fn sentence(&self) -> String {
        let to = self.destinations.join(", ");
        let to = if to.is_empty() { self.subject.as_str() } else { to.as_str() };
        let [pod, node, outside] = Origin::ALL.map(|origin| self.end(origin).to_string());
        if pod == node && node == outside {
            return format!("A packet to {to} from a pod, from a node or from outside {pod}.");
        }
        if pod == node {
            return format!("A packet to {to} from a pod or from a node {pod}; one from outside {outside}.");
        }
        format!("A packet to {to} from a pod {pod}; one from a node {node}; one from outside {outside}.")
    }
}

fn has_unknown(report: &HopReport) -> bool {
    report.checks.iter().any(|check| matches!(check, Check::Unknown(_)))
}

fn is_met(hop: Hop, origin: Origin, around: bool) -> bool {
    match hop {
        Hop::Status | Hop::NodePort | Hop::Backend => true,
        Hop::Name => origin == Origin::Pod,
        Hop::Node => origin != Origin::Outside,
        Hop::Way => origin != Origin::Outside && !around,
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
    /// What could not be looked at.
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
        write!(
            f,
            "{}, {}, {ok} ok, {unknown} not looked at",
            plural(errors, "error"),
            plural(warnings, "warning")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{ok, unknown};

    fn report(short_circuit: bool, odd: &[(Hop, Check)]) -> Report {
        let hops = Hop::ALL.map(|hop| {
            let found = odd.iter().filter(|(at, _)| *at == hop).map(|(_, check)| check.clone());
            let checks: Vec<Check> = found.collect();
            HopReport { hop, checks: if checks.is_empty() { vec![ok("fine")] } else { checks } }
        });
        Report {
            subject: "shop/web".into(),
            destinations: vec!["203.0.113.10".into()],
            short_circuit,
            answered: false,
            hops: hops.into(),
        }
    }

    #[test]
    fn a_packet_arrives_only_where_every_hop_was_looked_at() {
        let all = report(false, &[]);
        assert_eq!(
            all.sentence(),
            "A packet to 203.0.113.10 from a pod, from a node or from outside reaches the application through the load balancer."
        );
        let dark = report(false, &[(Hop::Member, unknown("no cloud"))]);
        assert_eq!(dark.end(Origin::Outside), End::Unknown(vec![Hop::Member]));
        let mut missing = report(false, &[]);
        missing.hops.remove(4);
        assert_eq!(missing.end(Origin::Outside), End::Unknown(vec![Hop::LoadBalancer]));
    }

    #[test]
    fn a_short_circuit_ends_packets_from_inside_and_none_from_outside() {
        let found = Finding::new(Code::D201, "published as VIP");
        let broken = report(true, &[(Hop::Status, found.into())]);
        assert!(matches!(broken.end(Origin::Pod), End::Ends(Hop::Status, Code::D201, _)));
        assert!(matches!(broken.end(Origin::Outside), End::Arrives { around: false }));
    }

    #[test]
    fn packets_around_the_load_balancer_do_not_meet_its_faults() {
        let found = Finding::new(Code::D601, "pool is TCP");
        let broken = report(true, &[(Hop::Header, found.into())]);
        assert_eq!(broken.end(Origin::Pod), End::Arrives { around: true });
        assert!(matches!(broken.end(Origin::Outside), End::Ends(Hop::Header, Code::D601, _)));
    }

    #[test]
    fn what_may_stop_some_is_not_said_to_stop_all() {
        let found = Finding::new(Code::D501, "listener is in ERROR");
        let broken = report(false, &[(Hop::LoadBalancer, found.into())]);
        assert!(matches!(broken.end(Origin::Outside), End::MayEnd(Hop::LoadBalancer, Code::D501, _)));
    }
}

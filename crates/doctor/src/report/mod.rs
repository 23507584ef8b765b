//! The report about one Service, and where packets to it end.

mod conclusion;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use crate::code::Stops;
use crate::finding::{Check, Finding, Gap, Unknown};
use crate::hop::{Flow, Hop, Origin, Port};
use crate::question::HopReport;
use conclusion::listed;
pub use conclusion::{Conclusion, End, FlowEnd};
pub use verdict::{Counts, Verdict};

/// The report about one Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// `shop/web`
    pub subject: String,
    /// The addresses and hostnames to which clients connect: `203.0.113.10`.
    pub destinations: Vec<String>,
    /// The flows: each destination, at each port.
    pub flows: Vec<Flow>,
    /// Destinations for which nodes send packets around the load balancer, each with whether certainly all nodes do.
    pub around: BTreeMap<String, bool>,
    /// Ports at which the application also serves packets that bypass the load balancer, each with whether all its pods do.
    pub bypassed: BTreeMap<Port, bool>,
    /// Destinations that are hostnames.
    pub hostnames: Vec<String>,
    /// Flows in which the application answered the dials of the pods on all nodes, with these nodes.
    pub answered: Vec<(Flow, BTreeSet<String>)>,
    /// Flows with the networks from which the listener accepts connections.
    pub only_from: Vec<(Flow, Vec<String>)>,
    /// Flows with the policies that keep their own pods from the address.
    pub not_from: Vec<(Flow, Vec<String>)>,
    /// The hops, in order.
    pub hops: Vec<HopReport>,
}

impl Report {
    fn of<'a, T>(&'a self, of: fn(&'a Check) -> Option<&'a T>) -> impl Iterator<Item = (Hop, &'a T)> {
        let of_hop =
            move |report: &'a HopReport| report.checks().iter().filter_map(of).map(|one| (report.hop(), one));
        self.hops.iter().flat_map(of_hop)
    }

    /// Lists all findings in order.
    pub fn findings(&self) -> impl Iterator<Item = (Hop, &Finding)> {
        self.of(|check| match check {
            Check::Found(finding) => Some(finding),
            _ => None,
        })
    }

    fn unknowns(&self) -> impl Iterator<Item = (Hop, &Unknown)> {
        self.of(|check| match check {
            Check::Unknown(unknown) => Some(unknown),
            _ => None,
        })
    }

    /// Returns whether nodes are expected to send packets around the load balancer.
    pub fn short_circuit(&self) -> bool {
        self.around.values().any(|all| *all)
    }

    fn goes_around(&self, origin: Origin, flow: &Flow) -> bool {
        origin != Origin::Outside && self.around.get(&flow.to) == Some(&true)
    }

    /// Returns the hops that packets of a flow from this origin meet.
    fn route(&self, origin: Origin, flow: &Flow) -> Vec<Hop> {
        let around = self.goes_around(origin, flow);
        let by_name = self.hostnames.contains(&flow.to);
        Hop::ALL.into_iter().filter(|hop| is_met(*hop, origin, around, by_name)).collect()
    }

    /// Returns where packets of a flow from this origin end.
    fn end_of(&self, origin: Origin, flow: &Flow) -> End {
        let around = self.goes_around(origin, flow);
        let route = self.route(origin, flow);
        let strays = origin != Origin::Outside && self.around.get(&flow.to) == Some(&false);
        // Packets that bypass the load balancer may be served all the same.
        let served = |finding: &Finding, all: bool| {
            finding.stops == Stops::Bypassing && self.bypassed.get(&flow.port) == Some(&all)
        };
        let is_sure = |hop: Hop, finding: &Finding| {
            let is_met_around = is_met(hop, origin, true, false) && finding.stops.concerns(origin, false);
            finding.surely && (!strays || is_met_around) && !served(finding, false)
        };
        let stops = |surely: bool| {
            self.findings()
                .filter(|(hop, finding)| {
                    route.contains(hop) && finding.scope.holds(flow) && !served(finding, true)
                })
                .find(|(hop, finding)| {
                    finding.stops.concerns(origin, !around) && is_sure(*hop, finding) == surely
                })
                .map(|(hop, finding)| (hop, finding.code, finding.text.clone()))
        };
        if let Some((hop, code, text)) = stops(true) {
            return End::Ends(hop, code, text);
        }
        if let Some((hop, code, text)) = stops(false) {
            return End::MayEnd(hop, code, text);
        }
        let answered = self.answered.iter().find(|(one, _)| origin == Origin::Pod && one == flow);
        if let Some((_, nodes)) = answered {
            return End::Arrives { around, nodes: nodes.clone() };
        }
        let gaps = || {
            self.unknowns().filter(|(hop, unknown)| {
                route.contains(hop) && unknown.scope.holds(flow) && unknown.matters.concerns(origin, !around)
            })
        };
        let failed = gaps().filter(|(_, unknown)| unknown.gap == Gap::NotKnown);
        let mut dark: BTreeSet<Hop> = failed.map(|(hop, _)| hop).collect();
        dark.extend(route.iter().filter(|hop| self.hops.iter().all(|report| report.hop() != **hop)));
        if !dark.is_empty() {
            return End::NotKnown(dark);
        }
        End::NoFault { around, unseen: gaps().map(|(hop, unknown)| (hop, unknown.text.clone())).collect() }
    }

    /// Returns where packets from this origin end, with each flow.
    pub fn conclusion(&self, origin: Origin) -> Conclusion {
        let of = |list: &[(Flow, Vec<String>)], wanted: Origin, flow: &Flow| {
            let known = list.iter().find(|(one, _)| one == flow && origin == wanted);
            known.map(|(_, names)| names.clone()).unwrap_or_default()
        };
        let flows = self.flows.iter().map(|flow| FlowEnd {
            flow: flow.clone(),
            end: self.end_of(origin, flow),
            only_from: of(&self.only_from, Origin::Outside, flow),
            not_from: of(&self.not_from, Origin::Pod, flow),
        });
        Conclusion::of(origin, flows.collect())
    }

    /// Returns where packets from this origin end, all flows together.
    pub fn end(&self, origin: Origin) -> End {
        self.conclusion(origin).end
    }

    /// Returns whether nothing is wrong or in doubt for packets from any origin.
    pub fn is_green(&self) -> bool {
        Origin::ALL.into_iter().all(|origin| self.end(origin).is_green())
    }

    /// Returns whether all was seen, without findings above information.
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

    /// Returns the concluding sentence: where packets from pods, from nodes and from outside end.
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
        // Policies of clients apply before a short circuit, too.
        Hop::Way => true,
        Hop::LoadBalancer | Hop::Header | Hop::Member => !around,
    }
}

#[cfg(test)]
mod tests {
    use openstack_ccm_core::service::Protocol;

    use super::*;
    use crate::code::Code;
    use crate::finding::{ok, unknown, unseen};
    use crate::hop::Scope;
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
            around: short_circuit.then_some((to, true)).into_iter().collect(),
            bypassed: BTreeMap::new(),
            hostnames: Vec::new(),
            answered: Vec::new(),
            only_from: Vec::new(),
            not_from: Vec::new(),
            hops: hops.into(),
        }
    }

    fn no_fault(around: bool) -> End {
        End::NoFault { around, unseen: BTreeSet::new() }
    }

    #[test]
    fn no_fault_is_found_only_where_every_hop_was_looked_at() {
        let all = report(false, &[]);
        assert_eq!(
            all.sentence(),
            "shop/web (203.0.113.10): from pods, nodes and outside: no fault found through the load balancer (no packet was sent)."
        );
        let dark = report(false, &[(Hop::Member, unknown("no cloud"))]);
        assert_eq!(dark.end(Origin::Outside), End::NotKnown([Hop::Member].into()));
        let mut missing = report(false, &[]);
        missing.hops.retain(|report| report.hop() != Hop::LoadBalancer);
        assert_eq!(missing.end(Origin::Outside), End::NotKnown([Hop::LoadBalancer].into()));
    }

    #[test]
    fn what_no_object_shows_is_said_in_the_same_sentence() {
        let unsure = report(false, &[(Hop::Node, unseen("what the service proxy of node-2 does"))]);
        assert_eq!(
            unsure.sentence(),
            "shop/web (203.0.113.10): from pods and nodes: no fault found through the load balancer (no packet was sent; not seen: \
             what the service proxy of node-2 does); from outside: no fault found through the load balancer (no packet was sent)."
        );
        assert!(unsure.is_green() && !unsure.is_quiet());
    }

    #[test]
    fn a_short_circuit_ends_packets_from_inside_and_none_from_outside() {
        let found = Finding::new(Code::D201, "published as VIP");
        let broken = report(true, &[(Hop::Status, found.into())]);
        assert!(matches!(broken.end(Origin::Pod), End::Ends(Hop::Status, Code::D201, _)));
        assert_eq!(broken.end(Origin::Outside), no_fault(false));
    }

    #[test]
    fn packets_around_the_load_balancer_do_not_meet_its_faults() {
        let found = Finding::new(Code::D601, "pool is TCP");
        let broken = report(true, &[(Hop::Header, found.into())]);
        assert_eq!(broken.end(Origin::Pod), no_fault(true));
        assert!(matches!(broken.end(Origin::Outside), End::Ends(Hop::Header, Code::D601, _)));
    }

    #[test]
    fn what_ends_at_the_load_balancer_may_arrive_around_it() {
        let found = Finding::new(Code::D901, "the application expects no header");
        let mut broken = report(false, &[(Hop::Backend, found.into())]);
        broken.around.insert(broken.destinations[0].clone(), false);
        assert!(matches!(broken.end(Origin::Pod), End::MayEnd(Hop::Backend, Code::D901, _)));
        assert!(matches!(broken.end(Origin::Outside), End::Ends(Hop::Backend, Code::D901, _)));
        let nobody = Finding::new(Code::D801, "no endpoint is ready");
        let mut broken = report(false, &[(Hop::NodePort, nobody.into())]);
        broken.around.insert(broken.destinations[0].clone(), false);
        assert!(matches!(broken.end(Origin::Pod), End::Ends(Hop::NodePort, Code::D801, _)));
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
        assert_eq!(verdicts, ["ends", "no-fault-found"]);
        assert!(conclusion.to_string().ends_with("; no fault found for 203.0.113.10 53/UDP"), "{conclusion}");
    }

    /// An answered packet proves hops that could not be looked at, but not hops that are known to be broken.
    #[test]
    fn what_was_seen_is_said_to_be_seen() {
        let mut seen = report(false, &[(Hop::Member, unknown("no cloud"))]);
        let nodes = BTreeSet::from(["node-1".to_owned()]);
        seen.answered = seen.flows.iter().map(|flow| (flow.clone(), nodes.clone())).collect();
        assert_eq!(seen.end(Origin::Pod), End::Arrives { around: false, nodes });
        assert!(matches!(seen.end(Origin::Outside), End::NotKnown(_)));
        assert!(
            seen.sentence()
                .contains("arrives at the application through the load balancer (answered on node-1)")
        );
        seen.answered.pop();
        assert!(matches!(seen.end(Origin::Pod), End::NotKnown(_)), "one port is not all of them");
    }

    #[test]
    fn what_is_not_known_of_one_port_leaves_the_others() {
        let doubt = unknown("it has no monitor").about(Scope::port(DNS), Stops::All);
        let conclusion = report(false, &[(Hop::Member, doubt)]).conclusion(Origin::Pod);
        let verdicts: Vec<&str> = conclusion.flows.iter().map(|flow| flow.end.verdict()).collect();
        assert_eq!(verdicts, ["no-fault-found", "not-known"]);
        assert_eq!(conclusion.end, End::NotKnown([Hop::Member].into()));
    }
}

//! Hop 9: whether the application expects the PROXY protocol header.

use std::collections::BTreeSet;

use super::look::Look;
use crate::backend::{Expectation, Judgement};
use crate::code::{Code, Stops};
use crate::facts::ServedBy;
use crate::finding::{Check, Finding, Fix, ok, skipped, unknown};
use crate::hop::{Port, Scope};
use crate::question::{Answer, questions};

questions! {
    Questions at Backend {
        /// Whether the application expects the header where it gets one, and gets one where it requires it.
        header,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    // The ports differ where the listeners have pools with and without the header. Only TCP ports can have the header.
    let (with, without): (BTreeSet<Port>, BTreeSet<Port>) =
        look.tcp().partition(|port| look.path().is_ok_and(|path| path.sends_header(*port)));
    let groups = [(with, true), (without, false)].into_iter().filter(|(ports, _)| !ports.is_empty());
    let none = || skipped("no port is one of TCP");
    Questions { header: Answer::each(groups, none, |(ports, header)| judged(look, &ports, header)) }
}

/// Judges ports that all get the header, or all do not.
fn judged(look: &Look<'_>, ports: &BTreeSet<Port>, header: bool) -> Check {
    let scope = || Scope { ports: Some(ports.clone()), to: None };
    if let Err(cause) = look.path() {
        return unknown(format!(
            "whether the load balancer sends a PROXY protocol header is not known: {cause}"
        ))
        .about(scope(), Stops::All);
    }
    let judgement = match &look.backend {
        Ok(judgement) => judgement,
        // Without a pod nothing serves at all, which the check of endpoints reports.
        Err(cause) if header => {
            return unknown(format!("the application cannot be examined: {cause}"))
                .about(scope(), Stops::All);
        }
        Err(cause) => {
            return skipped(format!("no header is sent; the application cannot be examined: {cause}"));
        }
    };
    let Judgement { program, expects, evidence, switch } = judgement;
    let found = |code: Code, text: String| {
        let mut finding = Finding::new(code, text);
        finding.evidence.extend(evidence.iter().cloned());
        finding.scope = scope();
        finding
    };
    match (expects, header) {
        (Expectation::Required, true) => ok(format!("{program} expects the header")),
        (Expectation::Either, true) => {
            found(Code::D903, format!("{program} accepts connections with and without the header")).into()
        }
        (Expectation::Off, true) => {
            let text = format!("{program} does not expect the header that the load balancer sends");
            let finding = found(Code::D901, text);
            match switch {
                Some(switch) => finding.fix(switch.clone()).into(),
                None => finding.into(),
            }
        }
        (Expectation::Required, false) => {
            let text = format!("{program} expects the header, but the load balancer does not send it");
            let finding = found(Code::D902, text);
            match send_header(look) {
                Some(fix) => finding.fix(fix).into(),
                None => finding.into(),
            }
        }
        (Expectation::Either | Expectation::Off, false) => {
            ok(format!("{program} takes connections without a header"))
        }
        (Expectation::Unknown(why), true) => {
            unknown(format!("whether {program} expects the header is not known: {why}"))
                .about(scope(), Stops::All)
        }
        (Expectation::Unknown(why), false) => skipped(format!("no header is sent; {why}")),
    }
}

/// Returns the command that makes the load balancer send the header; the annotation depends on the controller of the Service.
fn send_header(look: &Look<'_>) -> Option<Fix> {
    match &look.facts.served_by {
        ServedBy::Ours => Some(look.annotate("loadbalancer.openstack.org/proxy-protocol=v2")),
        ServedBy::AnotherCloud(_, annotation) => {
            annotation.as_ref().map(|annotation| look.annotate(annotation))
        }
        ServedBy::Class(_) => None,
    }
}

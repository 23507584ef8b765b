//! Hop 9: whether the application expects the header.

use super::look::Look;
use crate::backend::{Expectation, Judgement};
use crate::code::Code;
use crate::finding::{Check, Finding, ok, skipped, unknown};

pub(super) fn judge(look: &Look<'_>) -> Vec<Check> {
    let judgement = match &look.backend {
        Ok(judgement) => judgement,
        Err(cause) => return vec![unknown(format!("the application cannot be looked at: {cause}"))],
    };
    let path = match look.path() {
        Ok(path) => path,
        Err(cause) => return vec![unknown(format!("whether a header is sent is not known: {cause}"))],
    };
    let Judgement { program, expects, evidence, switch } = judgement;
    let with_evidence = |mut finding: Finding| -> Check {
        finding.evidence.extend(evidence.iter().cloned());
        finding.into()
    };
    vec![match (expects, path.header) {
        (Expectation::Required, true) => ok(format!("{program} expects the header")),
        (Expectation::Either, true) => {
            let text = format!("{program} accepts connections with and without the header");
            with_evidence(Finding::new(Code::D903, text))
        }
        (Expectation::Off, true) => {
            let text = format!("{program} does not expect the header that the load balancer sends");
            let finding = Finding::new(Code::D901, text);
            with_evidence(match switch {
                Some(switch) => finding.fix(switch.clone()),
                None => finding,
            })
        }
        (Expectation::Required, false) => {
            let text = format!("{program} expects the header, and the load balancer does not send it");
            let annotate = look.annotate("loadbalancer.openstack.org/proxy-protocol=v2");
            with_evidence(Finding::new(Code::D902, text).fix(annotate))
        }
        (Expectation::Either | Expectation::Off, false) => {
            ok(format!("{program} takes connections without a header"))
        }
        (Expectation::Unknown(why), true) => {
            unknown(format!("whether {program} expects the header is not known: {why}"))
        }
        (Expectation::Unknown(why), false) => skipped(format!("no header is sent; {why}")),
    }]
}

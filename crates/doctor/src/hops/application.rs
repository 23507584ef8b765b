//! Hop 9: whether the application reads the PROXY protocol header.

use super::look::{Application, Look};
use crate::backend::{Expectation, Judgement, UNKNOWN};
use crate::code::{Code, Stops};
use crate::facts::ServedBy;
use crate::finding::{Check, Finding, Fix, Gap, gap, ok, skipped, unknown, unseen};
use crate::hop::Scope;
use crate::question::{Answer, questions, read};

questions! {
    Questions at Backend {
        /// Whether the application reads the header where it gets one, and gets one where it requires it.
        header,
    }
}

pub(super) fn judge(look: &Look<'_>) -> Questions {
    let header = if look.tcp().next().is_none() {
        skipped("no port is one of TCP").into()
    } else {
        header(look).into()
    };
    Questions { header }
}

fn header(look: &Look<'_>) -> Result<Answer, Answer> {
    let missing = "whether the load balancer sends a PROXY protocol header";
    let path = read(&look.path, missing, Stops::All)?;
    if let (Err(cause), false) = (&look.facts.backend, path.header) {
        return Ok(skipped(format!("no header is sent; the pods cannot be read: {cause}")).into());
    }
    let backend = read(&look.facts.backend, "the pods of the Service cannot be read", Stops::All)?;
    // Where it selects pods and there is none, nothing serves at all, which the check of endpoints reports.
    if backend.pods.is_empty() && path.header {
        let text = "whether the application reads the header (the Service selects no pod)";
        return Ok(gap(Gap::HeaderNotSeen, text).into());
    }
    let none = || skipped("no header is sent, and there is no pod");
    Ok(Answer::each(&look.applications, none, |one| judged(look, one)))
}

fn judged(look: &Look<'_>, application: &Application) -> Check {
    let Application { ports, header, judgement, of_all } = application;
    let Judgement { program, expects, evidence, switch } = judgement;
    let scope = || Scope { ports: Some(ports.clone()), to: None };
    let found = |code: Code, text: String| {
        let mut finding = Finding::new(code, text);
        finding.evidence.extend(evidence.iter().cloned());
        finding.scope = scope();
        finding.surely &= of_all;
        finding
    };
    let with = |finding: Finding, fix: Option<Fix>| match fix {
        Some(fix) => finding.fix(fix),
        None => finding,
    };
    let some = if *of_all { "" } else { " in some of its pods" };
    match (expects, header) {
        (Expectation::Required, true) => ok(format!("{program} expects the header")),
        (Expectation::Either, true) => {
            found(Code::D903, format!("{program} accepts connections with and without the header")).into()
        }
        (Expectation::Distrusted { .. }, true) => {
            let text = format!("{program} ignores the client addresses in the load balancer's header");
            with(found(Code::D904, text), switch.clone()).into()
        }
        (Expectation::Off, true) => {
            let text = format!("{program} does not expect the header that the load balancer sends{some}");
            with(found(Code::D901, text), switch.clone()).into()
        }
        (Expectation::Required | Expectation::Distrusted { required: true }, false) => {
            let text = format!("{program} expects the header{some}, but the load balancer does not send it");
            with(found(Code::D902, text), send_header(look)).into()
        }
        (Expectation::Either | Expectation::Distrusted { .. } | Expectation::Off, false) => {
            ok(format!("{program} takes connections without a header"))
        }
        (Expectation::NotSeen(why), true) => {
            gap(Gap::HeaderNotSeen, format!("whether {program} reads the header ({why})"))
                .about(scope(), Stops::All)
        }
        (Expectation::NotSeen(_), false) if *program == UNKNOWN => skipped("no header is sent"),
        (Expectation::NotSeen(why), false) => {
            unseen(format!("whether {program} requires the header, which is not sent ({why})"))
                .about(scope(), Stops::All)
        }
        (Expectation::NotKnown(why), _) => {
            unknown(format!("whether {program} reads the header: {why}")).about(scope(), Stops::All)
        }
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

//! The report as JSON: the shape of `linkerd check`, with code, hop, node, evidence and fix, and a conclusion for each origin.

use serde_json::{Value, json};

use super::{FailOn, Outcome};
use crate::finding::{Check, Finding};
use crate::hop::Origin;
use crate::report::{Conclusion, End, FlowEnd, Report};

/// The version of the shape; it changes when an existing program would misread the new shape.
const VERSION: u32 = 2;

/// Renders the outcome as a JSON object.
pub fn object(outcome: &Outcome, fail_on: FailOn) -> Value {
    let counts = outcome.counts();
    let services: Vec<Value> = outcome.reports.iter().map(of_report).collect();
    let mut object = json!({
        "version": VERSION,
        "success": outcome.is_success(fail_on),
        "exitCode": outcome.exit_code(fail_on),
        "counts": {"errors": counts.errors, "warnings": counts.warnings, "ok": counts.ok, "notKnown": counts.not_known,
            "notSeen": counts.not_seen},
        "services": services,
    });
    if !outcome.absent.is_empty() {
        object["absent"] = json!(outcome.absent);
    }
    if let Some(checks) = &outcome.leftovers {
        object["leftovers"] = checks.iter().map(check).collect();
    }
    object
}

fn of_report(report: &Report) -> Value {
    let categories: Vec<Value> = report
        .hops
        .iter()
        .map(|hop| {
            let checks: Vec<Value> = hop.checks().iter().map(check).collect();
            json!({
                "categoryName": hop.hop().title(),
                "hop": hop.hop(),
                "number": hop.hop().number(),
                "verdict": hop.verdict().as_str(),
                "checks": checks,
            })
        })
        .collect();
    let conclusion: Vec<Value> =
        Origin::ALL.into_iter().map(|origin| of_conclusion(&report.conclusion(origin))).collect();
    json!({
        "service": report.subject,
        "destinations": report.destinations,
        "shortCircuit": report.short_circuit(),
        "categories": categories,
        "conclusion": conclusion,
        "sentence": report.sentence(),
    })
}

fn of_conclusion(conclusion: &Conclusion) -> Value {
    let Conclusion { origin, end, only_from, not_from, flows } = conclusion;
    let mut object = of_end(end, only_from, not_from);
    object["from"] = json!(origin.to_string());
    object["text"] = json!(conclusion.to_string());
    object["flows"] = flows.iter().map(of_flow).collect();
    object
}

fn of_flow(flow: &FlowEnd) -> Value {
    let FlowEnd { flow, end, only_from, not_from } = flow;
    let mut object = of_end(end, only_from, not_from);
    object["to"] = json!(flow.to);
    object["port"] = json!(flow.port.number);
    object["protocol"] = json!(flow.port.protocol.as_str());
    object
}

fn of_end(end: &End, only_from: &[String], not_from: &[String]) -> Value {
    let mut object = json!({"verdict": end.verdict()});
    match end {
        End::Ends(hop, code, text) | End::MayEnd(hop, code, text) => {
            object["hop"] = json!(hop.number());
            object["code"] = json!(code);
            object["reason"] = json!(text);
        }
        End::NotKnown(hops) => object["notKnown"] = hops.iter().map(|hop| hop.number()).collect(),
        End::NoFault { around, unseen } => {
            let unseen = unseen.iter().map(|(hop, text)| json!({"hop": hop.number(), "text": text}));
            object["aroundLoadBalancer"] = json!(around);
            object["notSeen"] = unseen.collect();
        }
        End::Arrives { around, nodes } => {
            object["aroundLoadBalancer"] = json!(around);
            object["nodes"] = json!(nodes);
        }
    }
    for (key, names) in [("onlyFrom", only_from), ("notFrom", not_from)] {
        if !names.is_empty() {
            object[key] = json!(names);
        }
    }
    object
}

/// Renders one check as JSON.
pub fn check(check: &Check) -> Value {
    match check {
        Check::Ok(text) => json!({"result": "success", "description": text}),
        Check::Skipped(text) => json!({"result": "skipped", "description": text}),
        Check::Unknown(unknown) => {
            json!({"result": unknown.gap.title().replace(' ', "-"), "description": unknown.text})
        }
        Check::Found(finding) => of_finding(finding),
    }
}

fn of_finding(finding: &Finding) -> Value {
    let Finding { code, text, evidence, fix, node, .. } = finding;
    let mut object = json!({
        "result": finding.severity(),
        "description": text,
        "code": code,
        "title": code.entry().title,
        "hint": code.anchor(),
        "evidence": evidence,
        "remedy": code.entry().remedy,
    });
    if let Some(fix) = fix {
        object["fix"] = json!(fix.to_string());
    }
    if let Some(node) = node {
        object["node"] = json!(node);
    }
    object
}

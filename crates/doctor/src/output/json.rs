//! The report as JSON: the shape of `linkerd check`, with code, hop, node, evidence and fix, and a conclusion for each origin.

use serde_json::{Value, json};

use super::Outcome;
use crate::code::Severity;
use crate::finding::{Check, Finding};
use crate::hop::Origin;
use crate::report::{Conclusion, End, FlowEnd, Report};

/// The version of the shape; it changes when an existing program would misread the new shape.
const VERSION: u32 = 1;

/// Renders the outcome as a JSON object.
pub fn object(outcome: &Outcome, fail_on: Severity) -> Value {
    let counts = outcome.counts();
    let services: Vec<Value> = outcome.reports.iter().map(of_report).collect();
    let mut object = json!({
        "version": VERSION,
        "success": !counts.reaches(fail_on),
        "exitCode": outcome.exit_code(fail_on),
        "counts": {"errors": counts.errors, "warnings": counts.warnings, "ok": counts.ok, "unknown": counts.unknown},
        "services": services,
    });
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
    let Conclusion { origin, end, only_from, flows } = conclusion;
    let mut object = of_end(end, only_from);
    object["from"] = json!(origin.to_string());
    object["text"] = json!(conclusion.to_string());
    object["flows"] = flows.iter().map(of_flow).collect();
    object
}

fn of_flow(flow: &FlowEnd) -> Value {
    let FlowEnd { flow, end, only_from } = flow;
    let mut object = of_end(end, only_from);
    object["to"] = json!(flow.to);
    object["port"] = json!(flow.port.number);
    object["protocol"] = json!(flow.port.protocol.as_str());
    object
}

fn of_end(end: &End, only_from: &[String]) -> Value {
    let mut object = json!({"verdict": end.verdict(), "grade": end.grade().as_str()});
    match end {
        End::Arrives { around, seen: _ } => object["aroundLoadBalancer"] = json!(around),
        End::Ends(hop, code, text) | End::MayEnd(hop, code, text) => {
            object["hop"] = json!(hop.number());
            object["code"] = json!(code);
            object["reason"] = json!(text);
        }
        End::Unknown(hops) => {
            object["notKnown"] = hops.iter().map(|hop| hop.number()).collect();
        }
    }
    if !only_from.is_empty() {
        object["onlyFrom"] = json!(only_from);
    }
    object
}

/// Renders one check as JSON.
pub fn check(check: &Check) -> Value {
    match check {
        Check::Ok(text) => json!({"result": "success", "description": text}),
        Check::Skipped(text) => json!({"result": "skipped", "description": text}),
        Check::Unknown(unknown) => json!({"result": "unknown", "description": unknown.text}),
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
    });
    if let Some(fix) = fix {
        object["fix"] = json!(fix.to_string());
    }
    if let Some(node) = node {
        object["node"] = json!(node);
    }
    object
}

//! For programs: the shape of `linkerd check`, with code, hop, node, evidence and fix.

use serde_json::{Value, json};

use super::Outcome;
use crate::code::Severity;
use crate::finding::{Check, Finding};
use crate::hop::Origin;
use crate::report::{End, Report};

/// Everything.
pub fn object(outcome: &Outcome, fail_on: Severity) -> Value {
    let counts = outcome.counts();
    let services: Vec<Value> = outcome.reports.iter().map(of_report).collect();
    let mut object = json!({
        "success": !counts.reaches(fail_on),
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
            let checks: Vec<Value> = hop.checks.iter().map(check).collect();
            json!({"categoryName": hop.hop.title(), "hop": hop.hop, "verdict": hop.verdict().as_str(), "checks": checks})
        })
        .collect();
    let ends: Vec<Value> = Origin::ALL.into_iter().map(|origin| end(origin, report)).collect();
    json!({
        "service": report.subject,
        "destinations": report.destinations,
        "shortCircuit": report.short_circuit,
        "categories": categories,
        "ends": ends,
        "sentence": report.sentence(),
    })
}

fn end(origin: Origin, report: &Report) -> Value {
    let end = report.end(origin);
    let mut object = json!({"from": origin, "text": end.to_string()});
    match end {
        End::Arrives { around } => {
            object["result"] = json!("arrives");
            object["aroundLoadBalancer"] = json!(around);
        }
        End::Ends(hop, code, _) => {
            object["result"] = json!("ends");
            object["hop"] = json!(hop);
            object["code"] = json!(code);
        }
        End::MayEnd(hop, code, _) => {
            object["result"] = json!("may-end");
            object["hop"] = json!(hop);
            object["code"] = json!(code);
        }
        End::Unknown(hops) => {
            object["result"] = json!("unknown");
            object["notLookedAt"] = json!(hops);
        }
    }
    object
}

/// One look.
pub fn check(check: &Check) -> Value {
    match check {
        Check::Ok(text) => json!({"result": "success", "description": text}),
        Check::Skipped(text) => json!({"result": "skipped", "description": text}),
        Check::Unknown(text) => json!({"result": "unknown", "description": text}),
        Check::Found(finding) => of_finding(finding),
    }
}

fn of_finding(finding: &Finding) -> Value {
    let Finding { code, text, evidence, fix, node, partial: _ } = finding;
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

//! `doctor rules`: how a node treats packets, from a dump of its rules.

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::Context as _;
use openstack_ccm_core::text::printable;
use openstack_ccm_doctor::code::Severity;
use openstack_ccm_doctor::finding::{Check, ok};
use openstack_ccm_doctor::output::{json, table};
use openstack_ccm_doctor::report::Counts;
use openstack_ccm_doctor::rules::{Fate, Target, Walk, short_circuit, walk};
use serde_json::{Value, json};

use super::args::{RulesArgs, RulesOutput};
use super::{could_not_look, terminal};
use crate::help::{EXIT_FOUND, EXIT_NEEDS_A_PERSON};
use crate::output::{Form, print};

/// The largest dump to read: nodes with tens of thousands of Services have some ten megabytes.
const MAX_DUMP_SIZE: u64 = 256 << 20;

/// Reads the dump, and reports the fate of packets.
pub(super) fn run(arguments: &RulesArgs) -> anyhow::Result<ExitCode> {
    let target = &arguments.address;
    let walked = match read(arguments) {
        Ok(text) => walk(&text, target, arguments.mode).map_err(anyhow::Error::new),
        Err(error) => Err(error),
    };
    let walk = match walked {
        Ok(walk) => walk,
        Err(error) => return Ok(could_not_look(&error)),
    };
    let around = short_circuit(&walk, target).filter(|_| arguments.needs_load_balancer);
    let findings = walk.findings.iter().cloned().chain(around);
    let mut checks: Vec<Check> = findings.map(Check::from).collect();
    match arguments.output {
        RulesOutput::Table => print(text(&walk, &mut checks, &target.to_string()))?,
        RulesOutput::Json => print(Form::Json.document(&object(&walk, &checks, target))?)?,
        RulesOutput::Yaml => print(Form::Yaml.document(&object(&walk, &checks, target))?)?,
    }
    let code = if Counts::of(&checks).reaches(Severity::Error) {
        EXIT_FOUND
    } else if walk.fate == Fate::NoRules {
        EXIT_NEEDS_A_PERSON
    } else {
        0
    };
    Ok(ExitCode::from(code))
}

fn read(arguments: &RulesArgs) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    if arguments.file.as_os_str() == "-" {
        std::io::stdin()
            .lock()
            .take(MAX_DUMP_SIZE)
            .read_to_end(&mut bytes)
            .context("standard input cannot be read")?;
    } else {
        let problem = || format!("{} cannot be read", arguments.file.display());
        let file = std::fs::File::open(&arguments.file).with_context(problem)?;
        file.take(MAX_DUMP_SIZE).read_to_end(&mut bytes).with_context(problem)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn object(walk: &Walk, checks: &[Check], target: &Target) -> Value {
    let found: Vec<_> = checks.iter().map(json::check).collect();
    json!({
        "address": target.to_string(),
        "format": walk.format,
        "fate": walk.fate,
        "text": walk.fate.to_string(),
        "steps": walk.steps,
        "findings": found,
    })
}

fn text(walk: &Walk, checks: &mut Vec<Check>, target: &str) -> String {
    let steps: String = walk.steps.iter().map(|step| format!("  {}\n", printable(step))).collect();
    if checks.is_empty() {
        checks.push(ok(format!("{target}: {}", walk.fate)));
    }
    let style = terminal::style(false);
    format!(
        "{steps}\n{}\n{}: {}\n",
        table::checks("rules", checks, style),
        target,
        printable(&walk.fate.to_string())
    )
}

//! What was measured, as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use openstack_ccm_controllers::service::ServiceControllerOptions;

use crate::cloud::{CHANGE, CREATION, LATENCY};
use crate::pass::Pass;
use crate::phases::Phase;
use crate::planned::Planned;
use crate::program::{Reached, Usage};
use crate::scenarios::{Row, Scenario};
use crate::simulated::Simulated;
use crate::wide::NODE_JOINS;

/// Most memory of a program that serves 1,000, in KiB.
const MOST_MEMORY: u64 = 40 * 1024;
/// The same while a node joins 5,000 on 1,000 nodes.
const MOST_MEMORY_OF_MANY: u64 = 160 * 1024;

/// All tables that have a row.
pub(crate) fn tables(rows: &[(&Scenario, Row)]) -> String {
    let mut text = String::new();
    let simulated: Vec<_> = rows.iter().flat_map(|(scenario, row)| titled(scenario, row)).collect();
    if !simulated.is_empty() {
        text.push_str(&times(&simulated));
        text.push_str(&calls(&simulated));
    }
    let phases: Vec<_> = rows.iter().flat_map(|(_, row)| &row.phases).collect();
    if !phases.is_empty() {
        text.push_str(&changes(&phases));
    }
    let usages: Vec<_> = rows.iter().flat_map(|(_, row)| &row.program).collect();
    if !usages.is_empty() {
        text.push_str(&memory(&usages));
    }
    let passes: Vec<_> = rows.iter().flat_map(|(_, row)| &row.passes).collect();
    if !passes.is_empty() {
        text.push_str(&allocations(&passes));
    }
    let plans: Vec<_> =
        rows.iter().filter_map(|(scenario, row)| Some((scenario.title, row.planned.as_ref()?))).collect();
    if !plans.is_empty() {
        text.push_str(&planned(&plans));
    }
    text.push_str(&targets(rows));
    text
}

/// What was measured of a scenario, in the order in which it happened.
fn titled<'a>(scenario: &Scenario, row: &'a Row) -> impl Iterator<Item = (String, &'a Simulated)> {
    let first = row.simulated.as_ref().map(|simulated| (scenario.title.to_owned(), simulated));
    let later = row.later.as_ref().map(|(words, later)| (format!("{}, {words}", scenario.title), later));
    first.into_iter().chain(later)
}

fn times(rows: &[(String, &Simulated)]) -> String {
    let mut text = format!(
        "Simulated time: a call to OpenStack takes {} ms, a new load balancer {} s, a change {} s; {} Services at once.\n\n\
         | scenario | time | the cloud's own | ratio | OpenStack: calls | writes | for each load balancer | Kubernetes: calls | writes |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        LATENCY.as_millis(),
        CREATION.as_secs(),
        CHANGE.as_secs(),
        ServiceControllerOptions::default().concurrency
    );
    for (title, row) in rows {
        let own = if row.own > 0.0 { format!("{:.1} s", row.own) } else { "–".to_owned() };
        let ratio = if row.own > 0.0 { format!("{:.2}", row.time / row.own) } else { "–".to_owned() };
        let _ = writeln!(
            text,
            "| {title} | {:.1} s | {own} | {ratio} | {} | {} | {:.2} | {} | {} |",
            row.time,
            row.openstack_calls(),
            row.openstack_writes,
            share(row.openstack_calls(), row.load_balancers),
            row.kubernetes_calls(),
            row.kubernetes_writes,
        );
    }
    text.push('\n');
    text
}

#[allow(clippy::cast_precision_loss, reason = "these are small")]
fn share(calls: usize, load_balancers: usize) -> f64 {
    calls as f64 / load_balancers as f64
}

fn calls(rows: &[(String, &Simulated)]) -> String {
    let mut text =
        "| scenario | calls to OpenStack | calls to Kubernetes |\n| --- | --- | --- |\n".to_owned();
    for (title, row) in rows {
        let (openstack, kubernetes) = (by_name(&row.openstack), by_name(&row.kubernetes));
        let _ = writeln!(text, "| {title} | {openstack} | {kubernetes} |");
    }
    text.push('\n');
    text
}

fn by_name(calls: &BTreeMap<String, usize>) -> String {
    let list: Vec<String> = calls.iter().map(|(name, count)| format!("{count} × `{name}`")).collect();
    list.join("<br>")
}

fn changes(rows: &[&Phase]) -> String {
    let mut text = "Octavia has the capacity of a small real one; a call to OpenStack takes 50 ms.\n\n\
        | change | time | first, median served | calls to Octavia | at most | all calls to OpenStack | writes | writes in Kubernetes |\n\
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for phase in rows {
        let Phase { change, most, cost, served } = phase;
        let most = most.map_or("–".to_owned(), |most| most.to_string());
        let moments = match (served.first(), served.get(served.len() / 2)) {
            (Some(first), Some(median)) => format!("{first:.1} s, {median:.1} s"),
            _ => "–".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {change} | {:.1} s | {moments} | {} | {most} | {} | {} | {} |",
            cost.time,
            phase.octavia_calls(),
            cost.openstack_calls(),
            cost.openstack_writes,
            cost.kubernetes_writes,
        );
    }
    text.push('\n');
    text
}

fn memory(rows: &[&(String, Usage)]) -> String {
    let mut text = "The program as a process of its own, the simulators in another.\n\n\
        | the program | most memory | memory at rest | of this its own | and of its file | processor | time | reached after | of this the simulators' own | calls to Octavia and Neutron |\n\
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for (what, usage) in rows {
        let seconds = |time: Option<f64>| time.map_or("–".to_owned(), |time| format!("{time:.1} s"));
        let reached = usage.reached.as_ref();
        let (time, simulators) = (seconds(usage.time), seconds(reached.map(|reached| reached.simulators)));
        let reached = seconds(reached.map(|reached| reached.time));
        let calls = usage.calls.map_or("–".to_owned(), |calls| calls.to_string());
        let _ = writeln!(
            text,
            "| {what} | {} | {} | {} | {} | {:.1} s | {time} | {reached} | {simulators} | {calls} |",
            mebibytes(usage.peak),
            mebibytes(usage.rest),
            mebibytes(usage.own),
            mebibytes(usage.file),
            usage.processor,
        );
    }
    text.push('\n');
    text
}

#[allow(clippy::cast_precision_loss, reason = "these are small")]
fn mebibytes(kibibytes: u64) -> String {
    format!("{:.1} MiB", kibibytes as f64 / 1024.0)
}

fn allocations(passes: &[&Pass]) -> String {
    let mut text = "One pass of the provider over a Service that did not change.\n\n\
        | members | calls | allocations | their bytes | processor |\n| ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for pass in passes {
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} µs |",
            pass.nodes, pass.calls, pass.allocations, pass.bytes, pass.processor
        );
    }
    text.push('\n');
    text
}

fn planned(rows: &[(&str, &Planned)]) -> String {
    let mut text = "A plan, by the program as a process of its own, in real time.\n\n\
        | plan | time | processor | most memory | OpenStack: lists | single objects | Kubernetes: lists | single objects |\n\
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for (title, row) in rows {
        let Planned { time, usage, openstack, kubernetes, .. } = row;
        let _ = writeln!(
            text,
            "| {title} | {time:.1} s | {:.1} s | {} | {} | {} | {} | {} |",
            usage.processor,
            mebibytes(usage.peak),
            openstack.0,
            openstack.1,
            kubernetes.0,
            kubernetes.1,
        );
    }
    text.push('\n');
    text
}

fn targets(rows: &[(&Scenario, Row)]) -> String {
    let mut text = "| target | measured | |\n| --- | --- | --- |\n".to_owned();
    let mut line = |target: &str, measured: String, met: bool| {
        let _ = writeln!(text, "| {target} | {measured} | {} |", if met { "met" } else { "missed" });
    };
    for (scenario, row) in rows {
        match (scenario.name, row.simulated.as_ref()) {
            ("nodes", Some(row)) => {
                let (ratio, writes) = (row.time / row.own, row.openstack_writes);
                line(
                    "a node change within 1.5 times the cloud's own time",
                    format!("{ratio:.2}"),
                    ratio <= 1.5,
                );
                line(
                    "a node change: one write for each pool",
                    writes.to_string(),
                    writes == row.load_balancers,
                );
            }
            ("restart" | "groups", Some(row)) => {
                let (calls, load_balancers) = (row.openstack_calls(), row.load_balancers);
                let target = format!("{}: one read for each load balancer, and some lists", scenario.title);
                line(&target, format!("{calls} calls"), calls < load_balancers + 30);
            }
            ("idle", Some(row)) => {
                let writes = row.openstack_writes + row.kubernetes_writes;
                line("an idle hour: no write", writes.to_string(), writes == 0);
            }
            _ => {}
        }
        if let Some((words, later)) = row.later.as_ref().filter(|_| scenario.name == "idle") {
            let calls = later.openstack_calls();
            line(&format!("{words}: at most 100 calls"), calls.to_string(), calls <= 100);
        }
        for (what, usage) in row.program.iter().filter(|_| scenario.name == "restart") {
            line(&format!("{what}: at most 40 MiB"), mebibytes(usage.peak), usage.peak <= MOST_MEMORY);
        }
        for (what, usage) in row.program.iter().filter(|(what, _)| what == NODE_JOINS) {
            let most = mebibytes(usage.peak);
            line(&format!("{what}: at most 160 MiB"), most, usage.peak <= MOST_MEMORY_OF_MANY);
            if let Some(Reached { time, simulators }) = &usage.reached {
                let ratio = time / simulators;
                let target = format!("{what}: within 1.5 times the simulators' own time");
                line(&target, format!("{ratio:.2}"), ratio <= 1.5);
            }
        }
        for phase in &row.phases {
            if let Some(most) = phase.most {
                let calls = phase.octavia_calls();
                line(&format!("{}: at most {most} calls", phase.change), calls.to_string(), calls <= most);
            }
        }
        if let Some(Planned { services, openstack: (lists, _), writes, .. }) = &row.planned {
            // Of members there is no list of all.
            let (of_each, measured) = (lists * 10 < *services, format!("{lists} lists and {writes} writes"));
            line(
                "a plan: fewer lists than a tenth of the Services, no write",
                measured,
                of_each && *writes == 0,
            );
        }
        if let Some(most) = row.passes.iter().map(|pass| pass.calls).reduce(f64::max) {
            line("a pass over a Service that did not change: one call", format!("{most:.0}"), most <= 1.0);
        }
    }
    text
}

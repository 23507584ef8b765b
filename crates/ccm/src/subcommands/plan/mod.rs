//! `openstack-ccm plan` and `openstack-ccm adopt`: what the controllers would do, before they do it.
//!
//! The controllers themselves run, on clients that write nothing: reads go to cloud and cluster, writes are recorded and
//! answered from a picture in memory, so that later steps see them. Nothing is planned by a second implementation that
//! could differ. No lease is taken and no Event is written, so a plan can be made beside a controller at work.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | their flags |
//! | `rehearsal` | the controllers on a dry run |
//! | `journal` | what they would write, and what they saw |
//! | `cluster` | the Kubernetes API to plan on; the cloud is [`openstack_ccm_openstack_api::dry_run`] |
//! | `as_if` | annotations that Services are taken to have |
//! | `line`, `lines`, `fields`, `cluster_lines` | the objects that would change |
//! | `outlook`, `summary` | what that means, and the exit code |
//! | `adoption` | what `adopt` says beside it |
//! | `text`, `calls` | how it is written |
//! | `connect` | the connection to cloud and cluster |

pub mod adoption;
pub mod args;
pub mod as_if;
pub mod calls;
pub mod cluster;
mod cluster_lines;
mod connect;
mod fields;
pub mod journal;
pub mod line;
pub mod lines;
pub mod outlook;
pub mod rehearsal;
pub mod summary;
mod text;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::json;

use crate::subcommands::output::print;
use adoption::Adoption;
use args::{AdoptArgs, PlanArgs, PlanOutput};
use as_if::AsIf;
use connect::connect;
use outlook::Outlook;
use rehearsal::{Chosen, Item, Stage, Subject, rehearse};
use summary::Summary;

/// Makes the plan and writes it to standard output.
///
/// # Errors
/// Flags or configuration that cannot work; cloud or cluster cannot be asked; standard output is closed.
pub async fn plan(arguments: &PlanArgs) -> anyhow::Result<ExitCode> {
    let PlanArgs { services, all, as_if, rehearsal } = arguments;
    let chosen = if *all { Chosen::All } else { Chosen::Named(services.clone()) };
    let as_if = AsIf { services: services.clone(), annotations: as_if.clone() };
    let (stage, _) = connect(rehearsal, &chosen, as_if).await?;
    report(&Plan::make(stage, &chosen).await?, None, rehearsal.output)
}

/// Makes the plan for a cluster that another program serves, and writes it to standard output.
///
/// # Errors
/// As for [`plan`].
pub async fn adopt(arguments: &AdoptArgs) -> anyhow::Result<ExitCode> {
    let AdoptArgs { services, all: _, rehearsal } = arguments;
    let chosen = if services.is_empty() { Chosen::All } else { Chosen::Named(services.clone()) };
    let (stage, config) = connect(rehearsal, &chosen, AsIf::default()).await?;
    let plan = Plan::make(stage, &chosen).await?;
    let adoption = Adoption::of(&plan.items, &plan.outlooks, &config.load_balancer);
    report(&plan, Some(&adoption), rehearsal.output)
}

/// A plan, with what it means.
struct Plan {
    items: Vec<Item>,
    outlooks: Vec<Outlook>,
    summary: Summary,
}

impl Plan {
    async fn make(stage: Stage, chosen: &Chosen) -> anyhow::Result<Self> {
        let time = Timestamp::now();
        let items = rehearse(stage, chosen, progress).await?;
        let outlooks: Vec<Outlook> = items.iter().map(Outlook::of).collect();
        let summary = Summary::of(&outlooks, time);
        Ok(Self { items, outlooks, summary })
    }
}

fn report(plan: &Plan, adoption: Option<&Adoption>, output: PlanOutput) -> anyhow::Result<ExitCode> {
    let Plan { items, outlooks, summary } = plan;
    let written = match output {
        PlanOutput::Text => text::text(outlooks, summary, adoption, std::io::stdout().is_terminal()),
        PlanOutput::Json => json_text(plan, adoption)?,
        PlanOutput::Calls => calls_text(items),
    };
    print(written)?;
    Ok(ExitCode::from(summary.exit_code()))
}

/// Tells a person who waits how far it is.
fn progress(done: usize, all: usize) {
    let mut stderr = std::io::stderr();
    if all < 10 || !stderr.is_terminal() {
        return;
    }
    // Nobody misses it where it cannot be shown.
    let end = if done == all { "\r\u{1b}[K" } else { "" };
    let _ = write!(stderr, "\r{done} of {all} Services{end}");
}

fn json_text(plan: &Plan, adoption: Option<&Adoption>) -> anyhow::Result<String> {
    let Plan { items, outlooks, summary } = plan;
    let subjects: Vec<_> = items
        .iter()
        .zip(outlooks)
        .map(|(item, outlook)| {
            let mut subject = serde_json::to_value(outlook)?;
            subject["calls"] = item.calls.iter().map(calls::object).collect();
            Ok(subject)
        })
        .collect::<Result<_, serde_json::Error>>()?;
    let mut plan = json!({"summary": summary, "interrupts": summary.interrupted > 0, "subjects": subjects});
    if let Some(adoption) = adoption {
        plan["adoption"] = json!(adoption);
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(&plan)?))
}

fn calls_text(items: &[Item]) -> String {
    let line = |item: &Item| {
        let subject = match &item.subject {
            Subject::Service(key) => key.to_string(),
            Subject::Nodes | Subject::NodeLifecycle => "nodes".to_owned(),
            Subject::Routes => "routes".to_owned(),
        };
        item.calls.iter().map(|call| format!("{subject} {}\n", calls::line(call))).collect::<String>()
    };
    items.iter().map(line).collect()
}

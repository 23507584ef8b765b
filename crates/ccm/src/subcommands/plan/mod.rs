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
//! | `outlook` | what that means |
//! | `adoption` | what `adopt` says beside it |
//! | `summary` | all of it as text, and as an exit code |

pub mod adoption;
pub mod args;
pub mod as_if;
pub mod cluster;
mod cluster_lines;
mod fields;
pub mod journal;
pub mod line;
pub mod lines;
pub mod outlook;
pub mod rehearsal;
pub mod summary;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;
use openstack_ccm_openstack_api::dry_run::{DryRun, Reading};
use openstack_ccm_provider_openstack::cloud::{ENTRY, OpenStackProvider};
use openstack_ccm_provider_openstack::config::Config;
use serde_json::json;

use crate::args::{ControllerArgs, PersonArgs, RunArgs};
use crate::kubernetes::{ControllerClients, cluster_uid};
use crate::program::ProgramOptions;
use crate::subcommands::output::print;
use crate::wiring;
use adoption::Adoption;
use args::{AdoptArgs, PlanArgs, PlanOutput, RehearsalArgs};
use as_if::AsIf;
use journal::{Call, Journal};
use outlook::Outlook;
use rehearsal::{Chosen, Item, Stage, Subject, rehearse};
use summary::Summary;

/// More Services than this are planned from whole lists.
const FEW: usize = 10;

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

/// Logs in and puts everything together; beside it the configuration.
///
/// # Errors
/// Flags or configuration that cannot work; cloud or cluster cannot be asked.
async fn connect(
    rehearsal: &RehearsalArgs,
    chosen: &Chosen,
    as_if: AsIf,
) -> anyhow::Result<(Stage, Arc<Config>)> {
    let RehearsalArgs { controller, person, output: _ } = rehearsal;
    let provider = OpenStackProvider::load(&controller.config.cloud_config)?;
    let stage = stage(controller, person, &provider, chosen, as_if).await?;
    Ok((stage, Arc::clone(provider.config())))
}

/// What a dry run is made of, in the cloud of a configuration and in the cluster of whoever asks.
///
/// # Errors
/// Flags that cannot work; cloud or cluster cannot be asked.
pub(crate) async fn stage(
    controller: &ControllerArgs,
    person: &PersonArgs,
    provider: &OpenStackProvider,
    chosen: &Chosen,
    as_if: AsIf,
) -> anyhow::Result<Stage> {
    // Of everything else the plan is as of controllers without flags.
    let run_args = RunArgs { controller: controller.clone(), ..RunArgs::try_parse(["openstack-ccm"])? };
    let (_, selection) = run_args.validate(&[ENTRY])?;
    let journal = Arc::new(Journal::default());
    let ahead = match chosen {
        Chosen::All => true,
        Chosen::Named(services) => services.len() > FEW,
    };
    // The cloud of the configuration, which is then only read.
    let recorder = Arc::clone(&journal);
    let openstack = provider
        .log_in_through(|transport, project_id| {
            let reading = Reading { ahead, project_id: project_id.map(str::to_owned) };
            Arc::new(DryRun::new(transport, reading, recorder))
        })
        .await?;
    let cloud = provider.cloud(openstack);
    // Routes belong to no Service.
    let route = match chosen {
        Chosen::All => wiring::options::route(&controller.route, &selection, provider)?,
        Chosen::Named(_) => None,
    };
    let options = wiring::options::choose(&run_args, &selection, provider, &cloud, route)?;
    let options = match chosen {
        Chosen::All => options,
        Chosen::Named(_) => ProgramOptions { node: None, node_lifecycle: None, ..options },
    };
    let real = person.client().await?;
    let cluster_uid = cluster_uid(real.clone()).await?;
    let clients = ControllerClients::same(cluster::client(real, Arc::clone(&journal), as_if));
    Ok(Stage { clients, cloud: Arc::new(cloud), cluster_uid, options, journal })
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
        PlanOutput::Text => summary::text(outlooks, summary, adoption, std::io::stdout().is_terminal()),
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
            subject["calls"] = item.calls.iter().map(Call::object).collect();
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
            Subject::NodeLifecycle => &Subject::Nodes,
            subject => subject,
        };
        item.calls.iter().map(|call| format!("{subject} {call}\n")).collect::<String>()
    };
    items.iter().map(line).collect()
}

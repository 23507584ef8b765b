//! `openstack-ccm plan` and `openstack-ccm adopt`: what the controllers would change, before they do it.
//!
//! The controllers themselves run, on clients that write nothing: reads go to cloud and cluster; writes are recorded and answered
//! from a picture in memory, so that later steps see them. No second implementation plans, which could differ. The dry run takes
//! no lease and writes no Event, so a plan can be made beside a running controller.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | their flags |
//! | `rehearsal` | the controllers on a dry run |
//! | `journal` | the writes that they would make, and the objects that they read |
//! | `cluster` | the Kubernetes API for plans; the cloud is [`openstack_ccm_openstack_api::dry_run`] |
//! | `as_if` | annotations that the plan assumes on Services |
//! | `changes` | the objects that would change |
//! | `forecast` | the plan for one subject |
//! | `adoption` | the output of `adopt` besides the plan |
//! | `summary` | the whole plan as text, and its exit code |

pub mod adoption;
pub mod args;
pub mod as_if;
pub mod changes;
pub mod cluster;
pub mod forecast;
pub mod journal;
pub mod rehearsal;
pub mod summary;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;
use openstack_ccm_manager::args::{ControllerArgs, PersonArgs, RunArgs};
use openstack_ccm_manager::kubernetes::{ControllerClients, cluster_uid};
use openstack_ccm_manager::program::ProgramOptions;
use openstack_ccm_manager::wiring;
use openstack_ccm_openstack_api::dry_run::{DryRun, Reading};
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
use openstack_ccm_provider_openstack::config::Config;
use serde_json::{Value, json};

use crate::as_leader::settled;
use crate::cloud::log_in;
use crate::from_cluster::provider;
use crate::output::{Form, Progress, plural, print};
use adoption::Adoption;
use args::{AdoptArgs, PlanArgs, PlanOutput, RehearsalArgs, TargetArgs};
use as_if::AsIf;
use forecast::{Forecast, State};
use journal::{Call, Journal};
use rehearsal::{Chosen, DryRunResult, Item, Stage, Subject, rehearse};
use summary::{LookedAt, Summary};

/// More Services than this are read by lists of the whole project.
pub(crate) const MAX_SINGLE_SERVICES: usize = 10;

/// Makes the plan and writes it to standard output.
///
/// # Errors
/// Flags or configuration are invalid; cloud or cluster cannot be queried; standard output is closed.
pub async fn plan(arguments: &PlanArgs) -> anyhow::Result<ExitCode> {
    let PlanArgs { target, as_if, rehearsal } = arguments;
    report(&Plan::make(target, as_if, rehearsal).await?, None, rehearsal.output)
}

/// Makes the plan for a cluster that another program serves, and writes it to standard output.
///
/// # Errors
/// As for [`plan`].
pub async fn adopt(arguments: &AdoptArgs) -> anyhow::Result<ExitCode> {
    let AdoptArgs { target, rehearsal } = arguments;
    let plan = Plan::make(target, &[], rehearsal).await?;
    let adoption = Adoption::of(&plan.items, &plan.forecasts, &plan.config.load_balancer);
    report(&plan, Some(&adoption), rehearsal.output)
}

/// Prepares a dry run, in the cloud of the configuration and the cluster of the user.
///
/// # Errors
/// Flags are invalid; cloud or cluster cannot be queried.
pub(crate) async fn stage(
    controller: &ControllerArgs,
    person: &PersonArgs,
    provider: &OpenStackProvider,
    chosen: &Chosen,
    as_if: AsIf,
) -> anyhow::Result<Stage> {
    // For all other flags the plan assumes their defaults.
    let run_args = RunArgs { controller: controller.clone(), ..RunArgs::try_parse(["openstack-ccm"])? };
    let selection = run_args.selection()?;
    let journal = Arc::new(Journal::default());
    let real = person.client().await?;
    let ahead = match chosen {
        Chosen::All | Chosen::In(_) => true,
        Chosen::Named(services) => services.len() > MAX_SINGLE_SERVICES,
    };
    // The transport to the configured cloud, through which the dry run only reads.
    let recorder = Arc::clone(&journal);
    let openstack = log_in(provider, person, |transport, project_id| {
        let reading = Reading { ahead, project_id: project_id.map(str::to_owned) };
        Arc::new(DryRun::new(transport, reading, recorder))
    })
    .await?;
    let cloud = provider.cloud(openstack);
    // Routes belong to no Service.
    let route = match chosen {
        Chosen::All => wiring::options::route(&controller.route, &selection, provider)?,
        Chosen::Named(_) | Chosen::In(_) => None,
    };
    let options = wiring::options::choose(&run_args, &selection, provider, &cloud, route)?;
    let options = match chosen {
        Chosen::All => options,
        Chosen::Named(_) | Chosen::In(_) => ProgramOptions { node: None, node_lifecycle: None, ..options },
    };
    let cluster_uid = cluster_uid(real.clone()).await?;
    let clients = ControllerClients::same(cluster::client(real, Arc::clone(&journal), as_if));
    Ok(Stage { clients, cloud: Arc::new(cloud), cluster_uid, options, journal })
}

/// A plan with its summary.
struct Plan {
    items: Vec<Item>,
    forecasts: Vec<Forecast>,
    summary: Summary,
    config: Arc<Config>,
}

impl Plan {
    /// Logs in and makes the plan.
    ///
    /// # Errors
    /// Flags or configuration are invalid; cloud or cluster cannot be queried.
    async fn make(
        target: &TargetArgs,
        as_if: &[(String, Option<String>)],
        rehearsal: &RehearsalArgs,
    ) -> anyhow::Result<Self> {
        let RehearsalArgs { typed, from_cluster, controller, lease, person, output: _ } = rehearsal;
        let client = person.client().await?;
        let provider = provider(&client, lease, &controller.config.cloud_config, *from_cluster).await?;
        let controller = &settled(&client, lease, *typed, controller).await?;
        let chosen = target.chosen(client.default_namespace())?;
        let (services, namespace) = match &chosen {
            Chosen::All => (Vec::new(), None),
            Chosen::Named(services) => (services.clone(), None),
            Chosen::In(namespace) => (Vec::new(), Some(namespace.clone())),
        };
        let as_if = AsIf { services, namespace, annotations: as_if.to_vec() };
        let stage = stage(controller, person, &provider, &chosen, as_if).await?;
        let time = Timestamp::now();
        let mut progress = Progress::new();
        let DryRunResult { items, nodes } = rehearse(stage, &chosen, |done, all| {
            progress.report(format_args!("{done} of {} planned", plural(all, "Service")));
        })
        .await?;
        drop(progress);
        let config = Arc::clone(provider.config());
        let former = &config.load_balancer.former_cluster_names;
        let forecasts: Vec<Forecast> = items.iter().map(|item| Forecast::asking(item, former)).collect();
        let services = items.iter().filter(|item| matches!(item.subject, Subject::Service(_))).count();
        let nodes = (chosen == Chosen::All).then_some(nodes);
        let looked_at = LookedAt { services, nodes, cluster_name: &controller.cluster_name };
        let summary = Summary::of(&forecasts, time, looked_at);
        Ok(Self { items, forecasts, summary, config })
    }
}

fn report(plan: &Plan, adoption: Option<&Adoption>, output: PlanOutput) -> anyhow::Result<ExitCode> {
    let Plan { items, forecasts, summary, config: _ } = plan;
    let written = match output {
        PlanOutput::Text => summary::text(forecasts, summary, adoption, std::io::stdout().is_terminal()),
        PlanOutput::Json => Form::Json.document(&object(plan, adoption)?)?,
        PlanOutput::Yaml => Form::Yaml.document(&object(plan, adoption)?)?,
        PlanOutput::Calls => calls_text(items),
    };
    print(written)?;
    Ok(ExitCode::from(summary.exit_code()))
}

fn object(plan: &Plan, adoption: Option<&Adoption>) -> anyhow::Result<Value> {
    let Plan { items, forecasts, summary, config: _ } = plan;
    let subjects: Vec<_> = items
        .iter()
        .zip(forecasts)
        .map(|(item, forecast)| {
            let mut subject = serde_json::to_value(forecast)?;
            // The controller would finish these; the calls show whether anything would change.
            if forecast.state == State::Settled {
                subject["state"] = if item.calls.is_empty() { "unchanged" } else { "changes" }.into();
            }
            subject["calls"] = item.calls.iter().map(Call::object).collect();
            Ok(subject)
        })
        .collect::<Result<_, serde_json::Error>>()?;
    let mut plan = json!({"version": 2, "summary": summary, "interrupts": summary.interrupted > 0, "subjects": subjects});
    if let Some(adoption) = adoption {
        plan["adoption"] = json!(adoption);
    }
    Ok(plan)
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

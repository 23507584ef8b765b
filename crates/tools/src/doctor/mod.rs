//! `openstack-ccm doctor`: follows a packet to a load balancer, hop by hop, and reports where it ends and how to fix it.
//!
//! The facts are gathered once, with the rights of the user; the checks are in `openstack_ccm_doctor`, and are pure. A dry run of
//! the controllers, as in `plan`, shows what they would publish, change or refuse. Nothing is written, except with `--live`.
//!
//! Each module names only modules above it.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `terminal` | colours, width, progress |
//! | `rbac` | the ClusterRole that it needs |
//! | `rules` | `doctor rules` |
//! | `facts` | the gathering of facts |
//! | `live` | one short-lived pod on each node, which runs [`openstack_ccm_manager::dial`] |

pub mod args;
mod facts;
mod live;
pub mod rbac;
mod rules;
mod terminal;

use std::io::Write as _;
use std::process::ExitCode;

use openstack_ccm_doctor::facts::Host;
use openstack_ccm_doctor::hops;
use openstack_ccm_doctor::leftovers;
use openstack_ccm_doctor::output::{Outcome, json, mermaid, table};
use openstack_ccm_manager::dial;
use openstack_ccm_manager::error_text::said_once;

use crate::as_leader::settled;
use crate::output::{Progress, print, print_line};
use args::{DoctorArgs, DoctorOutput, DoctorRole, WalkArgs};
use facts::{Names, gather};

/// Runs doctor and writes its report.
pub async fn run(arguments: DoctorArgs) -> anyhow::Result<ExitCode> {
    match &arguments.role {
        Some(DoctorRole::Rules(arguments)) => rules::run(arguments),
        Some(DoctorRole::Dial(arguments)) => {
            print_line(dial::run(arguments).await?).map(|()| ExitCode::SUCCESS)
        }
        None if arguments.look.print_rbac => print(rbac::ROLE).map(|()| ExitCode::SUCCESS),
        None => match look(&arguments.look).await {
            Ok(outcome) => report(&outcome, &arguments.look),
            Err(error) => Ok(could_not_look(&error)),
        },
    }
}

/// Makes the checks that the flags ask for.
///
/// # Errors
/// No check could be made.
pub async fn look(arguments: &WalkArgs) -> anyhow::Result<Outcome> {
    look_knowing(arguments, &|_| None).await
}

/// Makes the checks with a resolver for known hostnames; DNS servers are asked for the others.
///
/// # Errors
/// No check could be made.
pub async fn look_knowing(
    arguments: &WalkArgs,
    names: &(dyn Fn(&str) -> Option<Host> + Sync),
) -> anyhow::Result<Outcome> {
    let mut progress = Progress::new();
    let client = arguments.person.client().await?;
    let names: &Names<'_> = names;
    let controller = settled(&client, &arguments.lease, arguments.typed, &arguments.controller).await?;
    let arguments = &WalkArgs { controller, ..arguments.clone() };
    let mut gathered = gather(&client, arguments, names, &mut progress).await?;
    if arguments.live {
        drop(progress);
        live::dial(&client, arguments, &mut gathered).await?;
    }
    let cluster = &gathered.cluster;
    Ok(Outcome {
        reports: gathered.services.iter().map(|facts| hops::walk(cluster, facts)).collect(),
        leftovers: gathered.leftovers.as_ref().map(|facts| leftovers::judge(cluster, facts)),
        absent: gathered.absent,
    })
}

fn report(outcome: &Outcome, arguments: &WalkArgs) -> anyhow::Result<ExitCode> {
    let fail_on = arguments.fail_on;
    print(match arguments.output {
        DoctorOutput::Table => table::text(outcome, terminal::style(false)),
        DoctorOutput::Short => table::text(outcome, terminal::style(true)),
        DoctorOutput::Json => {
            format!("{}\n", serde_json::to_string_pretty(&json::object(outcome, fail_on))?)
        }
        DoctorOutput::Yaml => serde_saphyr::to_string(&json::object(outcome, fail_on))?,
        DoctorOutput::Mermaid => mermaid::text(outcome),
    })?;
    Ok(ExitCode::from(outcome.exit_code(fail_on)))
}

/// Reports why no check could be made.
fn could_not_look(error: &anyhow::Error) -> ExitCode {
    // Standard error may be closed; the exit code remains.
    let _ = writeln!(std::io::stderr(), "openstack-ccm: {}", said_once(error));
    ExitCode::FAILURE
}

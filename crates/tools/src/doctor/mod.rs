//! `openstack-ccm doctor`: follows a packet to a load balancer, hop by hop, and says where it ends and how to fix it.
//!
//! The facts are gathered once, with the rights of whoever asks; the judgements are in `openstack_ccm_doctor`, and are pure. What the
//! controllers would publish, change or refuse is found out by running them on a dry run, as `plan` does. Nothing is written,
//! except with `--live`.
//!
//! Each module names only modules above it.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | its flags |
//! | `terminal` | colours, width, progress |
//! | `rbac` | the role that it needs |
//! | `rules` | `doctor rules` |
//! | `facts` | gathering |
//! | `live` | one short pod on each node, which does what [`openstack_ccm_manager::dial`] says |

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

use crate::output::{Progress, print, print_line};
use args::{DoctorArgs, DoctorOutput, DoctorRole, WalkArgs};
use facts::{Names, gather};

/// Looks, and says what it found.
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

/// Looks as the flags say.
///
/// # Errors
/// Nothing could be looked at.
pub async fn look(arguments: &WalkArgs) -> anyhow::Result<Outcome> {
    look_knowing(arguments, &|_| None).await
}

/// The same, with what is known of hostnames: name servers are asked for the others.
///
/// # Errors
/// Nothing could be looked at.
pub async fn look_knowing(
    arguments: &WalkArgs,
    names: &(dyn Fn(&str) -> Option<Host> + Sync),
) -> anyhow::Result<Outcome> {
    let mut progress = Progress::new();
    let client = arguments.person.client().await?;
    let names: &Names<'_> = names;
    let mut gathered = gather(&client, arguments, names, &mut progress).await?;
    if arguments.live {
        drop(progress);
        live::dial(&client, arguments, &mut gathered).await?;
    }
    let cluster = &gathered.cluster;
    Ok(Outcome {
        reports: gathered.services.iter().map(|facts| hops::walk(cluster, facts)).collect(),
        leftovers: gathered.leftovers.as_ref().map(|facts| leftovers::judge(cluster, facts)),
    })
}

fn report(outcome: &Outcome, arguments: &WalkArgs) -> anyhow::Result<ExitCode> {
    let severity = arguments.fail_on.severity();
    print(match arguments.output {
        DoctorOutput::Table => table::text(outcome, terminal::style(false)),
        DoctorOutput::Short => table::text(outcome, terminal::style(true)),
        DoctorOutput::Json => {
            format!("{}\n", serde_json::to_string_pretty(&json::object(outcome, severity))?)
        }
        DoctorOutput::Yaml => serde_saphyr::to_string(&json::object(outcome, severity))?,
        DoctorOutput::Mermaid => mermaid::text(outcome),
    })?;
    Ok(ExitCode::from(outcome.exit_code(severity)))
}

/// Says why nothing could be looked at.
fn could_not_look(error: &anyhow::Error) -> ExitCode {
    // Standard error may be closed; the exit code remains.
    let _ = writeln!(std::io::stderr(), "openstack-ccm: {}", said_once(error));
    ExitCode::FAILURE
}

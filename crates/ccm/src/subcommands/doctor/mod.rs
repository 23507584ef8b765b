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
//! | `dial` | what a pod of `--live` does |
//! | `live` | one short pod on each node |

pub mod args;
mod dial;
mod facts;
mod live;
mod rbac;
mod rules;
mod terminal;

use std::io::Write as _;
use std::process::ExitCode;

use openstack_ccm_doctor::hops;
use openstack_ccm_doctor::leftovers;
use openstack_ccm_doctor::output::{Outcome, json, mermaid, table};

use crate::error_text::said_once;
use crate::subcommands::output::Progress;
use crate::subcommands::output::print;
use args::{DoctorArgs, DoctorOutput, DoctorRole, WalkArgs};
use facts::gather;

/// Exit code of what could not be looked at.
const NOT_LOOKED_AT: u8 = 2;

/// Looks, and says what it found.
pub async fn run(arguments: DoctorArgs) -> anyhow::Result<ExitCode> {
    match &arguments.role {
        Some(DoctorRole::Rules(arguments)) => rules::run(arguments),
        Some(DoctorRole::Dial(arguments)) => dial::run(arguments).await,
        None if arguments.look.print_rbac => print(rbac::ROLE).map(|()| ExitCode::SUCCESS),
        None => match look(&arguments.look).await {
            Ok(looked) => report(&looked, &arguments.look),
            Err(error) => Ok(could_not_look(&error)),
        },
    }
}

/// What was seen, and why some could not be.
pub(crate) struct Looked {
    pub(crate) outcome: Outcome,
    troubles: Vec<String>,
}

/// Looks as the flags say.
///
/// # Errors
/// Nothing could be looked at.
pub(crate) async fn look(arguments: &WalkArgs) -> anyhow::Result<Looked> {
    let mut progress = Progress::new();
    let client = arguments.person.client().await?;
    let mut gathered = gather(&client, arguments, &mut progress).await?;
    let mut troubles: Vec<String> = gathered.unreadable().into_iter().map(str::to_owned).collect();
    troubles.extend(gathered.cloud_trouble.clone());
    if arguments.live {
        drop(progress);
        live::dial(&client, arguments, &mut gathered).await?;
    }
    troubles.sort();
    troubles.dedup();
    let cluster = &gathered.cluster;
    let outcome = Outcome {
        reports: gathered.services.iter().map(|facts| hops::walk(cluster, facts)).collect(),
        leftovers: gathered.leftovers.as_ref().map(|facts| leftovers::judge(cluster, facts)),
    };
    Ok(Looked { outcome, troubles })
}

fn report(looked: &Looked, arguments: &WalkArgs) -> anyhow::Result<ExitCode> {
    let Looked { outcome, troubles } = looked;
    let severity = arguments.fail_on.severity();
    print(match arguments.output {
        DoctorOutput::Table => table::text(outcome, terminal::style(false)),
        DoctorOutput::Short => table::text(outcome, terminal::style(true)),
        DoctorOutput::Json => {
            format!("{}\n", serde_json::to_string_pretty(&json::object(outcome, severity))?)
        }
        DoctorOutput::Mermaid => mermaid::text(outcome),
    })?;
    Ok(ExitCode::from(if outcome.counts().reaches(severity) {
        1
    } else if troubles.is_empty() {
        0
    } else {
        NOT_LOOKED_AT
    }))
}

/// Says why nothing could be looked at.
fn could_not_look(error: &anyhow::Error) -> ExitCode {
    // Standard error may be closed; the exit code remains.
    let _ = writeln!(std::io::stderr(), "openstack-ccm: {}", said_once(error));
    self::error()
}

/// What is no finding, a wrong command line too.
pub(crate) fn error() -> ExitCode {
    ExitCode::from(NOT_LOOKED_AT)
}

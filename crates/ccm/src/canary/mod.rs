//! `openstack-ccm canary`: whether the service proxy of each node honours `ipMode: Proxy`, measured.
//!
//! | module | holds |
//! | --- | --- |
//! | `look` | the two roles in the pods of the canary |
//! | `once` | the same from a laptop: makes a canary, waits for its verdicts, and cleans up |
//! | `rows` | what is said of each node, and the exit code |

mod look;
mod once;
mod rows;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use openstack_ccm_canary::addresses::Addresses;

use crate::args::{PersonArgs, duration};

/// Flags of the subcommand.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct CanaryArgs {
    /// What a pod of the canary does.
    #[command(subcommand)]
    role: Option<Role>,
    /// Look once, from here: make a canary in a namespace of its own, print what it finds on each node, and remove it. Exits
    /// with 0 where all nodes are fit, 1 where some are not, 2 where it could not be told of some.
    #[arg(long, required = true)]
    once: bool,
    /// Flags of `--once`.
    #[command(flatten)]
    flags: OnceArgs,
}

/// Flags of `--once`.
#[derive(Clone, Debug, Args)]
pub struct OnceArgs {
    /// How the nodes are printed.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    /// Image of openstack-ccm that the nodes can pull; without it the one that runs in kube-system.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Namespace that is made and removed.
    #[arg(long, value_name = "NAMESPACE", default_value = "openstack-ccm-canary-once")]
    namespace: String,
    /// Addresses of the Services, two for each family; nobody may have them.
    #[arg(long, value_name = "CONTROL,SUBJECT[,...]", default_value_t = Addresses::passing())]
    addresses: Addresses,
    /// Longest wait for verdicts.
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = duration::parse)]
    timeout: Duration,
    /// The cluster.
    #[command(flatten)]
    person: PersonArgs,
}

/// How the nodes are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Columns for people.
    Table,
    /// For machines.
    Json,
}

/// What a pod of the canary does.
#[derive(Clone, Debug, Subcommand)]
pub enum Role {
    /// Answer and look, and say the verdict by readiness: the container `conclusive`.
    Look(look::LookArgs),
    /// Wait for the end: the container `fit`, of which only the readiness matters.
    Idle,
}

impl Role {
    /// Does it until a signal ends it.
    ///
    /// # Errors
    /// The ports cannot be served.
    pub(crate) async fn play(self) -> anyhow::Result<()> {
        match self {
            Self::Look(arguments) => look::look(arguments).await,
            Self::Idle => look::idle().await,
        }
    }
}

impl CanaryArgs {
    /// Whether this is a role in a pod.
    pub(crate) fn is_in_a_pod(&self) -> bool {
        self.role.is_some()
    }
}

/// Does what the flags say.
///
/// # Errors
/// It could not be done.
pub async fn report(arguments: CanaryArgs) -> anyhow::Result<ExitCode> {
    match arguments.role {
        None => anyhow::ensure!(arguments.once, "--once is missing"),
        Some(role) => return role.play().await.map(|()| ExitCode::SUCCESS),
    }
    once::look(&arguments.flags).await
}

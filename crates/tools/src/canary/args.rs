//! Flags of `canary`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use openstack_ccm_canary::addresses::Addresses;
use openstack_ccm_manager::args::{PersonArgs, duration};
use openstack_ccm_manager::canary::Role;

/// Flags of the subcommand.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct CanaryArgs {
    /// What a pod of the canary does.
    #[command(subcommand)]
    pub(super) role: Option<Role>,
    /// Measure once, from here: create a canary in a namespace of its own, print what it finds on each node, and remove it.
    #[arg(long, required = true)]
    pub(super) once: bool,
    /// Flags of `--once`.
    #[command(flatten)]
    pub(super) flags: OnceArgs,
}

/// Flags of `--once`.
#[derive(Clone, Debug, Args)]
pub struct OnceArgs {
    /// Output format.
    #[arg(short, long, value_enum, default_value = "table")]
    pub(super) output: CanaryOutput,
    /// Image of openstack-ccm that the nodes can pull; by default the one that runs in kube-system.
    #[arg(long, value_name = "IMAGE")]
    pub(super) image: Option<String>,
    /// Namespace to create and remove.
    #[arg(long, value_name = "NAMESPACE", default_value = "openstack-ccm-canary-once")]
    pub(super) namespace: String,
    /// Addresses of the Services, two for each family; nothing else may use them.
    #[arg(long, value_name = "CONTROL,SUBJECT[,...]", default_value_t = Addresses::temporary())]
    pub(super) addresses: Addresses,
    /// Longest time to wait for verdicts.
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = duration::parse)]
    pub(super) timeout: Duration,
    /// The cluster.
    #[command(flatten)]
    pub(super) person: PersonArgs,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CanaryOutput {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// The same as YAML.
    Yaml,
}

impl CanaryArgs {
    /// Whether this is a role in a pod.
    pub fn is_in_a_pod(&self) -> bool {
        self.role.is_some()
    }
}

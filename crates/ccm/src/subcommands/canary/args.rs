//! Flags of `canary`, and of the roles in the pods of the canary.

use std::net::IpAddr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use openstack_ccm_canary::CONTROL;
use openstack_ccm_canary::addresses::Addresses;

use crate::args::{LoggingArgs, PersonArgs, duration};

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
}

/// What a pod of the canary does.
#[derive(Clone, Debug, Subcommand)]
pub enum Role {
    /// Run in a pod: answer other pods, measure, and show the verdict by readiness (container `conclusive`).
    Look(LookArgs),
    /// Run in a pod: do nothing until stopped (container `fit`, of which only the readiness matters).
    Idle,
}

impl CanaryArgs {
    /// Whether this is a role in a pod.
    pub(crate) fn is_in_a_pod(&self) -> bool {
        self.role.is_some()
    }
}

/// Flags of a pod that looks.
#[derive(Clone, Debug, Args)]
pub struct LookArgs {
    /// What the pods of one rollout know, and no others; it never leaves them.
    #[arg(long, value_name = "TEXT")]
    pub(super) token: String,
    /// The pod's own addresses: each of its families is measured.
    #[arg(long, value_name = "IP,...", value_delimiter = ',', required = true)]
    pub(super) pod_ips: Vec<IpAddr>,
    /// The Service whose address nodes may short-circuit, by name or by its ClusterIPs.
    #[arg(long, value_name = "NAME|IP,...", value_delimiter = ',', default_value = CONTROL)]
    pub(super) control: Vec<String>,
    /// Addresses of the Services, two for each family.
    #[arg(long, value_name = "CONTROL,SUBJECT[,...]", default_value_t = Addresses::permanent())]
    pub(super) addresses: Addresses,
    /// Time between two checks while nothing changes; a tenth of it before there is a verdict.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub(super) period: Duration,
    /// Longest time to wait for an answer.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    pub(super) dial_timeout: Duration,
    /// How long an unfit node has to measure as fit before it counts as fit.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    pub(super) fit_again_after: Duration,
    /// How long a verdict counts without being renewed.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub(super) lapse_after: Duration,
    /// Logging.
    #[command(flatten)]
    pub(super) logging: LoggingArgs,
}

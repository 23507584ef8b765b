//! Flags of `hand-back`.

use clap::ValueEnum;

use crate::args::{ConfigArgs, PersonArgs};

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HandBackOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Flags of `hand-back`.
#[derive(Clone, Debug, clap::Args)]
pub struct HandBackArgs {
    /// Write the status that OCCM will write. openstack-ccm must have been stopped: it would write its own again.
    #[arg(long)]
    pub apply: bool,
    /// Output format.
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = HandBackOutput::Text)]
    pub output: HandBackOutput,
    /// The provider's configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Name of the Lease.
    #[arg(long, value_name = "NAME", default_value = "cloud-controller-manager")]
    pub leader_elect_resource_name: String,
    /// Namespace of the Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
}

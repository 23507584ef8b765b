//! Flags of `status`.

use crate::args::PersonArgs;

/// Flags of the subcommand.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusArgs {
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
    /// Name of the Lease.
    #[arg(long, value_name = "NAME", default_value = "cloud-controller-manager")]
    pub leader_elect_resource_name: String,
    /// Namespace of the Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,
    /// Namespace of the canary, whose verdicts on nodes override what versions and images suggest; empty for none.
    #[arg(long, value_name = "NAMESPACE", default_value = openstack_ccm_canary::NAMESPACE)]
    pub canary_namespace: String,
}

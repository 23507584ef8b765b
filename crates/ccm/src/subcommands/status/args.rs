//! Flags of `status`.

use crate::args::{LeaseArgs, PersonArgs};

/// Flags of the subcommand.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusArgs {
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
    /// The Lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// Namespace of the canary, whose verdicts on nodes override what versions and images suggest; empty for none.
    #[arg(long, value_name = "NAMESPACE", default_value = openstack_ccm_canary::NAMESPACE)]
    pub canary_namespace: String,
}

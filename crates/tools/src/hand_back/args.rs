//! Flags of `hand-back`.

use openstack_ccm_manager::args::{ConfigArgs, LeaseArgs, PersonArgs};

use crate::output::Form;

/// Flags of `hand-back`.
#[derive(Clone, Debug, clap::Args)]
pub struct HandBackArgs {
    /// Write the status that OCCM will write. Stop openstack-ccm first; otherwise it would write its own again.
    #[arg(long)]
    pub apply: bool,
    /// Output format.
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub output: Form,
    /// The --cluster-name of OCCM: load balancers that are named for another cluster do not count; without it the names of all do.
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME")]
    pub cluster_name: Option<String>,
    /// The provider's configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// The Lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
}

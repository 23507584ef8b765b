//! Flags of `status`.

use openstack_ccm_manager::args::{LeaseArgs, PersonArgs};

use crate::output::Form;

/// Flags of the subcommand.
#[derive(Clone, Debug, clap::Args)]
pub struct StatusArgs {
    /// Output format.
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub output: Form,
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

//! Flags of `check-config`.

use openstack_ccm_manager::args::{ConfigArgs, PersonArgs};

use crate::output::Form;

/// Flags of the subcommand.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckConfigArgs {
    /// Output format.
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub output: Form,
    /// The provider's configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Log in to the cloud, look up every id of the configuration, and try each kind of read that the controllers need.
    #[arg(long)]
    pub online: bool,
    /// With --online: list each write that was not tried.
    #[arg(long)]
    pub verbose: bool,
    /// With --online: the controllers that will run; what only the others need may be missing.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, default_value = "*")]
    pub controllers: Vec<String>,
    /// Read all Services of type LoadBalancer in the cluster and report all their faults and warnings.
    #[arg(long)]
    pub services: bool,
    /// With --services: check the Services of this `loadBalancerClass`; by default those that name no class.
    #[arg(long, value_name = "CLASS", requires = "services")]
    pub load_balancer_class: Option<String>,
    /// The cluster, for --services.
    #[command(flatten)]
    pub person: PersonArgs,
}

//! Flags of `plan` and `adopt`.

use clap::ValueEnum;
use openstack_ccm_core::service::ServiceKey;

use super::as_if::AsIf;
use crate::args::{ControllerArgs, PersonArgs};

/// How a plan is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlanOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// The calls alone, one per line.
    Calls,
}

/// Flags of both.
#[derive(Clone, Debug, clap::Args)]
pub struct RehearsalArgs {
    /// Output format.
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = PlanOutput::Text)]
    pub output: PlanOutput,
    /// What the controllers run with.
    #[command(flatten, next_help_heading = "As given to the controllers")]
    pub controller: ControllerArgs,
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
}

/// Flags of `plan`.
#[derive(Clone, Debug, clap::Args)]
pub struct PlanArgs {
    /// The Services.
    #[arg(value_name = "NAMESPACE/SERVICE", value_parser = service_key, required_unless_present = "all")]
    pub services: Vec<ServiceKey>,
    /// All Services of the cluster that the controller serves, and its nodes and routes.
    #[arg(short = 'A', long, conflicts_with = "services")]
    pub all: bool,
    /// Plan as if the Services had this annotation, or, with a minus at the end, as if they did not; may be given several times.
    #[arg(long, value_name = "ANNOTATION=VALUE", value_parser = AsIf::parse)]
    pub as_if: Vec<(String, Option<String>)>,
    /// How it is made and written.
    #[command(flatten)]
    pub rehearsal: RehearsalArgs,
}

/// Flags of `adopt`.
#[derive(Clone, Debug, clap::Args)]
pub struct AdoptArgs {
    /// The Services; by default all of the cluster, and its nodes and routes.
    #[arg(value_name = "NAMESPACE/SERVICE", value_parser = service_key)]
    pub services: Vec<ServiceKey>,
    /// The same as naming no Service.
    #[arg(short = 'A', long, conflicts_with = "services")]
    pub all: bool,
    /// How it is made and written.
    #[command(flatten)]
    pub rehearsal: RehearsalArgs,
}

pub(crate) fn service_key(text: &str) -> Result<ServiceKey, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(ServiceKey::new(namespace, name))
        }
        _ => Err("write NAMESPACE/SERVICE".to_owned()),
    }
}

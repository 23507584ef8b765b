//! The command line of `ip-mode-overlay`.

use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use openstack_ccm_manager::args::{PersonArgs, duration};
use openstack_ccm_manager::canary::Role;
use openstack_ccm_manager::overlay::args::{AnnotationArgs, OverlayRunArgs, RuleArgs, suffix};
use openstack_ccm_manager::version::version;
use openstack_ccm_overlay::policy::ApiVersion;

use crate::output::Form;

/// Sets ipMode: Proxy beside the load balancer controller that a cluster already has.
#[derive(Debug, Parser)]
#[command(name = "ip-mode-overlay", version = version())]
pub struct OverlayCommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: OverlayCommand,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum OverlayCommand {
    /// Print an admission policy that sets ipMode: Proxy in every status write, without anything running in the cluster.
    Policy(PolicyArgs),
    /// Run the controller that sets ipMode: Proxy after each status write, on any Kubernetes version that has the field.
    Run(Box<OverlayRunArgs>),
    /// Show for each Service what is published, what should be published, and why.
    Check(CheckArgs),
    /// Undo what the controller set: ipMode becomes VIP again.
    Cleanup(CleanupArgs),
    /// Run as a pod of the canary, which measures on its node whether ipMode is honoured.
    Canary {
        /// Its role.
        #[command(subcommand)]
        role: Role,
    },
}

/// The version of the API of admission policies.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Api {
    /// Kubernetes 1.36 and newer.
    V1,
    /// Kubernetes 1.34 and 1.35 with the feature gate MutatingAdmissionPolicy and the API switched on.
    V1beta1,
}

impl From<Api> for ApiVersion {
    fn from(api: Api) -> Self {
        match api {
            Api::V1 => Self::V1,
            Api::V1beta1 => Self::V1Beta1,
        }
    }
}

/// Flags of `policy`.
#[derive(Clone, Debug, Args)]
pub struct PolicyArgs {
    /// Which Services.
    #[command(flatten)]
    pub rules: AnnotationArgs,
    /// Version of the API of admission policies.
    #[arg(long, value_name = "VERSION", value_enum, default_value = "v1")]
    pub api: Api,
}

/// Flags of `check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// Output format.
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub output: Form,
    /// Which Services; as the controller has it.
    #[command(flatten)]
    pub rules: RuleArgs,
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
}

/// Flags of `cleanup`.
#[derive(Clone, Debug, Args)]
pub struct CleanupArgs {
    /// Repeat until there was nothing to undo for this long: a controller that is being removed may still be running.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration::parse)]
    pub settle: Duration,
    /// The suffix that the controller was given: hostnames with it become addresses again.
    #[arg(long, value_name = "SUFFIX", value_parser = suffix)]
    pub hostname_suffix: Option<String>,
    /// The cluster.
    #[command(flatten)]
    pub person: PersonArgs,
}

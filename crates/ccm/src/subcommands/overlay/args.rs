//! The command line of `ip-mode-overlay`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use kube::core::Selector;
use openstack_ccm_core::advertise::hostname;
use openstack_ccm_overlay::controller::OverlayOptions;
use openstack_ccm_overlay::names::CANARY_CLASS;
use openstack_ccm_overlay::policy::ApiVersion;
use openstack_ccm_overlay::rules::{Pair, Rules, clouds};
use openstack_ccm_overlay::selector;

use crate::args::feature_gates::FeatureGates;
use crate::args::{
    AuthenticationArgs, AuthorizationArgs, CanaryPlaceArgs, LoggingArgs, PersonArgs, ServingArgs, duration,
    path,
};
use crate::subcommands::canary::args::Role;

/// Sets ipMode: Proxy beside the load balancer controller that a cluster already has.
#[derive(Debug, Parser)]
#[command(name = "ip-mode-overlay", version = crate::version::version())]
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

/// Which Services are meant by their annotations.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Services")]
pub struct AnnotationArgs {
    /// Clouds whose annotations for the PROXY protocol select Services: alibaba, civo, cloudstack, digitalocean,
    /// linode, vultr; by default all of them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub cloud: Vec<String>,
    /// A further annotation that selects a Service, as KEY=VALUE, or KEY for any value; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub annotation: Vec<Pair>,
}

/// Which Services are meant, and what is known of the cluster.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Services")]
pub struct RuleArgs {
    /// By annotations.
    #[command(flatten)]
    pub annotations: AnnotationArgs,
    /// Labels that select a Service, in the syntax of kubectl -l: KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B),
    /// KEY or !KEY, comma separated; all of them have to match.
    #[arg(long, value_name = "SELECTOR", value_parser = selector::parse)]
    pub selector: Option<Selector>,
    /// Where the cluster does not honour ipMode, publish ADDRESS.SUFFIX instead of a plain address. The names have to
    /// resolve to the addresses.
    #[arg(long, value_name = "SUFFIX", value_parser = suffix)]
    pub hostname_suffix: Option<String>,
    /// LoadBalancerIPMode=true|false overrides what the cluster says about its support for ipMode.
    #[arg(long, value_name = "GATES")]
    pub feature_gates: Vec<FeatureGates>,
    /// Where the canary is.
    #[command(flatten)]
    pub canary: CanaryPlaceArgs,
}

fn suffix(text: &str) -> Result<String, hostname::HostnameError> {
    hostname::validate(text.trim_start_matches('.')).map(|()| text.to_owned())
}

impl AnnotationArgs {
    /// The rules.
    ///
    /// # Errors
    /// A cloud that is not in the table.
    pub fn rules(&self) -> anyhow::Result<Rules> {
        let clouds = clouds(&self.cloud).map_err(|error| anyhow::anyhow!("--cloud: {error}"))?;
        Ok(Rules { clouds, annotations: self.annotation.clone(), labels: Selector::default() })
    }
}

impl RuleArgs {
    /// The rules.
    fn rules(&self) -> anyhow::Result<Rules> {
        Ok(Rules { labels: self.selector.clone().unwrap_or_default(), ..self.annotations.rules()? })
    }

    /// What the controller is to do.
    ///
    /// # Errors
    /// A cloud that is not in the table.
    pub fn options(&self) -> anyhow::Result<OverlayOptions> {
        Ok(OverlayOptions {
            rules: self.rules()?,
            hostname_suffix: self.hostname_suffix.clone(),
            ip_mode_gate: FeatureGates::merged(&self.feature_gates).load_balancer_ip_mode,
            canary: self.canary.options(CANARY_CLASS),
            ..OverlayOptions::default()
        })
    }
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

/// Flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct OverlayRunArgs {
    /// Which Services.
    #[command(flatten)]
    pub rules: RuleArgs,
    /// Services that are reconciled at the same time.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_syncs: u16,
    /// Kubeconfig file; without one the service account of the pod is used.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", value_parser = path::parse)]
    pub kubeconfig: Option<PathBuf>,
    /// Average requests per second to the API server; 0 is no limit.
    #[arg(long, value_name = "NUMBER", default_value_t = 100.0)]
    pub kube_api_qps: f64,
    /// Requests to the API server that may be sent in a burst.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub kube_api_burst: u32,
    /// Name of the Lease that the leader of several replicas holds.
    #[arg(long, value_name = "NAME", default_value = "ip-mode-overlay")]
    pub lease_name: String,
    /// Namespace of the Lease.
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE", default_value = "kube-system")]
    pub lease_namespace: String,
    /// Address of /livez and /readyz, over HTTP.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
    /// Where the metrics are.
    #[command(flatten)]
    pub serving: ServingArgs,
    /// How those who read them are known.
    #[command(flatten)]
    pub authentication: AuthenticationArgs,
    /// Who may read them.
    #[command(flatten)]
    pub authorization: AuthorizationArgs,
    /// Logging.
    #[command(flatten)]
    pub logging: LoggingArgs,
}

/// How `check` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Flags of `check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// Output format.
    #[arg(short = 'o', long, value_enum, value_name = "FORM", default_value_t = ReportOutput::Text)]
    pub output: ReportOutput,
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

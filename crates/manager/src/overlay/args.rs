//! Flags of `ip-mode-overlay run`, and those of which Services are meant, which its other subcommands have as well.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use kube::core::Selector;
use openstack_ccm_core::advertise::hostname;
use openstack_ccm_overlay::controller::OverlayOptions;
use openstack_ccm_overlay::names::CANARY_CLASS;
use openstack_ccm_overlay::rules::{Pair, Rules, clouds};
use openstack_ccm_overlay::selector;

use crate::args::feature_gates::FeatureGates;
use crate::args::{AuthenticationArgs, AuthorizationArgs, CanaryPlaceArgs, LoggingArgs, ServingArgs, value};

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

/// Reads a suffix of hostnames.
///
/// # Errors
/// The text cannot end a hostname.
pub fn suffix(text: &str) -> Result<String, hostname::HostnameError> {
    hostname::validate(text.trim_start_matches('.')).map(|()| text.to_owned())
}

impl AnnotationArgs {
    /// Returns the rules.
    ///
    /// # Errors
    /// A cloud that is not in the table.
    pub fn rules(&self) -> anyhow::Result<Rules> {
        let clouds = clouds(&self.cloud).map_err(|error| anyhow::anyhow!("--cloud: {error}"))?;
        Ok(Rules { clouds, annotations: self.annotation.clone(), labels: Selector::default() })
    }
}

impl RuleArgs {
    fn rules(&self) -> anyhow::Result<Rules> {
        Ok(Rules { labels: self.selector.clone().unwrap_or_default(), ..self.annotations.rules()? })
    }

    /// Returns the options of the controller.
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
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", value_parser = value::path)]
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

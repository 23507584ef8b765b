//! Flags of the client of the Kubernetes API, and of the one of a person who runs a subcommand. Both are in
//! [`crate::kubernetes`].

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{duration, value};

/// Where the API server is, and how fast it may be asked.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Kubernetes API")]
pub struct KubernetesArgs {
    /// Kubeconfig file; by default the service account of the pod is used.
    #[arg(long, value_name = "FILE", value_parser = value::path)]
    pub kubeconfig: Option<PathBuf>,
    /// Address of the API server, in place of the one in the kubeconfig.
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,
    /// Average requests per second to the API server; 0 or less is no limit. Requests for the Lease do not count.
    #[arg(long, value_name = "NUMBER", default_value_t = 20.0, allow_negative_numbers = true)]
    pub kube_api_qps: f64,
    /// Requests to the API server that may be sent in a burst.
    #[arg(long, value_name = "N", default_value_t = 30, allow_negative_numbers = true)]
    pub kube_api_burst: u32,
    /// Give each controller a ServiceAccount of its own in kube-system (service-controller, node-controller,
    /// route-controller), whose rights come from Kubernetes' own roles for them. Missing ones are created.
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set, value_parser = value::boolean)]
    pub use_service_account_credentials: bool,
}

/// The cluster as `kubectl` would choose it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct PersonArgs {
    /// Kubeconfig file; by default $KUBECONFIG, else ~/.kube/config, else the pod's own account.
    #[arg(long, value_name = "FILE", value_parser = value::path)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; by default the current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Longest wait for the answer to one request, to the API server or the cloud; 0 is no limit.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub request_timeout: Duration,
}

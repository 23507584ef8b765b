//! Flags that say who may call the HTTPS endpoints, and how callers are known.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{duration, value};

/// How callers are known.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authentication")]
pub struct AuthenticationArgs {
    /// Kubeconfig file of the API server that checks tokens; by default that of --kubeconfig, or the pod's own account.
    #[arg(long, value_name = "FILE", value_parser = value::path)]
    pub authentication_kubeconfig: Option<PathBuf>,
    /// How long the API server's answer about a token is remembered.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub authentication_token_webhook_cache_ttl: Duration,
}

/// What callers may do.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authorization")]
pub struct AuthorizationArgs {
    /// Kubeconfig file of the API server that decides; by default that of --kubeconfig, or the pod's own account.
    #[arg(long, value_name = "FILE", value_parser = value::path)]
    pub authorization_kubeconfig: Option<PathBuf>,
    /// Paths that are served to everyone; a `*` at the end matches everything that begins with the rest.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "/healthz,/readyz,/livez")]
    pub authorization_always_allow_paths: Vec<String>,
    /// How long a permission is remembered.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub authorization_webhook_cache_authorized_ttl: Duration,
    /// How long a refusal is remembered.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub authorization_webhook_cache_unauthorized_ttl: Duration,
}

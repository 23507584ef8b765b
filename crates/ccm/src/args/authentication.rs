//! Flags that say who may call the HTTPS endpoints, and how callers are known.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{boolean, duration, path};

/// How callers are known.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authentication")]
pub struct AuthenticationArgs {
    /// Kubeconfig file of the API server that checks tokens; by default that of --kubeconfig, or the pod's own account.
    #[arg(long, value_name = "FILE", value_parser = path::parse)]
    pub authentication_kubeconfig: Option<PathBuf>,
    /// Do not read the client CA and the request headers from the ConfigMap
    /// kube-system/extension-apiserver-authentication.
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set, value_parser = boolean::parse)]
    pub authentication_skip_lookup: bool,
    /// Start even if that ConfigMap cannot be read, and try again later. With false the program exits with an error.
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set, value_parser = boolean::parse)]
    pub authentication_tolerate_lookup_failure: bool,
    /// How long the API server's answer about a token is remembered.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub authentication_token_webhook_cache_ttl: Duration,
    /// CA certificates of clients (PEM); CN is the user, O are the groups. Read again when the file changes.
    #[arg(long, value_name = "FILE", value_parser = path::parse)]
    pub client_ca_file: Option<PathBuf>,
    /// CA certificates of proxies that name the caller in headers (PEM). Read again when the file changes.
    #[arg(long, value_name = "FILE", value_parser = path::parse)]
    pub requestheader_client_ca_file: Option<PathBuf>,
    /// Common names of these proxies; empty: all that --requestheader-client-ca-file has signed.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub requestheader_allowed_names: Vec<String>,
    /// Headers with the name of the user.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "x-remote-user")]
    pub requestheader_username_headers: Vec<String>,
    /// Headers with the uid of the user.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub requestheader_uid_headers: Vec<String>,
    /// Headers with the groups of the user.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "x-remote-group")]
    pub requestheader_group_headers: Vec<String>,
    /// Prefixes of headers with more about the user.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "x-remote-extra-")]
    pub requestheader_extra_headers_prefix: Vec<String>,
}

/// What callers may do.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authorization")]
pub struct AuthorizationArgs {
    /// Kubeconfig file of the API server that decides; by default that of --kubeconfig, or the pod's own account.
    #[arg(long, value_name = "FILE", value_parser = path::parse)]
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

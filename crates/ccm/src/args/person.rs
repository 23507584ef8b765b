//! Which cluster a person means who runs a subcommand. The client for it is in [`crate::kubernetes`].

use std::path::PathBuf;

use clap::Args;

use super::path;

/// The cluster as `kubectl` would choose it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct PersonArgs {
    /// Kubeconfig file; by default $KUBECONFIG, else ~/.kube/config, else the pod's own account.
    #[arg(long, value_name = "FILE", value_parser = path::parse)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; by default the current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

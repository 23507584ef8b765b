//! Which cluster a person means who runs a subcommand.

use std::path::PathBuf;

use clap::Args;
use kube::Client;

use super::path;
use crate::kubernetes::{Connection, RequestLimit};

/// The cluster as `kubectl` would choose it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct PersonArgs {
    /// Kubeconfig file; without it $KUBECONFIG, else ~/.kube/config, else the pod's own account.
    #[arg(long, value_name = "FILE", value_parser = path::parse)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; without it the current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl PersonArgs {
    /// A client for the cluster.
    ///
    /// # Errors
    /// There is no kubeconfig that can be used.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let connection =
            Connection::of_person(path::given(self.kubeconfig.as_ref()), self.context.as_deref()).await?;
        connection.client("cli", RequestLimit::none())
    }
}

//! The client of the Kubernetes API.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::args::KubernetesArgs;
use crate::args::path::given;

/// The namespace whose uid is the identity of the cluster.
const IDENTITY_NAMESPACE: &str = "kube-system";

/// A client for the server that the flags name, or for the cluster that this pod runs in.
///
/// It sends each request once: what is to be sent again is decided by the controllers, and for the lease an answer that
/// comes late is worth nothing.
///
/// # Errors
/// Files that cannot be read or do not make sense. The server is not asked yet.
pub async fn client(arguments: &KubernetesArgs) -> anyhow::Result<Client> {
    let master = arguments.master.as_deref().filter(|url| !url.is_empty());
    let mut config = config(given(arguments.kubeconfig.as_ref()), master).await?;
    config.default_retry = false;
    Client::try_from(config).context("no client for the Kubernetes API could be made")
}

async fn config(kubeconfig: Option<&Path>, master: Option<&str>) -> anyhow::Result<Config> {
    let master = master
        .map(|text| text.parse::<http::Uri>().with_context(|| format!("--master={text}: this is not a URL")))
        .transpose()?;
    let mut config = match (kubeconfig, master.clone()) {
        (Some(file), _) => {
            let kubeconfig = Kubeconfig::read_from(file)
                .with_context(|| format!("--kubeconfig={}: the file cannot be used", file.display()))?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.with_context(
                || format!("--kubeconfig={}: its current context cannot be used", file.display()),
            )?
        }
        (None, Some(url)) => Config::new(url),
        (None, None) => Config::incluster()
            .context("this is not a pod with a service account; name a file with --kubeconfig")?,
    };
    if let Some(url) = master {
        config.cluster_url = url;
    }
    config.connect_timeout = Some(Duration::from_secs(10));
    Ok(config)
}

/// The identity of the cluster: the uid of its namespace kube-system.
///
/// # Errors
/// The API server cannot be reached, or the right to read the namespace is missing.
pub async fn cluster_uid(client: Client) -> anyhow::Result<String> {
    let namespace = Api::<Namespace>::all(client)
        .get(IDENTITY_NAMESPACE)
        .await
        .context("the namespace kube-system, whose uid is the identity of the cluster, cannot be read")?;
    namespace.metadata.uid.context("the namespace kube-system has no uid")
}

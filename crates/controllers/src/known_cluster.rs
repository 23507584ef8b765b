//! Whether the API server still shows the cluster that this process works for.
//!
//! An address that leads to another API server, or to one whose data were replaced, shows other Services and Nodes. What they
//! ask for, or lack, is no reason to touch a load balancer.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use openstack_ccm_runtime::call::{CallError, call};
use openstack_ccm_runtime::parts::becomes;
use tokio::sync::watch;

/// The namespace whose uid is the identity of a cluster.
const IDENTITY_NAMESPACE: &str = "kube-system";
/// Longest wait for one answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay after a look that failed.
const RETRY: Duration = Duration::from_secs(5);
/// Time between two looks while nothing points at a change.
const INTERVAL: Duration = Duration::from_secs(60);

/// The cluster of this process. Once another one was seen that stays so: only a person knows which of the two is right.
pub struct KnownCluster {
    client: Client,
    uid: String,
    other: watch::Sender<Option<String>>,
}

/// The client of one controller, and the cluster that it has to show.
pub struct ClusterClient {
    pub client: Client,
    pub cluster: Arc<KnownCluster>,
}

impl KnownCluster {
    /// The cluster whose namespace kube-system has this uid.
    pub fn new(client: Client, uid: String) -> Self {
        Self { client, uid, other: watch::Sender::new(None) }
    }

    /// Why nothing is done any more, if another cluster was seen.
    pub fn problem(&self) -> Option<String> {
        let other = self.other.borrow().clone()?;
        Some(format!(
            "the API server shows another cluster: the namespace kube-system has the uid {other} and had {} when this process \
             started. Nothing is changed, in neither cluster. Correct the address of the API server or its data; if the other \
             cluster is the right one, restart this process",
            self.uid
        ))
    }

    /// Waits until another cluster is seen.
    pub fn differs(&self) -> impl Future<Output = ()> + Send + use<> {
        becomes(self.other.subscribe(), Option::is_some)
    }

    /// Waits for ever once another cluster is seen, and otherwise until it is sure that it is the same one.
    pub(crate) async fn confirmed(&self) {
        loop {
            match self.look().await {
                Ok(true) => return,
                Ok(false) => return std::future::pending().await,
                Err(error) => {
                    let error = error.message();
                    tracing::warn!(
                        error,
                        "could not check by the namespace kube-system whether this is the same cluster"
                    );
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Looks from time to time, for ever.
    pub(crate) async fn follow(&self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.confirmed().await;
        }
    }

    /// Whether the API server shows the same cluster now, and always did.
    async fn look(&self) -> Result<bool, CallError> {
        if self.other.borrow().is_none() {
            let api = Api::<Namespace>::all(self.client.clone());
            let namespace = call(CALL_TIMEOUT, api.get(IDENTITY_NAMESPACE)).await?;
            let uid = namespace.metadata.uid.unwrap_or_default();
            if uid != self.uid {
                self.other.send_replace(Some(uid));
                tracing::error!("{}", self.problem().unwrap_or_default());
            }
        }
        Ok(self.other.borrow().is_none())
    }
}

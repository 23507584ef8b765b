//! Whether the controller knows the cluster.

use std::sync::Arc;

use tokio::sync::watch;

use super::backends::NodeSnapshot;

/// Whether Services and Nodes have been listed; before that nothing is decided.
#[derive(Clone, Debug)]
pub struct CachesSynced {
    pub(super) services: watch::Receiver<bool>,
    pub(super) nodes: watch::Receiver<Arc<NodeSnapshot>>,
    /// Whether verdicts of the canary from before the start are known, or nobody can tell them.
    pub(super) measured: watch::Receiver<bool>,
}

impl CachesSynced {
    /// Whether it is so now.
    pub fn is_synced(&self) -> bool {
        *self.services.borrow() && self.nodes.borrow().listed && *self.measured.borrow()
    }

    /// Waits until it is so.
    pub async fn wait(&mut self) {
        // An error means that the watch ended, which is noticed where the watch is joined.
        let services = self.services.wait_for(|listed| *listed).await.is_ok();
        let nodes = self.nodes.wait_for(|nodes| nodes.listed).await.is_ok();
        let measured = self.measured.wait_for(|ready| *ready).await.is_ok();
        if !(services && nodes && measured) {
            std::future::pending::<()>().await;
        }
    }
}

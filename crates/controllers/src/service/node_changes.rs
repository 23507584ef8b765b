//! Passes after changes of nodes.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::backends::{NodeSnapshot, matters};
use super::queue::{Cause, ServiceQueue};
use super::sync::ServiceSync;
use crate::nodes::{NodeChange, NodeListener, NodeStore};

/// Collects what the watch of nodes tells.
pub(super) struct NodeChanges {
    sync: Arc<ServiceSync>,
    store: NodeStore,
    snapshots: watch::Sender<Arc<NodeSnapshot>>,
    changed: Notify,
}

impl NodeChanges {
    /// Nothing has changed yet.
    pub(super) fn new(
        sync: Arc<ServiceSync>,
        store: NodeStore,
        snapshots: watch::Sender<Arc<NodeSnapshot>>,
    ) -> Self {
        Self { sync, store, snapshots, changed: Notify::new() }
    }

    /// Queues all Services for ever, each time some nodes changed; changes within `delay` are one.
    pub(super) async fn queue_services(self: Arc<Self>, queue: ServiceQueue, delay: Duration) {
        loop {
            self.changed.notified().await;
            let since = Instant::now();
            tokio::time::sleep(delay).await;
            // Changes during the delay are in what the passes will see.
            let _more = self.changed.notified().now_or_never();
            let services = self.sync.cache.served();
            self.sync.waves.begin(since, services.iter().cloned());
            for key in services {
                queue.add(&key, Cause::Nodes);
            }
        }
    }
}

impl NodeListener for NodeChanges {
    fn changed(&self, changes: &[NodeChange]) {
        if self.snapshots.borrow().listed && !changes.iter().any(NodeChange::has_new_facts) {
            return;
        }
        let new = Arc::new(NodeSnapshot::of(&self.store.all()));
        let old = self.snapshots.send_replace(Arc::clone(&new));
        if old.listed && matters(&old.backends, &new.backends) {
            self.changed.notify_one();
        }
    }

    fn interrupted(&self) {
        self.sync.capability.suspect();
    }
}

//! Reconciliations after changes of nodes.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::backends::{NodeSnapshot, matters};
use super::cause::Cause;
use super::context::ServiceSync;
use super::node_verdicts::news;
use super::queue::ServiceQueue;
use crate::names::SERVICE_CONTROLLER;
use crate::nodes::{NodeChange, NodeListener, NodeStore};

/// Time between two checks whether a node has been unreachable for long by now.
const JUDGE_AGAIN: Duration = Duration::from_secs(60);

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

    /// Queues all Services for ever, each time some nodes changed; changes within `delay` are one, and so are those within
    /// `interval` of the last time.
    pub(super) async fn queue_services(
        self: Arc<Self>,
        queue: ServiceQueue,
        delay: Duration,
        interval: Duration,
    ) {
        let mut earliest = Instant::now();
        loop {
            self.changed.notified().await;
            let since = Instant::now();
            tokio::time::sleep_until(earliest.max(since + delay)).await;
            earliest = Instant::now() + interval;
            // Changes during the delay are in what the reconciliations will see.
            let _more = self.changed.notified().now_or_never();
            let services = self.sync.cache.served_keys();
            self.sync.rollouts.begin(since, services.iter().cloned());
            for key in services {
                queue.add(&key, Cause::Nodes);
            }
        }
    }
}

impl NodeChanges {
    /// Judges the nodes again for ever: after something was measured, and because one that is unreachable ceases to count
    /// without any event.
    pub(super) async fn judge_again(self: Arc<Self>) {
        let mut measured = self.sync.measured.changes();
        loop {
            tokio::select! {
                changed = measured.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(JUDGE_AGAIN) => {
                    if !self.store.all().iter().any(|node| node.unreachable_since.is_some()) {
                        continue;
                    }
                }
            }
            let new = self.snapshot();
            let mut old = None;
            self.snapshots.send_if_modified(|known| {
                let changed =
                    known.listed && (known.verdicts != new.verdicts || known.measured != new.measured);
                if changed {
                    let backends = Arc::clone(&known.backends);
                    old = Some(std::mem::replace(known, Arc::new(NodeSnapshot { backends, ..new.clone() })));
                }
                changed
            });
            if let Some(old) = old {
                self.tell(&old, &new);
            }
        }
    }

    /// The nodes that are watched.
    pub(super) fn nodes(&self) -> NodeStore {
        self.store.clone()
    }

    fn snapshot(&self) -> NodeSnapshot {
        NodeSnapshot::of(&self.store.all(), &self.sync.measured.now(), jiff::Timestamp::now())
    }

    fn tell(&self, old: &NodeSnapshot, new: &NodeSnapshot) {
        for (node, notice) in news(old, new) {
            tracing::info!(node, reason = notice.reason, "{}", notice.message);
            if let Some(node) = self.store.get(&node) {
                self.sync.events.record(&node.reference(), SERVICE_CONTROLLER, notice);
            }
        }
    }
}

impl NodeListener for NodeChanges {
    fn changed(&self, changes: &[NodeChange]) {
        // A heartbeat leaves the facts the same in memory.
        let matters_here = |change: &NodeChange| {
            change.has_new(|node| (Arc::as_ptr(&node.facts), &node.service_proxy, node.unreachable_since))
        };
        if self.snapshots.borrow().listed && !changes.iter().any(matters_here) {
            return;
        }
        let new = Arc::new(self.snapshot());
        let old = self.snapshots.send_replace(Arc::clone(&new));
        self.tell(&old, &new);
        if old.listed && matters(&old.backends, &new.backends) {
            self.changed.notify_one();
        }
    }

    fn interrupted(&self) {
        self.sync.server.suspect();
    }
}

//! Reconciliations after changes of nodes.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::backends::{NodeSnapshot, matters, why_it_leaves};
use super::cause::Cause;
use super::context::ServiceSync;
use super::judgement::Judgement;
use super::node_verdicts::news;
use super::queue::ServiceQueue;
use crate::names::SERVICE_CONTROLLER;
use crate::nodes::{NodeChange, NodeListener, NodeStore};

/// Collects what the watch of nodes reports.
pub(super) struct NodeChanges {
    sync: Arc<ServiceSync>,
    store: NodeStore,
    judgement: Judgement,
    changed: Notify,
}

impl NodeChanges {
    /// Starts without a change.
    pub(super) fn new(sync: Arc<ServiceSync>, store: NodeStore, judgement: Judgement) -> Self {
        Self { sync, store, judgement, changed: Notify::new() }
    }

    /// Queues all Services after each change of nodes, for ever; changes within `delay` count as one, and so do changes within
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
            // The reconciliations will see the changes during the delay.
            let _more = self.changed.notified().now_or_never();
            let services = self.sync.cache.served_keys();
            self.sync.rollouts.begin(since, services.iter().cloned());
            for key in services {
                queue.add(&key, Cause::Nodes);
            }
        }
    }

    /// Waits until the nodes have been judged with their measurements.
    pub(super) fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        self.judgement.settled()
    }

    /// Judges the nodes again for ever, and reports what is new.
    pub(super) async fn judge_again(self: Arc<Self>) {
        self.judgement.keep(|old, new| self.notify(old, new)).await;
    }

    /// Reports standing warnings again after each `interval`, for ever: Events expire.
    pub(super) async fn warn_again(self: Arc<Self>, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            let judged = Arc::clone(&self.sync.nodes.borrow());
            self.notify(&NodeSnapshot::default(), &judged);
        }
    }

    /// Returns the store of the watched nodes.
    pub(super) fn nodes(&self) -> NodeStore {
        self.store.clone()
    }

    fn notify(&self, old: &NodeSnapshot, new: &NodeSnapshot) {
        for (node, notice) in news(old, new, self.sync.names.settings.hostname_annotation) {
            tracing::info!(node, reason = notice.reason, "{}", notice.message);
            if let Some(node) = self.store.get(&node) {
                self.sync.events.record(&node.reference(), SERVICE_CONTROLLER, notice);
            }
        }
    }
}

impl NodeListener for NodeChanges {
    fn changed(&self, changes: &[NodeChange]) {
        // A heartbeat keeps the allocation of the facts.
        let matters_here = |change: &NodeChange| {
            change.has_new(|node| (Arc::as_ptr(&node.facts), &node.service_proxy, node.unreachable_since))
        };
        if self.sync.nodes.borrow().listed && !changes.iter().any(matters_here) {
            return;
        }
        for (node, why) in changes.iter().filter_map(why_it_leaves) {
            tracing::info!(node, "the node no longer takes traffic: {why}");
        }
        let (old, new) = self.judgement.of_changed_nodes();
        self.notify(&old, &new);
        if old.listed && matters(&old.backends, &new.backends) {
            self.changed.notify_one();
        }
    }

    fn interrupted(&self) {
        self.sync.server.suspect();
    }
}

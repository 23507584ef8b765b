//! The reconciliation of the nodes that are due: one question to the cloud, then each node for itself.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::{Description, Instance, Instances, NodeIdentity, label};
use openstack_ccm_core::notice::Notice;
use serde_json::json;
use tracing::Instrument as _;

use super::wanted;
use super::{NodeMetrics, NodeQueue, TakenNode};
use crate::names::NODE_CONTROLLER;
use crate::nodes::{NodeObject, NodeStore, NodeWriter, until_accepted};
use crate::queue::Requeue;
use openstack_ccm_runtime::call::CallError;
use openstack_ccm_runtime::events::EventRecorder;

/// So long a node that this cloud does not know may wait for the instance of another region before that is said.
const OTHER_REGION: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);

/// What reconciliations need.
pub(super) struct NodeSync {
    pub(super) instances: Arc<dyn Instances>,
    pub(super) store: NodeStore,
    pub(super) writer: NodeWriter,
    pub(super) events: EventRecorder,
    pub(super) metrics: NodeMetrics,
}

impl NodeSync {
    /// Works for ever: `concurrency` nodes are written at once.
    pub(super) async fn work(self: Arc<Self>, queue: NodeQueue, concurrency: usize, delay: Duration) {
        self.store.wait_listed().await;
        loop {
            let taken = queue.take_together(delay).await;
            let span = tracing::debug_span!("new nodes", nodes = taken.len());
            self.reconcile(taken, concurrency).instrument(span).await;
        }
    }

    pub(super) async fn reconcile(&self, taken: Vec<TakenNode>, concurrency: usize) {
        let (mut new, mut known) = (Vec::new(), Vec::new());
        for taken in taken {
            match self.store.get(&taken.key) {
                Some(node) if node.is_uninitialized() => new.push((taken, node)),
                Some(node) => known.push((taken, node)),
                None => taken.finish(Requeue::DONE),
            }
        }
        for (taken, node) in known {
            taken.finish(self.reconcile_labels(&node).await);
        }
        if new.is_empty() {
            return;
        }
        let identities: Vec<NodeIdentity> = new.iter().map(|(_, node)| node.identity()).collect();
        match self.instances.describe(&identities).await {
            Ok(descriptions) => {
                stream::iter(new.into_iter().zip(descriptions))
                    .for_each_concurrent(concurrency, |((taken, node), description)| async move {
                        taken.finish(self.initialise(&node, description).await);
                    })
                    .await;
            }
            Err(failure) => {
                tracing::warn!(nodes = new.len(), %failure, "new nodes could not be looked up in the cloud");
                self.metrics.failures.count(failure.class);
                for (taken, _) in new {
                    taken.finish(Requeue::Backoff(failure.clone()));
                }
            }
        }
    }

    async fn initialise(&self, node: &Arc<NodeObject>, description: Description) -> Requeue<()> {
        let result = match description {
            Description::Found(instance) => self.write(node, &instance).await,
            Description::Foreign(reason) => {
                tracing::info!(
                    node = node.name,
                    reason,
                    "the node belongs to another provider and is ignored"
                );
                return Requeue::DONE;
            }
            Description::PerhapsForeign(failure) if is_young(node.created, jiff::Timestamp::now()) => {
                tracing::debug!(node = node.name, %failure, "the node might belong to another instance");
                return Requeue::Backoff(failure);
            }
            Description::Gone { failure, .. }
            | Description::PerhapsForeign(failure)
            | Description::Unknown(failure) => Err(failure),
        };
        match result {
            Ok(()) => Requeue::DONE,
            Err(failure) => {
                tracing::warn!(node = node.name, %failure, "the node could not be initialised");
                let notice = Notice::warning("NodeInitializationFailed", failure.message.clone());
                self.events.record(&node.reference(), NODE_CONTROLLER, notice);
                self.metrics.failures.count(failure.class);
                Requeue::Backoff(failure)
            }
        }
    }

    /// Writes the addresses first, and then everything else with the end of the taint: pods that come to the node find
    /// its addresses.
    async fn write(&self, node: &Arc<NodeObject>, instance: &Instance) -> Result<(), Failure> {
        let write = |node| self.try_write(node, instance);
        let end = until_accepted(&self.writer, Arc::clone(node), write).await;
        if let Some(written) = end.map_err(|error| error.to_failure("failed to initialise the node"))? {
            self.initialised(&*written?);
        }
        Ok(())
    }

    async fn try_write(
        &self,
        mut node: Arc<NodeObject>,
        instance: &Instance,
    ) -> Result<Option<Result<Arc<NodeObject>, Failure>>, CallError> {
        if !node.is_uninitialized() {
            return Ok(None);
        }
        // A node that cannot be initialised stays as it is, so this is known before the first write.
        if let Err(failure) = wanted::initialisation(&node, instance) {
            return Ok(Some(Err(failure)));
        }
        match wanted::addresses(&node, instance) {
            Ok(None) => {}
            Ok(Some(addresses)) => {
                node = self.writer.patch_status(&node.name, &wanted::addresses_patch(&addresses)).await?;
            }
            Err(error) => return Ok(Some(Err(Failure::user_input(error.to_string())))),
        }
        // Again, because writing the addresses changed the version of the node.
        let (patch, left_out) = match wanted::initialisation(&node, instance) {
            Ok(planned) => planned,
            Err(failure) => return Ok(Some(Err(failure))),
        };
        let written = self.writer.patch(&node.name, &patch).await?;
        for reason in left_out {
            tracing::warn!(node = node.name, reason, "a label of the provider cannot be set");
        }
        Ok(Some(Ok(written)))
    }

    fn initialised(&self, node: &NodeObject) {
        tracing::info!(node = node.name, provider_id = node.facts.provider_id, "the node is initialised");
        if let Some(created) = node.created {
            let age = jiff::Timestamp::now().duration_since(created);
            self.metrics.initialised(Duration::try_from(age).unwrap_or_default());
        }
        let notice = Notice::normal("Synced", "Node synced successfully");
        self.events.record(&node.reference(), NODE_CONTROLLER, notice);
    }

    async fn reconcile_labels(&self, node: &NodeObject) -> Requeue<()> {
        let labels = label::reconcile(&node.facts.labels);
        if labels.is_empty() {
            return Requeue::DONE;
        }
        match self.writer.patch(&node.name, &json!({"metadata": {"labels": labels}})).await {
            Ok(_) => Requeue::DONE,
            Err(error) if error.is_not_found() => Requeue::DONE,
            Err(error) => {
                let failure = error.to_failure("failed to update the labels of the node");
                tracing::warn!(node = node.name, %failure, "the labels of the node could not be updated");
                self.metrics.failures.count(failure.class);
                Requeue::Backoff(failure)
            }
        }
    }
}

/// Whether the instance of another region may still be about to look after a node.
fn is_young(created: Option<jiff::Timestamp>, now: jiff::Timestamp) -> bool {
    created.is_some_and(|created| now.duration_since(created) < OTHER_REGION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_no_region_knows_is_said_to_be_lost_after_a_while() {
        let created = jiff::Timestamp::UNIX_EPOCH;
        assert!(is_young(Some(created), created + OTHER_REGION / 2));
        assert!(!is_young(Some(created), created + OTHER_REGION));
        assert!(!is_young(None, created));
    }
}

//! What may change of a server while its node lives, now and then: its addresses, its hypervisor, and its zone.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::{Description, Instance, NodeIdentity, label};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_runtime::call::CallError;
use openstack_ccm_runtime::events::Lasting;
use serde_json::json;
use tracing::Instrument as _;

use super::sync::NodeSync;
use super::wanted;
use crate::names::NODE_CONTROLLER;
use crate::nodes::NodeObject;

/// What becomes known of all initialised nodes from round to round. All of it may be lost.
pub(super) struct Refresh {
    pub(super) sync: Arc<NodeSync>,
    /// Nodes that are written at the same time; at least 1.
    pub(super) concurrency: usize,
    /// The Warnings about nodes, by the uid of the Node.
    pub(super) lasting: Lasting<(String, Notice)>,
}

impl Refresh {
    /// Compares all initialised nodes with their servers, first at once and then every `period`. When the cloud cannot be
    /// asked it is tried again sooner.
    pub(super) async fn follow(mut self, period: Duration) {
        self.sync.store.wait_listed().await;
        let mut failures = 0;
        loop {
            let span = tracing::debug_span!("servers of nodes");
            let pause = match self.round().instrument(span).await {
                Ok(()) => {
                    failures = 0;
                    period
                }
                Err(failure) => {
                    tracing::warn!(%failure, "the nodes could not be compared with their servers");
                    self.sync.metrics.failures.count(failure.class);
                    failures += 1;
                    failure.delay(failures - 1).min(period.max(failure.asked().unwrap_or_default()))
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    pub(super) async fn round(&mut self) -> Result<(), Failure> {
        let sync = &self.sync;
        let mut nodes = sync.store.all();
        nodes.retain(|node| !node.is_uninitialized());
        if nodes.is_empty() {
            return Ok(());
        }
        let identities: Vec<NodeIdentity> = nodes.iter().map(|node| node.identity()).collect();
        let descriptions = sync.instances.describe(&identities).await?;
        let warnings: Vec<(Arc<NodeObject>, Notice)> = stream::iter(nodes.into_iter().zip(descriptions))
            .map(async |(node, description)| {
                let warnings = look_at(sync, &node, description).await;
                stream::iter(warnings.into_iter().map(move |warning| (Arc::clone(&node), warning)))
            })
            .buffer_unordered(self.concurrency)
            .flatten()
            .collect()
            .await;
        let key = |(node, warning): &(Arc<NodeObject>, Notice)| (node.uid.clone(), warning.clone());
        for (node, warning) in self.lasting.due(warnings, key) {
            tracing::warn!(node = node.name, reason = warning.reason, "{}", warning.message);
            sync.events.record(&node.reference(), NODE_CONTROLLER, warning);
        }
        Ok(())
    }
}

/// Writes what changed of the server to its node. Returns what the node's user has to know.
async fn look_at(sync: &NodeSync, node: &NodeObject, description: Description) -> Vec<Notice> {
    match description {
        Description::Found(instance) => return update(sync, node, &instance).await,
        Description::Gone { namesake: Some(now), .. } if node.is_ready => return vec![replaced(node, &now)],
        Description::Foreign(reason) => tracing::debug!(node = node.name, reason, "left alone"),
        Description::PerhapsForeign(failure) => {
            tracing::debug!(node = node.name, %failure, "the node might belong to another instance");
        }
        Description::Gone { failure, .. } | Description::Unknown(failure) => {
            tracing::warn!(node = node.name, %failure, "the node could not be compared with its server");
        }
    }
    Vec::new()
}

/// The kubelet is that of another machine of the same name. It registers its Node once, when it starts, so neither it nor this program
/// can correct the id.
fn replaced(node: &NodeObject, now: &str) -> Notice {
    let (name, before) = (&node.name, node.facts.provider_id.as_deref().unwrap_or_default());
    let message = format!(
        "The server of spec.providerID {before} does not exist, and the server named {name} is {now}: the server was replaced, and the \
         Node still has the id and addresses of the old server. {}",
        register_again(name)
    );
    Notice::warning("NodeServerReplaced", message)
}

fn moved(node: &NodeObject, moved: &label::Moved<'_>) -> Notice {
    let (label::Moved { key, before, now }, name) = (moved, &node.name);
    let message = format!(
        "The Node has the label {key}={before}, but its server is in {now} now. The label is not changed, because volumes and the \
         scheduler rely on it. Pods whose volumes are bound to {before} cannot run on this Node once it has the new label. {}",
        register_again(name)
    );
    Notice::warning("NodeServerMoved", message)
}

fn register_again(name: &str) -> String {
    format!(
        "Register the Node again in three steps: kubectl drain {name} --ignore-daemonsets --delete-emptydir-data; kubectl delete node \
         {name}; and on {name} itself: systemctl restart kubelet. A kubelet registers its Node when it starts, so after the deletion \
         alone there is no Node {name}"
    )
}

async fn update(sync: &NodeSync, node: &NodeObject, instance: &Instance) -> Vec<Notice> {
    let labels = &node.facts.labels;
    let mut warnings: Vec<Notice> =
        label::moved(instance, labels).iter().map(|change| moved(node, change)).collect();
    let changes = label::followed(instance, labels);
    if !changes.is_empty() {
        let patch = json!({"metadata": {"labels": changes}});
        report(node, "labels", sync.writer.patch(&node.name, &patch).await);
    }
    match wanted::addresses(node, instance) {
        Ok(None) => {}
        Ok(Some(addresses)) => {
            let patch = wanted::addresses_patch(&addresses);
            report(node, "addresses", sync.writer.patch_status(&node.name, &patch).await);
        }
        Err(error) => warnings.push(Notice::warning("NodeAddressesNotUpdated", error.to_string())),
    }
    warnings
}

fn report(node: &NodeObject, what: &str, written: Result<Arc<NodeObject>, CallError>) {
    match written {
        Ok(_) => tracing::info!(node = node.name, "the {what} of the node were updated"),
        Err(error) if error.is_not_found() => {}
        Err(error) => {
            tracing::warn!(
                node = node.name,
                error = error.message(),
                "the {what} of the node could not be updated"
            );
        }
    }
}

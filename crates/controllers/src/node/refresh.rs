//! The addresses of all nodes, now and then: addresses of a server change while its node lives.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::{Description, Instance, NodeIdentity};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_runtime::events::Lasting;
use tracing::Instrument as _;

use super::plan;
use super::sync::NodeSync;
use crate::names::NODE_CONTROLLER;
use crate::nodes::NodeObject;

/// What becomes known of the addresses of all initialised nodes from round to round. All of it may be lost.
pub(super) struct Refresh {
    pub(super) sync: Arc<NodeSync>,
    /// Nodes that are written at the same time; at least 1.
    pub(super) concurrency: usize,
    /// The Warnings about nodes, by the uid of the Node.
    pub(super) lasting: Lasting<(String, Notice)>,
}

impl Refresh {
    /// Compares the addresses of all initialised nodes, first at once and then every `period`. When the cloud cannot be
    /// asked it is tried again sooner.
    pub(super) async fn follow(mut self, period: Duration) {
        self.sync.store.wait_listed().await;
        let mut failures = 0;
        loop {
            let span = tracing::debug_span!("addresses of nodes");
            let pause = match self.round().instrument(span).await {
                Ok(()) => {
                    failures = 0;
                    period
                }
                Err(failure) => {
                    tracing::warn!(%failure, "the addresses of the nodes could not be checked");
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
                let warning = look_at(sync, &node, description).await?;
                Some((node, warning))
            })
            .buffer_unordered(self.concurrency)
            .filter_map(std::future::ready)
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

/// Writes the addresses of a node if they are others. Returns what its user has to know.
async fn look_at(sync: &NodeSync, node: &NodeObject, description: Description) -> Option<Notice> {
    match description {
        Description::Found(instance) => return update(sync, node, &instance).await,
        Description::Gone { namesake: Some(now), .. } if node.is_ready => return Some(replaced(node, &now)),
        Description::Foreign(reason) => tracing::debug!(node = node.name, reason, "left alone"),
        Description::PerhapsForeign(failure) => {
            tracing::debug!(node = node.name, %failure, "the node might belong to another instance");
        }
        Description::Gone { failure, .. } | Description::Unknown(failure) => {
            tracing::warn!(node = node.name, %failure, "the addresses of the node could not be checked");
        }
    }
    None
}

/// The kubelet is that of another machine of the same name. It registers its Node once, when it starts, so neither it nor this program
/// can correct the id.
fn replaced(node: &NodeObject, now: &str) -> Notice {
    let (name, before) = (&node.name, node.facts.provider_id.as_deref().unwrap_or_default());
    let message = format!(
        "The server of spec.providerID {before} does not exist, and the server named {name} is {now}: the server was replaced, and the \
         Node still has the id and addresses of the old server. Register the Node again in three steps: kubectl drain {name} \
         --ignore-daemonsets --delete-emptydir-data; kubectl delete node {name}; and on {name} itself: systemctl restart kubelet. A \
         kubelet registers its Node when it starts, so after the deletion alone there is no Node {name}"
    );
    Notice::warning("NodeServerReplaced", message)
}

async fn update(sync: &NodeSync, node: &NodeObject, instance: &Instance) -> Option<Notice> {
    let addresses = match plan::addresses(node, instance) {
        Ok(addresses) => addresses?,
        Err(error) => return Some(Notice::warning("NodeAddressesNotUpdated", error.to_string())),
    };
    match sync.writer.patch_status(&node.name, &plan::addresses_patch(&addresses)).await {
        Ok(_) => tracing::info!(node = node.name, "the addresses of the node were updated"),
        Err(error) if error.is_not_found() => {}
        Err(error) => {
            tracing::warn!(
                node = node.name,
                error = error.message(),
                "the addresses of the node could not be updated"
            );
        }
    }
    None
}

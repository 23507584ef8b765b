//! The node controller on a dry run.

use std::sync::Arc;

use openstack_ccm_runtime::events::EventWriter;

use super::sync::NodeSync;
use super::{NodeController, NodeQueue, refresh};
use crate::dry_run::{Concluded, End, untold};

/// The controller on a dry run.
pub struct NodeDryRun {
    queue: NodeQueue,
    sync: Arc<NodeSync>,
    events: EventWriter,
}

impl NodeController {
    /// The same controller, to be run dry. Its client must not write.
    pub fn dry_run(self) -> NodeDryRun {
        let Self { queue, sync, events, .. } = self;
        NodeDryRun { queue, sync, events }
    }
}

impl NodeDryRun {
    /// Looks once at all nodes, which have to be listed before.
    pub async fn converge(&mut self) -> Concluded {
        self.sync.reconcile(self.queue.take_ready(), 1).await;
        let end = match refresh::round(&self.sync, 1).await {
            Ok(()) => End::Done,
            Err(failure) => End::Failed(failure),
        };
        Concluded { end, told: untold(&mut self.events) }
    }
}

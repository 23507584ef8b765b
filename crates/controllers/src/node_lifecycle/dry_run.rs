//! The node lifecycle controller on a dry run.

use openstack_ccm_core::instance::missing::ROUNDS;
use openstack_ccm_runtime::events::EventWriter;

use super::NodeLifecycleController;
use super::round::Lifecycle;
use crate::dry_run::{Concluded, End, untold};

/// The controller on a dry run.
pub struct NodeLifecycleDryRun {
    lifecycle: Lifecycle,
    events: EventWriter,
}

impl NodeLifecycleController {
    /// The same controller, to be run dry. Its client must not write.
    pub fn dry_run(self) -> NodeLifecycleDryRun {
        let Self { lifecycle, events, .. } = self;
        NodeLifecycleDryRun { lifecycle, events }
    }
}

impl NodeLifecycleDryRun {
    /// Makes as many rounds as a machine has to be missing in, over nodes that have to be listed before.
    pub async fn converge(&mut self) -> Concluded {
        for _ in 0..ROUNDS {
            self.lifecycle.round().await;
        }
        let end = self.lifecycle.last_failure().map_or(End::Done, |failure| End::Failed(failure.clone()));
        Concluded { end, told: untold(&mut self.events) }
    }
}

//! The route controller on a dry run.

use std::sync::Arc;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::route::{Routes, Support};
use openstack_ccm_runtime::events::EventWriter;

use super::RouteController;
use super::round::Round;
use crate::dry_run::{Concluded, End, untold};
use crate::nodes::NodeStore;

/// The controller on a dry run.
pub struct RouteDryRun {
    provider: Arc<dyn Routes>,
    round: Round,
    nodes: NodeStore,
    events: EventWriter,
}

impl RouteController {
    /// The same controller, to be run dry. Its client, and the one of its provider, must not write.
    pub fn dry_run(self) -> RouteDryRun {
        let Self { provider, round, nodes, events, .. } = self;
        RouteDryRun { provider, round, nodes, events }
    }
}

impl RouteDryRun {
    /// Makes one round over the nodes, which have to be listed before.
    pub async fn converge(&mut self) -> Concluded {
        let result = match self.provider.support().await {
            Ok(Support::Full) => self.round.run(&self.nodes.all()).await,
            Ok(Support::None(reason)) => Err(Failure::new(FailureClass::UserInput, reason)),
            Err(failure) => Err(failure),
        };
        Concluded { end: result.map_or_else(End::Failed, |()| End::Done), told: untold(&mut self.events) }
    }
}

//! The node lifecycle controller: taints nodes whose machine is shut down, and deletes those whose machine is gone.
//!
//! Deleting a Node gives up everything that runs there, so a Node goes only when all of this holds: its kubelet does not
//! vouch for it; its machine was missing in two rounds in a row; most of the other machines are there
//! ([`openstack_ccm_core::instance::missing`]); and a last question about this one machine says that it is gone.

mod metrics;
mod round;
mod taint;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use openstack_ccm_core::instance::Instances;
use openstack_ccm_core::instance::missing::MIN_MISSING_ROUNDS;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::dry_run::{Concluded, End, recorded};
use crate::nodes::{NodeInformer, NodeStore, NodeWriter};
use metrics::LifecycleMetrics;
use openstack_ccm_runtime::events::{self, EventWriter};
use openstack_ccm_runtime::parts::{ControllerError, named, run_parts};
use round::Lifecycle;

/// Settings of a [`NodeLifecycleController`].
#[derive(Clone, Debug)]
pub struct NodeLifecycleOptions {
    /// Time between two rounds.
    pub monitor_period: Duration,
    /// Nodes that are asked about a last time, or whose taint is written, at the same time; at least 1.
    pub concurrency: usize,
    /// So long a machine has to be missing before its Node is deleted, and for [`MIN_MISSING_ROUNDS`] rounds at least.
    pub deletion_delay: Duration,
    /// How often a Warning whose cause lasts is written; absent: once.
    pub warning_interval: Option<Duration>,
    /// Longest wait for one call to the API server.
    pub call_timeout: Duration,
}

impl Default for NodeLifecycleOptions {
    fn default() -> Self {
        Self {
            monitor_period: Duration::from_secs(5),
            concurrency: 1,
            deletion_delay: Duration::ZERO,
            warning_interval: None,
            call_timeout: Duration::from_secs(30),
        }
    }
}

pub struct NodeLifecycleController {
    options: NodeLifecycleOptions,
    store: NodeStore,
    lifecycle: Lifecycle,
    events: EventWriter,
}

impl NodeLifecycleController {
    /// Puts a controller together; nothing happens before [`NodeLifecycleController::run`] and
    /// [`NodeInformer::run`].
    pub fn new(
        client: Client,
        instances: Arc<dyn Instances>,
        options: NodeLifecycleOptions,
        nodes: &NodeInformer,
        registry: &mut Registry,
    ) -> Self {
        let store = nodes.store();
        let (recorder, events) = events::channel(client.clone());
        let writer = NodeWriter::new(client, options.call_timeout);
        let metrics = LifecycleMetrics::registered(registry);
        let lifecycle = Lifecycle::new(instances, store.clone(), writer, recorder, metrics, &options);
        Self { options, store, lifecycle, events }
    }

    /// Waits until the nodes of the cluster are known, for readiness.
    pub fn listed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.store.wait_listed()
    }

    /// Works until `shutdown`. Every round may be stopped at any call.
    ///
    /// # Errors
    /// A part ended that runs for ever.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ControllerError> {
        let Self { options, store, lifecycle, events } = self;
        let mut parts = JoinSet::new();
        parts.spawn(named("rounds over nodes", async move {
            store.wait_listed().await;
            lifecycle.follow(options.monitor_period).await;
        }));
        run_parts(parts, events, shutdown).await
    }

    /// Makes as many rounds as a machine has to be missing in, over nodes that have to be listed before, without the delay after which a
    /// Node is deleted. The client of the controller must not write.
    pub async fn dry_run(mut self) -> Concluded {
        self.lifecycle.deletes_at_once();
        for _ in 0..MIN_MISSING_ROUNDS {
            self.lifecycle.round().await;
        }
        let end = self.lifecycle.last_failure().map_or(End::Done, |failure| End::Failed(failure.clone()));
        Concluded { end, events: recorded(&mut self.events) }
    }
}

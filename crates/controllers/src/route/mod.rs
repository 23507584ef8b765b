//! The route controller: keeps the cloud's routes to the pods of nodes, and tells the scheduler which nodes can be reached.
//!
//! | module | step |
//! | --- | --- |
//! | `watch` | which nodes there are, and which of their changes matter |
//! | `round` | one comparison of the cloud with the nodes |
//! | `condition` | `NetworkUnavailable` in the status of a node |
//! | `metrics` | counts |
//!
//! Rounds never overlap. One begins when a node changed in a way that matters, and at the latest after the period; after a
//! failure the period grows.

mod condition;
mod metrics;
mod round;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::route::range::ClusterRanges;
use openstack_ccm_core::route::{Routes, Support};
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, watch as channel};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::events::{self, EventWriter};
use crate::parts::{ControllerError, EventWriting, named, part_ended};
use condition::ConditionWriter;
use metrics::Metrics;
use round::Round;
use watch::NodeTable;

/// Longest time between two rounds because of failures, unless the cloud asks for more.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// Settings of a [`RouteController`].
#[derive(Clone, Debug)]
pub struct RouteControllerOptions {
    /// `--cluster-cidr`: routes outside of it are left alone.
    pub ranges: ClusterRanges,
    /// `--route-reconciliation-period`: longest time between the starts of two rounds.
    pub period: Duration,
    /// Shortest time between the starts of two rounds.
    pub pause: Duration,
    /// Longest wait for one call to the API server.
    pub call_timeout: Duration,
    /// Time that a running round has to end when the controller is stopped; then it is dropped, which is safe.
    pub shutdown_grace: Duration,
}

impl RouteControllerOptions {
    /// The settings that upstream has without flags, for these ranges.
    pub fn new(ranges: ClusterRanges) -> Self {
        Self {
            ranges,
            period: Duration::from_secs(10),
            pause: Duration::from_secs(1),
            call_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// The route controller.
pub struct RouteController {
    client: Client,
    provider: Arc<dyn Routes>,
    options: RouteControllerOptions,
    round: Round,
    events: EventWriter,
    nodes: channel::Sender<Arc<NodeTable>>,
    settled: channel::Sender<bool>,
}

impl RouteController {
    /// Puts a controller together; nothing happens before [`RouteController::run`].
    ///
    /// `client` must not repeat requests by itself (`kube::Config::default_retry = false`).
    pub fn new(
        client: Client,
        provider: Arc<dyn Routes>,
        options: RouteControllerOptions,
        registry: &mut Registry,
    ) -> Self {
        let (recorder, events) = events::channel(client.clone());
        let round = Round {
            provider: Arc::clone(&provider),
            ranges: options.ranges.clone(),
            conditions: ConditionWriter::new(client.clone(), options.call_timeout),
            events: recorder,
            metrics: Metrics::registered(registry),
        };
        let nodes = channel::Sender::new(Arc::default());
        Self { client, provider, options, round, events, nodes, settled: channel::Sender::new(false) }
    }

    /// Ends when the nodes have been listed, or when it is clear that there is nothing to do.
    pub fn listed(&self) -> impl Future<Output = ()> + Send + 'static {
        let (mut nodes, mut settled) = (self.nodes.subscribe(), self.settled.subscribe());
        async move {
            let done = tokio::select! {
                done = nodes.wait_for(|nodes| nodes.listed) => done.is_ok(),
                done = settled.wait_for(|settled| *settled) => done.is_ok(),
            };
            if !done {
                // The controller has ended, which is noticed where it is joined.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Works until `shutdown`, then lets a running round end for [`RouteControllerOptions::shutdown_grace`].
    ///
    /// Dropping the future stops everything at once. That is safe at any point, as a crash is.
    ///
    /// # Errors
    /// A part ended that runs for ever.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ControllerError> {
        let supported = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            supported = supported(self.provider.as_ref()) => supported,
        };
        if !supported {
            self.settled.send_replace(true);
            shutdown.cancelled().await;
            return Ok(());
        }
        let Self { client, options, round, events, nodes, .. } = self;
        let writing = EventWriting::start(events);
        let mut parts = JoinSet::new();
        let changed = Arc::new(Notify::new());
        let table = nodes.subscribe();
        parts.spawn(named("watch of nodes", watch::follow(client, nodes, Arc::clone(&changed))));
        let result = tokio::select! {
            result = rounds(&round, table, &changed, &options, &shutdown) => result,
            ended = parts.join_next() => Err(part_ended(ended)),
        };
        parts.shutdown().await;
        writing.finish().await;
        result
    }
}

/// Asks whether the cloud can hold routes, until there is an answer.
async fn supported(provider: &dyn Routes) -> bool {
    let mut attempt = 0;
    loop {
        match provider.support().await {
            Ok(Support::Full) => return true,
            Ok(Support::None(reason)) => {
                tracing::warn!("the route controller has nothing to do: {reason}");
                return false;
            }
            Err(failure) => {
                let delay = failure.delay(attempt);
                tracing::warn!(error = %failure, retry_in = ?delay, "it is not known whether the cloud can hold routes");
                tokio::time::sleep(delay).await;
                attempt += 1;
            }
        }
    }
}

/// One round after the other, until `shutdown`.
async fn rounds(
    round: &Round,
    mut nodes: channel::Receiver<Arc<NodeTable>>,
    changed: &Notify,
    options: &RouteControllerOptions,
    shutdown: &CancellationToken,
) -> Result<(), ControllerError> {
    let mut failures = 0;
    tokio::select! {
        () = shutdown.cancelled() => return Ok(()),
        listed = nodes.wait_for(|nodes| nodes.listed) => if listed.is_err() {
            return Err(ControllerError::PartEnded("watch of nodes"));
        },
    }
    loop {
        let start = Instant::now();
        let table = Arc::clone(&nodes.borrow_and_update());
        let running = round.run(&table);
        let stopped = async {
            shutdown.cancelled().await;
            tokio::time::sleep(options.shutdown_grace).await;
        };
        let result = tokio::select! {
            result = running => result,
            () = stopped => return Ok(()),
        };
        let wait = match &result {
            Ok(()) => options.period,
            Err(failure) => options.period.max(backoff(failure, failures)),
        };
        failures = if result.is_ok() { 0 } else { failures + 1 };
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = tokio::time::sleep_until(start + wait) => {}
            () = changed.notified() => tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = tokio::time::sleep_until(start + options.pause) => {}
            },
        }
    }
}

fn backoff(failure: &Failure, attempt: u32) -> Duration {
    failure.delay(attempt).min(LONGEST_BACKOFF).max(failure.retry_after.unwrap_or_default())
}

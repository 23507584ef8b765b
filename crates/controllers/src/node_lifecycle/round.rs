//! One round over the nodes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::Taint;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::instance::missing::{
    Doubt, MAX_DELETIONS_PER_ROUND, MIN_MISSING_ROUNDS, MissingMachines,
};
use openstack_ccm_core::instance::{Instances, NodeIdentity, Presence};
use openstack_ccm_core::notice::Notice;
use tokio::time::{Instant, MissedTickBehavior};
use tracing::Instrument as _;

use super::metrics::LifecycleMetrics;
use super::{NodeLifecycleOptions, taint};
use crate::names::NODE_LIFECYCLE_CONTROLLER;
use crate::nodes::{NodeObject, NodeStore, NodeWriter};
use openstack_ccm_runtime::events::{EventRecorder, Lasting};
use openstack_ccm_runtime::metrics;

/// Nodes with what the cloud says of their machines.
type Answers = Vec<(Arc<NodeObject>, Presence)>;

/// The controller's knowledge from round to round. All of it may be lost.
pub(super) struct Lifecycle {
    instances: Arc<dyn Instances>,
    store: NodeStore,
    writer: NodeWriter,
    events: EventRecorder,
    metrics: LifecycleMetrics,
    absences: Absences,
    /// Nodes that are asked about a last time, or whose taint is written, at the same time.
    concurrency: usize,
    /// So long a machine has to be missing before its Node is deleted.
    deletion_delay: Duration,
    /// The Warnings about Nodes without a provider id for which no machine is found, by the uid of the Node.
    unnamed: Lasting<String>,
    /// The Warning that deletions are held back, whichever node it names.
    held: Lasting<()>,
    /// The last failure, so that an outage is not logged in every round.
    last_failure: Option<Failure>,
    /// When the cloud wants to be asked again.
    not_before: Option<Instant>,
}

impl Lifecycle {
    pub(super) fn new(
        instances: Arc<dyn Instances>,
        store: NodeStore,
        writer: NodeWriter,
        events: EventRecorder,
        metrics: LifecycleMetrics,
        options: &NodeLifecycleOptions,
    ) -> Self {
        Self {
            instances,
            store,
            writer,
            events,
            metrics,
            absences: Absences::default(),
            concurrency: options.concurrency.max(1),
            deletion_delay: options.deletion_delay,
            unnamed: Lasting::new(options.warning_interval),
            held: Lasting::new(options.warning_interval),
            last_failure: None,
            not_before: None,
        }
    }

    /// Waits for no more than the rounds.
    pub(super) fn deletes_at_once(&mut self) {
        self.deletion_delay = Duration::ZERO;
    }

    /// Makes a round every `period`, for ever.
    pub(super) async fn follow(mut self, period: Duration) {
        let mut ticks = tokio::time::interval(period.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.round().await;
        }
    }

    /// Why the last round could not look, if it could not.
    pub(super) fn last_failure(&self) -> Option<&Failure> {
        self.last_failure.as_ref()
    }

    pub(super) async fn round(&mut self) {
        let begun = Instant::now();
        self.look_at_nodes().await;
        self.metrics.seconds.observe(begun.elapsed().as_secs_f64());
    }

    async fn look_at_nodes(&mut self) {
        let nodes = self.store.all();
        let started = nodes.iter().filter(|node| node.is_ready && node.has_shutdown_taint());
        let done = "the node is ready; its shutdown taint was removed";
        self.write_taints(started, taint::without_taint, done, "the taint could not be removed").await;
        let not_ready: Vec<Arc<NodeObject>> = nodes.iter().filter(|node| !node.is_ready).cloned().collect();
        if not_ready.is_empty() {
            self.unnamed.clear();
            self.absences.keep_only(std::iter::empty());
            self.release();
            return;
        }
        if self.not_before.is_some_and(|time| Instant::now() < time) {
            return;
        }
        // Before a node is deleted all the others count: one list shows all of them.
        let asked = if self.absences.any() { nodes.clone() } else { not_ready };
        let span = tracing::debug_span!("nodes that are not ready", asked = asked.len());
        match self.look(&asked, &nodes).instrument(span).await {
            Ok(()) => self.last_failure = None,
            Err(failure) => self.failed(&failure),
        }
    }

    async fn look(&mut self, asked: &[Arc<NodeObject>], nodes: &[Arc<NodeObject>]) -> Result<(), Failure> {
        let answers = self.ask(asked).await?;
        self.report_unnamed(&answers);
        let (mut missing, mut shut_down) = (Vec::new(), Vec::new());
        for (node, presence) in answers.iter().filter(|(node, _)| !node.is_ready) {
            match presence {
                Presence::Gone => missing.push(Arc::clone(node)),
                Presence::ShutDown => shut_down.push(node),
                // Reported above.
                Presence::Exists | Presence::Unnamed(_) => {}
                Presence::Foreign(reason) => {
                    tracing::debug!(node = node.name, reason, "the node is not changed");
                }
                Presence::Unknown(failure) => {
                    tracing::debug!(node = node.name, %failure, "the state of the server is unknown; the node is not deleted");
                }
            }
        }
        // The taint stays until the node is ready: a machine that was started may take long to become a node again.
        let done = "the server is shut down; the node was tainted";
        self.write_taints(shut_down, taint::with_taint, done, "the taint could not be set").await;
        self.absences.keep_only(missing.iter().map(AsRef::as_ref));
        missing.retain(|node| self.absences.missing(node, self.deletion_delay));
        if missing.is_empty() {
            self.release();
            return Ok(());
        }
        let all = if answers.len() == nodes.len() { answers } else { self.ask(nodes).await? };
        if let Some(doubt) = MissingMachines::among(all.iter().map(|(_, presence)| presence)).doubt() {
            self.hold(&missing, doubt);
            return Ok(());
        }
        self.release();
        self.delete_gone(&missing, &all).await
    }

    /// Says of each Node that nobody can say whether its machine is gone.
    fn report_unnamed(&mut self, answers: &[(Arc<NodeObject>, Presence)]) {
        let unnamed = answers.iter().filter_map(|(node, presence)| match presence {
            Presence::Unnamed(failure) if !node.is_ready => Some((node, failure)),
            _ => None,
        });
        for (node, failure) in self.unnamed.due(unnamed, |(node, _)| node.uid.clone()) {
            let name = &node.name;
            let message = format!(
                "The Node is not ready and its server might no longer exist: {failure}. This is not certain, so the Node is not deleted. \
                 If the server was deleted, delete the Node: kubectl delete node {name}"
            );
            tracing::warn!(node = name, "{message}");
            let notice = Notice::warning("NodeServerNotFound", message);
            self.events.record(&node.reference(), NODE_LIFECYCLE_CONTROLLER, notice);
        }
    }

    /// Deletes the nodes among the missing ones that the last list lacks too, and a last question about each.
    async fn delete_gone(
        &self,
        missing: &[Arc<NodeObject>],
        all: &[(Arc<NodeObject>, Presence)],
    ) -> Result<(), Failure> {
        let gone = |node: &Arc<NodeObject>| {
            all.iter().any(|(other, presence)| other.uid == node.uid && *presence == Presence::Gone)
        };
        let gone: Vec<_> =
            missing.iter().filter(|node| gone(node)).take(MAX_DELETIONS_PER_ROUND).cloned().collect();
        for nodes in gone.chunks(self.concurrency) {
            // A list may lack what a question about the one machine shows.
            let answers = join_all(nodes.iter().map(|node| self.ask(std::slice::from_ref(node)))).await;
            for answer in answers {
                if let [(node, Presence::Gone)] = answer?.as_slice() {
                    self.delete(node).await;
                }
            }
        }
        Ok(())
    }

    async fn ask(&self, nodes: &[Arc<NodeObject>]) -> Result<Answers, Failure> {
        let identities: Vec<NodeIdentity> = nodes.iter().map(|node| node.identity()).collect();
        let answers = self.instances.presence(&identities).await;
        self.metrics.asked(&answers);
        let answers = answers?;
        Ok(nodes.iter().cloned().zip(answers).collect())
    }

    fn failed(&mut self, failure: &Failure) {
        self.metrics.failures.count(failure.class);
        self.not_before = failure.asked().map(|delay| Instant::now() + delay);
        if self.last_failure.as_ref().map(|last| &last.message) != Some(&failure.message) {
            tracing::warn!(%failure, "nodes that are not ready could not be checked in the cloud; the nodes are not changed");
            self.last_failure = Some(failure.clone());
        }
    }

    /// Gives nodes the taints that are `wanted`, and says so.
    async fn write_taints(
        &self,
        nodes: impl IntoIterator<Item = &Arc<NodeObject>>,
        wanted: fn(&NodeObject) -> Vec<Taint>,
        done: &str,
        failed: &str,
    ) {
        let write = |node: Arc<NodeObject>| async move {
            match taint::write(&self.writer, &node, wanted).await {
                Ok(true) => tracing::info!(node = node.name, "{done}"),
                Ok(false) => {}
                Err(error) => tracing::warn!(node = node.name, error = error.message(), "{failed}"),
            }
        };
        let nodes: Vec<_> = nodes.into_iter().cloned().collect();
        stream::iter(nodes).for_each_concurrent(self.concurrency, write).await;
    }

    async fn delete(&self, node: &NodeObject) {
        let name = &node.name;
        let message = format!("Deleting node {name} because it does not exist in the cloud provider");
        let reference = node.reference();
        self.events.record(&reference, NODE_LIFECYCLE_CONTROLLER, Notice::normal("DeletingNode", message));
        match self.writer.delete(node).await {
            Ok(()) => {
                tracing::info!(
                    node = name,
                    provider_id = node.facts.provider_id,
                    "the node was deleted: its server no longer exists"
                );
                self.metrics.deleted.inc();
            }
            Err(error) if error.is_not_found() => {}
            // It changed since it was read: the next round decides again.
            Err(error) if error.is_conflict() => {
                tracing::info!(node = name, "the node has changed and is not deleted");
            }
            Err(error) => {
                tracing::warn!(node = name, error = error.message(), "the node could not be deleted");
                let message = format!("Failed deleting node {name}: {}", error.message());
                let notice = Notice::warning("DeletingNodeFailed", message);
                self.events.record(&reference, NODE_LIFECYCLE_CONTROLLER, notice);
            }
        }
    }

    /// Keeps the nodes, and says so on one of them.
    fn hold(&mut self, missing: &[Arc<NodeObject>], doubt: Doubt) {
        metrics::set(&self.metrics.held, missing.len());
        for node in self.held.due(missing.first(), |_| ()) {
            tracing::error!("{doubt}");
            let notice = Notice::warning("NodeDeletionHeld", doubt.to_string());
            self.events.record(&node.reference(), NODE_LIFECYCLE_CONTROLLER, notice);
        }
    }

    fn release(&mut self) {
        self.metrics.held.set(0);
        self.held.clear();
    }
}

/// In how many rounds in a row the machine of each node was missing, and since when, by the uid of the Node: one that is registered again
/// starts over.
#[derive(Debug, Default)]
struct Absences {
    rounds: HashMap<String, (u32, Instant)>,
}

impl Absences {
    /// The machine of the node is missing. Returns whether that has been so for long enough.
    fn missing(&mut self, node: &NodeObject, delay: Duration) -> bool {
        let (rounds, since) = self.rounds.entry(node.uid.clone()).or_insert_with(|| {
            if !delay.is_zero() {
                tracing::info!(
                    node = node.name,
                    ?delay,
                    "the server no longer exists; the node will be deleted after the delay"
                );
            }
            (0, Instant::now())
        });
        *rounds = rounds.saturating_add(1);
        *rounds >= MIN_MISSING_ROUNDS && since.elapsed() >= delay
    }

    /// Whether a machine was missing in the last round.
    fn any(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// Forgets every node that is not among the missing ones of this round.
    fn keep_only<'a>(&mut self, missing: impl Iterator<Item = &'a NodeObject>) {
        let missing: HashSet<&str> = missing.map(|node| node.uid.as_str()).collect();
        self.rounds.retain(|uid, _| missing.contains(uid.as_str()));
    }
}

//! The controller: its parts, its workers, and their end.

use std::sync::Arc;

use kube::Client;
use openstack_ccm_advertise::canary::Canary;
use openstack_ccm_advertise::kube_proxy::KubeProxies;
use openstack_ccm_advertise::measured::Measured;
use openstack_ccm_advertise::metrics::AdvertiseMetrics;
use openstack_ccm_advertise::node::Fitness;
use openstack_ccm_advertise::server::{Intervals, ServerDetection};
use openstack_ccm_advertise::writer::StatusWriter;
use openstack_ccm_core::provider::LoadBalancers;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::backends::NodeSelectors;
use super::cache::{KnownToAll, ServiceCache};
use super::intent::Ours;
use super::judgement::Judgement;
use super::kube_proxies::ask_kube_proxies;
use super::memory::Memory;
use super::node_changes::NodeChanges;
use super::orphans::report_orphans;
use crate::PAGE_SIZE;
use crate::known_cluster::ClusterClient;
use crate::metrics::ServiceMetrics;
use crate::names::{FIELD_MANAGER, SERVICE_CONTROLLER};
use crate::nodes::NodeInformer;
use crate::queue::WorkQueues;
use openstack_ccm_runtime::events::{self, EventWriter};
use openstack_ccm_runtime::parts::{ControllerError, EventWriting, becomes, named, part_ended};

use super::cause::Cause;
use super::context::{ServiceSync, interest};
use super::follow;
use super::node_rollout::NodeRollouts;
use super::options::ServiceControllerOptions;
use super::queue::{Reschedule, ServiceQueue};

/// Prefix of the metrics that are this program's own.
const METRIC_PREFIX: &str = "openstack_ccm";

pub struct ServiceController {
    pub(super) client: Client,
    options: ServiceControllerOptions,
    pub(super) queue: ServiceQueue,
    pub(super) sync: Arc<ServiceSync>,
    pub(super) events: EventWriter,
    node_changes: Arc<NodeChanges>,
    listed: watch::Sender<bool>,
    canary: Option<Canary>,
}

impl ServiceController {
    /// Creates a controller; nothing happens before [`ServiceController::run`] and [`NodeInformer::run`].
    ///
    /// `queue` is the queue whose [`ServiceQueue::waker`] the provider holds.
    pub fn new(
        ClusterClient { client, cluster, gate }: ClusterClient,
        provider: Arc<dyn LoadBalancers>,
        queue: ServiceQueue,
        options: ServiceControllerOptions,
        nodes: &mut NodeInformer,
        registry: &mut Registry,
        queues: &WorkQueues,
    ) -> Self {
        let names = provider.names();
        let metrics = ServiceMetrics::registered(registry, names.metric_prefix);
        let advertise_metrics =
            AdvertiseMetrics::registered(registry.sub_registry_with_prefix(METRIC_PREFIX));
        queue.0.register("service", queues);
        let writer = StatusWriter::new(client.clone(), options.call_timeout, FIELD_MANAGER)
            .interested(interest(&provider));
        let server = Arc::new(ServerDetection::new(
            client.clone(),
            writer.clone(),
            options.ip_mode_gate,
            Intervals { probe: options.probe_interval, version: options.version_interval },
            advertise_metrics.clone(),
        ));
        let (recorder, events) = events::channel(client.clone());
        let measured = if options.canary.is_some() { Measured::default() } else { Measured::by_nobody() };
        let canary = options.canary.clone().map(|canary| {
            let (client, writer) = (client.clone(), writer.clone());
            let (measured, recorder) = (measured.clone(), recorder.clone());
            Canary::new(client, writer, canary, measured, recorder, SERVICE_CONTROLLER, options.resync)
        });
        let ours = options.load_balancer_class.clone().map_or(Ours::WithoutClass, Ours::OfClass);
        let cache = Arc::new(ServiceCache::new(ours.clone()));
        provider.set_neighbours(Arc::new(KnownToAll { services: Arc::clone(&cache), nodes: nodes.store() }));
        let judgement = Judgement::new(nodes.store(), measured.clone());
        let sync = Arc::new(ServiceSync {
            cluster,
            gate,
            provider,
            ours,
            names,
            writer,
            cache,
            memory: Memory::default(),
            nodes: judgement.published(),
            selectors: NodeSelectors {
                annotation: options.node_selector_annotation.clone(),
                default: options.node_selector.clone(),
            },
            server,
            measured,
            events: recorder,
            metrics,
            advertise_metrics,
            rollouts: NodeRollouts::default(),
            resync: options.resync,
            queue: queue.clone(),
        });
        let node_changes = Arc::new(NodeChanges::new(Arc::clone(&sync), nodes.store(), judgement));
        nodes.listen(node_changes.clone());
        let listed = watch::Sender::new(false);
        Self { client, options, queue, sync, events, node_changes, listed, canary }
    }

    /// Waits until Services and Nodes have been listed, and until the canary's verdicts from before the start are known, or
    /// unavailable: before that nothing is decided. Readiness depends on it, too.
    pub fn listed(&self) -> impl Future<Output = ()> + Send + use<> {
        let (services, nodes) = (self.listed.subscribe(), self.node_changes.settled());
        async move {
            becomes(services, |listed| *listed).await;
            nodes.await;
        }
    }

    /// Works until `shutdown`, then lets running reconciliations end for [`ServiceControllerOptions::shutdown_grace`].
    ///
    /// Dropping the future stops everything at once. That is safe at any point, as a crash is.
    ///
    /// # Errors
    /// A part that runs for ever ended.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ControllerError> {
        let listed = self.listed();
        let (queue, sync) = (self.queue.clone(), Arc::clone(&self.sync));
        let (concurrency, grace) = (self.options.concurrency.max(1), self.options.shutdown_grace);
        let mut parts = JoinSet::new();
        let writing = self.spawn_parts(&mut parts);
        let mut workers = JoinSet::new();
        let result = tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            ended = parts.join_next() => Err(part_ended(ended)),
            ended = async {
                listed.await;
                tracing::info!(workers = concurrency, "services and nodes listed, starting to reconcile");
                keep_working(&mut workers, concurrency, &queue, &sync).await
            } => Err(ended),
        };
        queue.0.close();
        let drained = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, drained).await.is_err() {
            tracing::warn!("reconciliations that did not finish in time are cancelled");
        }
        workers.shutdown().await;
        parts.shutdown().await;
        writing.finish().await;
        result
    }

    fn spawn_parts(self, parts: &mut JoinSet<&'static str>) -> EventWriting {
        let synced = self.listed();
        let Self { client, options, queue, sync, events, node_changes, listed, canary } = self;
        spawn_measuring(parts, &options, &sync, &node_changes, canary);
        parts.spawn(named("watch of services", {
            follow::follow(client, Arc::clone(&sync), queue.clone(), listed)
        }));
        let judging = Arc::clone(&node_changes).judge_again();
        parts.spawn(named("judgement of unreachable nodes", judging));
        let (delay, interval) = (options.node_change_delay, options.node_change_interval);
        let rollout = Arc::clone(&node_changes).queue_services(queue.clone(), delay, interval);
        parts.spawn(named("reconciliation after changes of nodes", rollout));
        parts.spawn(named("detection of ipMode", {
            let sync = Arc::clone(&sync);
            async move { sync.server.follow(|| sync.cache.served_keys()).await }
        }));
        if let Some(interval) = options.resync {
            let looking = report_orphans(Arc::clone(&sync), synced, interval);
            parts.spawn(named("check for orphaned load balancers", looking));
            let warning = node_changes.warn_again(interval);
            parts.spawn(named("warnings about nodes", warning));
        }
        parts.spawn(named(
            "reconciliation after changes of the cluster",
            readvertise_after_changes(sync, queue),
        ));
        EventWriting::start(events)
    }
}

/// Starts the parts that measure the service proxies of nodes.
fn spawn_measuring(
    parts: &mut JoinSet<&'static str>,
    options: &ServiceControllerOptions,
    sync: &Arc<ServiceSync>,
    node_changes: &NodeChanges,
    canary: Option<Canary>,
) {
    if let Some(canary) = canary {
        parts.spawn(named("watch of the canary", canary.keep(PAGE_SIZE)));
    }
    let Some(port) = options.kube_proxy_metrics_port else { return };
    match KubeProxies::new(port) {
        Ok(proxies) => {
            let asking = ask_kube_proxies(proxies, node_changes.nodes(), sync.measured.clone());
            parts.spawn(named("questions to kube-proxies", asking));
        }
        Err(error) => tracing::error!(%error, "kube-proxies cannot be queried"),
    }
}

/// Keeps `concurrency` workers running. A worker that panicked is replaced: its Service has returned to the queue.
async fn keep_working(
    workers: &mut JoinSet<()>,
    concurrency: usize,
    queue: &ServiceQueue,
    sync: &Arc<ServiceSync>,
) -> ControllerError {
    loop {
        while workers.len() < concurrency {
            workers.spawn(work(queue.clone(), Arc::clone(sync)));
        }
        match workers.join_next().await {
            Some(Err(error)) => tracing::error!(%error, "a reconciliation panicked and is retried"),
            Some(Ok(())) | None => return ControllerError::PartEnded("queue"),
        }
    }
}

async fn work(queue: ServiceQueue, sync: Arc<ServiceSync>) {
    while let Some(taken) = queue.0.take().await {
        let span = tracing::info_span!("reconcile", service = %taken.key);
        let next = sync.reconcile(&taken.key, taken.reason).instrument(span).await;
        if taken.reason.has(Cause::Nodes) {
            for elapsed in sync.rollouts.reached(&taken.key) {
                sync.metrics.nodes_followed(elapsed);
            }
        }
        // A text that means nothing stays what it is until somebody changes it.
        let lasts = matches!(&next, Reschedule::Backoff(failure) if failure.lasts);
        taken.finish(if lasts { Reschedule::again(sync.resync, Cause::Resync) } else { next });
    }
}

/// Publishes every Service again when the cluster became able or unable to honour `ipMode` since this was called.
fn readvertise_after_changes(
    sync: Arc<ServiceSync>,
    queue: ServiceQueue,
) -> impl Future<Output = ()> + Send + use<> {
    let mut verdicts = sync.server.verdicts();
    let mut nodes = sync.nodes.clone();
    let mut known = (*verdicts.borrow(), fitness_kind(&nodes.borrow().fitness));
    async move {
        loop {
            let snapshot = Arc::clone(&nodes.borrow_and_update());
            sync.advertise_metrics.data_plane(&snapshot.fitness);
            sync.advertise_metrics.nodes(&snapshot.verdicts);
            let now = (*verdicts.borrow_and_update(), fitness_kind(&snapshot.fitness));
            if std::mem::replace(&mut known, now) != now {
                tracing::info!(server = ?now.0, data_plane = now.1, "the cluster's support for ipMode changed");
                for key in sync.memory.ready_where(|_, _| true) {
                    queue.add(&key, Cause::Readvertise);
                }
            }
            let changed = tokio::select! {
                changed = verdicts.changed() => changed,
                changed = nodes.changed() => changed,
            };
            if changed.is_err() {
                return;
            }
        }
    }
}

/// Returns the part of a judgement that decides: more nodes of the same kind change nothing.
fn fitness_kind(fitness: &Fitness) -> &'static str {
    match fitness {
        Fitness::Fit => "fit",
        Fitness::Unfit { cause, .. } => cause.as_str(),
    }
}

//! The controller: watches Services and nodes, and gives chosen Services the status that the cluster honours. One
//! reconciliation of one Service is in `reconciliation`.

mod reconciliation;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Service;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::controller::{Action, Config, ReconcileRequest, applier, trigger_self};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use openstack_ccm_advertise::canary::{Canary, CanaryOptions};
use openstack_ccm_advertise::measured::Measured;
use openstack_ccm_advertise::metrics::AdvertiseMetrics;
use openstack_ccm_advertise::server::{Intervals, ServerDetection};
use openstack_ccm_advertise::writer::StatusWriter;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::events::{self, EventWriter};
use openstack_ccm_runtime::listed;
use openstack_ccm_runtime::parts::{ControllerError, named, run_parts};
use openstack_ccm_runtime::watch::events as follow_objects;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::PAGE_SIZE;
use crate::metrics::Metrics;
use crate::names::{METRIC_PREFIX, PROGRAM};
use crate::nodes::{self, Nodes};
use crate::rules::Rules;
use crate::service::{is_load_balancer, key, trim};
use reconciliation::{Memory, Reconciler};

/// Settings of an [`Overlay`].
#[derive(Clone, Debug)]
pub struct OverlayOptions {
    /// Which Services are meant.
    pub rules: Rules,
    /// The suffix under which names of addresses resolve, for clusters that do not honour the mode.
    pub hostname_suffix: Option<String>,
    /// The operator's setting of whether the cluster honours the mode, which replaces the question to it.
    pub ip_mode_gate: Option<bool>,
    /// Where the canary is, whose verdicts on nodes stand above guesses; absent where there is none.
    pub canary: Option<CanaryOptions>,
    /// How often a Warning whose cause lasts is written: the API server deletes an Event an hour after its last write.
    pub warning_interval: Duration,
    /// Services that are worked on at the same time; at least 1.
    pub concurrency: u16,
    /// Longest wait for one call to the API server.
    pub call_timeout: Duration,
}

impl Default for OverlayOptions {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            hostname_suffix: None,
            ip_mode_gate: None,
            canary: None,
            warning_interval: Duration::from_secs(1800),
            concurrency: 16,
            call_timeout: Duration::from_secs(30),
        }
    }
}

pub struct Overlay {
    client: Client,
    concurrency: u16,
    reconciler: Arc<Reconciler>,
    events: EventWriter,
    nodes: watch::Sender<Option<Arc<Nodes>>>,
    listed: watch::Sender<bool>,
    measured: Measured,
    canary: Option<Canary>,
}

impl Overlay {
    /// Puts a controller together; nothing happens before [`Overlay::run`]. `client` must not repeat requests by itself.
    pub fn new(client: Client, options: OverlayOptions, registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix(METRIC_PREFIX);
        let advertise_metrics = AdvertiseMetrics::registered(registry);
        let writer = StatusWriter::new(client.clone(), options.call_timeout, PROGRAM);
        let intervals = Intervals { probe: Duration::from_secs(600), version: Duration::from_secs(60) };
        let server = ServerDetection::new(
            client.clone(),
            writer.clone(),
            options.ip_mode_gate,
            intervals,
            advertise_metrics.clone(),
        );
        let (recorder, events) = events::channel(client.clone());
        let measured = if options.canary.is_some() { Measured::default() } else { Measured::by_nobody() };
        let canary = options.canary.map(|canary| {
            let (client, writer, measured) = (client.clone(), writer.clone(), measured.clone());
            let interval = Some(options.warning_interval);
            Canary::new(client, writer, canary, measured, recorder.clone(), PROGRAM, interval)
        });
        let nodes = watch::Sender::new(None);
        let reconciler = Arc::new(Reconciler {
            rules: options.rules,
            hostname_suffix: options.hostname_suffix,
            warning_interval: options.warning_interval,
            writer,
            server,
            nodes: nodes.subscribe(),
            memory: Memory::default(),
            events: recorder,
            metrics: Metrics::registered(registry),
            advertise_metrics,
        });
        let concurrency = options.concurrency.max(1);
        let listed = watch::Sender::new(false);
        Self { client, concurrency, reconciler, events, nodes, listed, measured, canary }
    }

    /// Whether the Services have been listed.
    pub fn listed(&self) -> watch::Receiver<bool> {
        self.listed.subscribe()
    }

    /// Works until `shutdown`. Dropping the future stops everything at once. That is safe at any point, as a crash is.
    ///
    /// # Errors
    /// A part ended that runs for ever.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ControllerError> {
        let Self { client, concurrency, reconciler, events, nodes, listed, measured, canary } = self;
        let mut parts = JoinSet::new();
        parts.spawn(named("watch of nodes", nodes::follow(client.clone(), measured, nodes)));
        if let Some(canary) = canary {
            parts.spawn(named("watch of the canary", canary.keep(PAGE_SIZE)));
        }
        let (reader, writer) = reflector::store();
        let services = followed(client, Arc::clone(&reconciler), listed, writer);
        parts.spawn(named("detection of ipMode", {
            let (reconciler, reader) = (Arc::clone(&reconciler), reader.clone());
            async move { reconciler.server.follow(|| candidates(&reader)).await }
        }));
        let changed = cluster_changes(&reconciler, reader.clone());
        let queue = futures::stream::select(trigger_self(services, ()), changed);
        let config = Config::default().concurrency(concurrency);
        let results = applier(reconcile, retried, reconciler, reader, queue, config);
        parts.spawn(named("reconciliation of services", results.for_each(|_| std::future::ready(()))));
        run_parts(parts, events, shutdown).await
    }
}

/// The Services as they change, trimmed and stored.
fn followed(
    client: Client,
    reconciler: Arc<Reconciler>,
    listed: watch::Sender<bool>,
    writer: reflector::store::Writer<Service>,
) -> impl Stream<Item = Result<Service, Infallible>> + Send {
    let services = follow_objects::<listed::Service, Service>(Api::all(client), reconciler.rules.reading());
    let services = services.modify(trim).reflect(writer);
    services
        .inspect(move |event| match event {
            Ok(Event::Delete(service)) => reconciler.forget(&key(service)),
            Ok(Event::InitDone) => {
                if listed.send_replace(true) {
                    reconciler.server.suspect();
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "watch of services interrupted");
                reconciler.server.suspect();
            }
        })
        .applied_objects()
        .filter_map(|service| std::future::ready(service.ok().map(Ok)))
}

/// Services with which the API server can be asked.
fn candidates(services: &Store<Service>) -> Vec<ServiceKey> {
    services.state().iter().filter(|service| is_load_balancer(service)).map(|service| key(service)).collect()
}

/// All Services, each time that the cluster honours something else.
fn cluster_changes(
    reconciler: &Arc<Reconciler>,
    services: Store<Service>,
) -> impl Stream<Item = Result<ReconcileRequest<Service>, Infallible>> + Send + use<> {
    let metrics = reconciler.advertise_metrics.clone();
    let server = changes(reconciler.server.verdicts()).map(|_| None);
    let nodes = changes(reconciler.nodes.clone()).map(Some);
    futures::stream::select(server, nodes)
        .inspect(move |change| {
            if let Some(Some(nodes)) = change {
                metrics.data_plane(&nodes.fitness);
            }
        })
        .flat_map(move |_| {
            let services = services.state().into_iter().filter(|service| is_load_balancer(service));
            let requests: Vec<_> =
                services.map(|service| Ok(ObjectRef::from_obj(&*service).into())).collect();
            futures::stream::iter(requests)
        })
}

/// The values that come after the present one.
fn changes<T: Clone + Send + Sync>(receiver: watch::Receiver<T>) -> impl Stream<Item = T> + Send {
    futures::stream::unfold(receiver, async |mut receiver| {
        receiver.changed().await.ok()?;
        let value = receiver.borrow_and_update().clone();
        Some((value, receiver))
    })
}

fn reconcile(
    service: Arc<Service>,
    reconciler: Arc<Reconciler>,
) -> futures::future::BoxFuture<'static, Result<Action, Failure>> {
    Box::pin(async move {
        let again = reconciler.reconcile(&service).await?;
        Ok(again.map_or_else(Action::await_change, Action::requeue))
    })
}

#[allow(clippy::needless_pass_by_value, reason = "the form that the library asks for")]
fn retried(service: Arc<Service>, failure: &Failure, reconciler: Arc<Reconciler>) -> Action {
    Action::requeue(reconciler.failed(&service, failure))
}

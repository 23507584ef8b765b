//! Reports on an election: metrics, a heartbeat for the health check, and Events on the Lease.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use openstack_ccm_core::notice::Notice;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::ElectionOptions;
use crate::events;
use crate::metrics::metric;
use openstack_ccm_core::lock::lock;

type Label = [(&'static str, String); 1];

/// The election metrics of client-go; the label `name` is the name of the Lease. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct ElectionMetrics {
    leading: Family<Label, Gauge>,
    slow_path: Family<Label, Counter>,
}

impl ElectionMetrics {
    /// Creates metrics that `registry` shows.
    pub fn register(registry: &mut Registry) -> Self {
        let leading =
            metric(registry, "leader_election_master_status", "Whether this process holds the Lease");
        let help = "Slow-path attempts to take or renew the Lease (here: all of them)";
        Self { leading, slow_path: metric(registry, "leader_election_slowpath", help) }
    }
}

/// When the Lease was renewed last, while it is held.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat {
    renewed: Arc<Mutex<Option<Instant>>>,
}

impl Heartbeat {
    /// Returns how long ago the Lease was renewed; `None` while this process does not lead.
    pub fn age(&self) -> Option<Duration> {
        lock(&self.renewed).map(|renewed| renewed.elapsed())
    }
}

/// Reports for one candidate.
pub(super) struct Report {
    client: Client,
    options: Arc<ElectionOptions>,
    pub(super) metrics: ElectionMetrics,
    pub(super) heartbeat: Heartbeat,
}

impl Report {
    pub(super) fn new(client: Client, options: Arc<ElectionOptions>) -> Self {
        Self { client, options, metrics: ElectionMetrics::default(), heartbeat: Heartbeat::default() }
    }

    fn label(&self) -> Label {
        [("name", self.options.name.clone())]
    }

    /// Shows a candidate that does not lead.
    pub(super) fn waiting(&self) {
        self.metrics.leading.get_or_create(&self.label()).set(0);
    }

    pub(super) fn tried(&self) {
        self.metrics.slow_path.get_or_create(&self.label()).inc();
    }

    pub(super) fn renewed(&self) {
        *lock(&self.heartbeat.renewed) = Some(Instant::now());
    }

    /// Reports that the work begins. The Event is written in the background.
    pub(super) fn leads(&self) {
        self.metrics.leading.get_or_create(&self.label()).set(1);
        let notice = self.notice("became leader");
        let (client, object, component) = (self.client.clone(), self.lease(), self.options.component);
        tokio::spawn(async move { events::write_one(client, object, component, notice).await });
    }

    /// Reports that the work has ended.
    pub(super) fn ended(&self) {
        *lock(&self.heartbeat.renewed) = None;
        self.waiting();
    }

    /// Writes the Event that the leadership has ended, within `limit`.
    pub(super) async fn say_ended(&self, limit: Duration) {
        let notice = self.notice("stopped leading");
        let written = events::write_one(self.client.clone(), self.lease(), self.options.component, notice);
        if tokio::time::timeout(limit, written).await.is_err() {
            tracing::debug!("the event about the end of the leadership could not be written");
        }
    }

    fn notice(&self, what: &str) -> Notice {
        Notice::normal(super::LEADER_ELECTION, format!("{} {what}", self.options.identity))
    }

    fn lease(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("coordination.k8s.io/v1".into()),
            kind: Some("Lease".into()),
            namespace: Some(self.options.namespace.clone()),
            name: Some(self.options.name.clone()),
            ..ObjectReference::default()
        }
    }
}

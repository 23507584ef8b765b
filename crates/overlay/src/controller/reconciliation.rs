//! One reconciliation of one Service.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use kube::Resource as _;
use openstack_ccm_advertise::Mode;
use openstack_ccm_advertise::announce::{Announced, News};
use openstack_ccm_advertise::cluster::Cluster;
use openstack_ccm_advertise::entry::entries;
use openstack_ccm_advertise::metrics::AdvertiseMetrics;
use openstack_ccm_advertise::server::ServerDetection;
use openstack_ccm_advertise::writer::StatusWriter;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::lock::lock;
use openstack_ccm_core::notice::{Notice, Severity};
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::call::CallError;
use openstack_ccm_runtime::events::EventRecorder;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::names::PROGRAM;
use crate::nodes::Nodes;
use crate::rewrites::{Rewrites, WRITE_WINDOW};
use crate::rules::Rules;
use crate::service::{is_load_balancer, key};
use crate::wanted_status::{Plan, State, View, patch, plan, with_list};

/// After a patch was refused because the list was another one by then: the watch brings it sooner than this.
const STALE_CACHE_DELAY: Duration = Duration::from_secs(5);

/// Everything that a reconciliation needs.
pub(super) struct Reconciler {
    pub(super) rules: Rules,
    pub(super) hostname_suffix: Option<String>,
    pub(super) warning_interval: Duration,
    pub(super) writer: StatusWriter,
    pub(super) server: ServerDetection,
    pub(super) nodes: watch::Receiver<Option<Arc<Nodes>>>,
    pub(super) memory: Memory,
    pub(super) events: EventRecorder,
    pub(super) metrics: Metrics,
    pub(super) advertise_metrics: AdvertiseMetrics,
}

/// What is remembered of the Services that a reconciliation has seen and that are chosen, or were.
pub(super) type Memory = Mutex<HashMap<ServiceKey, Remembered>>;

/// What is remembered of a Service. Only a help: all of it can be lost at any moment.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// `metadata.uid`: another object of the same name starts without memories.
    uid: Option<String>,
    /// What was reported last about the publication.
    announced: Announced,
    /// What else was reported last.
    reported: Vec<Notice>,
    /// When a Warning was written last.
    warned: Option<Instant>,
    /// Why it is left alone, as a metric label, if it is.
    refused: Option<&'static str>,
    /// When its status was written.
    rewrites: Rewrites,
    /// Whether its status is left alone for a while because another manager keeps rewriting it.
    contested: bool,
    /// Whether that was reported.
    contest_reported: bool,
    /// Failed reconciliations in a row.
    failures: u32,
}

impl Remembered {
    /// After so long, the Warnings that still hold are news again.
    fn warn_again_after(&mut self, interval: Duration) {
        if self.warned.is_some_and(|last| last.elapsed() >= interval) {
            self.warned = None;
            self.announced.warn_again();
            self.reported.clear();
            self.contest_reported = false;
        }
    }
}

/// Delay before the next reconciliation although nothing happens; absent: there is none.
pub(super) type Again = Option<Duration>;

impl Reconciler {
    /// Does what is to be done for one Service now.
    pub(super) async fn reconcile(&self, service: &Service) -> Result<Again, Failure> {
        let key = key(service);
        if !is_load_balancer(service) {
            self.forget(&key);
            return Ok(None);
        }
        let Some((cluster, nodes)) = self.cluster(&key).await else { return Ok(None) };
        let view = View {
            rules: &self.rules,
            cluster: &cluster,
            node_addresses: &nodes.addresses,
            hostname_suffix: self.hostname_suffix.as_deref(),
        };
        let plan = plan(service, &view);
        if plan.state == State::NotChosen && plan.write.is_none() {
            self.forget(&key);
            return Ok(None);
        }
        self.report(&key, service, &plan);
        let Some(wanted) = &plan.write else {
            self.uncontested(&key, service);
            return Ok(Some(self.warning_interval));
        };
        if let Some(wait) = self.with(&key, service, |known| known.rewrites.wait(Instant::now())) {
            self.contested(&key, service);
            return Ok(Some(wait));
        }
        self.write(&key, service, wanted, &plan.state).await
    }

    /// What is known of the cluster; absent while its nodes are not known.
    async fn cluster(&self, candidate: &ServiceKey) -> Option<(Cluster, Arc<Nodes>)> {
        let mut nodes = self.nodes.clone();
        let nodes = nodes.wait_for(Option::is_some).await.ok()?.clone()?;
        let server = self.server.server(candidate).await;
        let data_plane = nodes.fitness.clone();
        Some((Cluster { gate: self.server.gate(), server, data_plane }, nodes))
    }

    async fn write(
        &self,
        key: &ServiceKey,
        service: &Service,
        wanted: &[LoadBalancerIngress],
        state: &State,
    ) -> Result<Again, Failure> {
        let patch = serde_json::from_value(patch(service, wanted)).map_err(|error| {
            Failure::new(FailureClass::Bug, format!("the patch of the status cannot be created: {error}"))
        })?;
        let answer = match self.writer.json_patch_status(key, patch).await {
            Ok(answer) => answer,
            // Gone, or another list by now: what is there is looked at when the watch brings it.
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) if error.is_invalid() || error.is_conflict() => return Ok(Some(STALE_CACHE_DELAY)),
            Err(error) => return Err(failure(&error)),
        };
        self.with(key, service, |known| known.rewrites.count(Instant::now()));
        if let State::Decided(_, decided) = state {
            self.advertise_metrics.wrote_status((decided.mode.as_str(), decided.reason.as_str()));
        }
        let (sent, answered) = (entries(&with_list(service, wanted)), entries(&answer));
        let learned = self.server.answered(&sent, &answered);
        if !learned && sent != answered {
            tracing::warn!(
                service = %key,
                "the API server stored ingress entries that differ from those that were sent: an \
                 admission plugin might change them"
            );
        }
        tracing::info!(service = %key, entries = wanted.len(), "status written");
        Ok(None)
    }

    /// Reports to log, metrics and user how it stands, where that is news.
    fn report(&self, key: &ServiceKey, service: &Service, plan: &Plan) {
        let (decided, refused) = match &plan.state {
            State::Decided(_, decided) => (Some(decided), None),
            State::Refused(_, refusal) => (None, Some(refusal.as_str())),
            _ => (None, None),
        };
        let found = Mode::of(&entries(service));
        let (news, before, mut notices) = self.with(key, service, |known| {
            known.warn_again_after(self.warning_interval);
            let news = decided.map(|decided| known.announced.take_in(decided, found));
            let earlier = std::mem::replace(&mut known.reported, plan.notices.clone());
            let fresh: Vec<Notice> =
                plan.notices.iter().filter(|notice| !earlier.contains(notice)).cloned().collect();
            (news, std::mem::replace(&mut known.refused, refused), fresh)
        });
        self.metrics.refusal_changed(before, refused);
        if let (Some(News { changed, notices: announced }), Some(decided)) = (news, decided) {
            if let Some((before, now)) = changed {
                self.advertise_metrics.publication_changed(before, Some(now));
                tracing::info!(service = %key, mode = now.0, reason = now.1, because = %decided.reason, "publication decided");
            }
            notices.extend(announced);
        }
        for notice in notices {
            self.record_event(key, service, notice);
        }
    }

    fn contested(&self, key: &ServiceKey, service: &Service) {
        let (before, is_reported) = self.with(key, service, |known| {
            (
                std::mem::replace(&mut known.contested, true),
                std::mem::replace(&mut known.contest_reported, true),
            )
        });
        self.metrics.contest_changed(before, true);
        if !is_reported {
            tracing::warn!(service = %key, "another controller keeps overwriting the status; this controller stops writing the status for \
                                            a while");
            let message = format!(
                "another controller keeps overwriting the status without ipMode; after six corrections, this controller stops writing the \
                 status for up to {} minutes. metadata.managedFields names the other controller",
                WRITE_WINDOW.as_secs() / 60
            );
            self.record_event(key, service, Notice::warning("IPModeContested", message));
        }
    }

    /// The status is as it should be.
    fn uncontested(&self, key: &ServiceKey, service: &Service) {
        let before = self.with(key, service, |known| {
            known.failures = 0;
            known.contest_reported = false;
            std::mem::take(&mut known.contested)
        });
        self.metrics.contest_changed(before, false);
    }

    /// Counts a failed reconciliation, and answers the delay before the next.
    pub(super) fn failed(&self, service: &Service, failure: &Failure) -> Duration {
        let key = key(service);
        self.metrics.failed(failure.class);
        tracing::warn!(service = %key, class = %failure.class, error = %failure, "the status could not be written");
        let attempt = self.with(&key, service, |known| {
            known.failures = known.failures.saturating_add(1);
            known.failures - 1
        });
        failure.delay(attempt)
    }

    /// Forgets a Service that is gone or means nothing any more.
    pub(super) fn forget(&self, key: &ServiceKey) {
        if let Some(known) = lock(&self.memory).remove(key) {
            self.advertise_metrics.publication_changed(known.announced.published(), None);
            self.metrics.refusal_changed(known.refused, None);
            self.metrics.contest_changed(known.contested, false);
        }
    }

    /// Reads or changes what is remembered of a Service.
    fn with<R>(&self, key: &ServiceKey, service: &Service, change: impl FnOnce(&mut Remembered) -> R) -> R {
        let mut services = lock(&self.memory);
        let known = services.entry(key.clone()).or_default();
        if known.uid != service.metadata.uid {
            *known = Remembered { uid: service.metadata.uid.clone(), ..Remembered::default() };
        }
        change(known)
    }

    fn record_event(&self, key: &ServiceKey, service: &Service, notice: Notice) {
        if notice.severity == Severity::Warning {
            self.with(key, service, |known| known.warned = Some(Instant::now()));
        }
        self.events.record(&service.object_ref(&()), PROGRAM, notice);
    }
}

fn failure(error: &CallError) -> Failure {
    error.to_failure("failed to update the status of the service")
}

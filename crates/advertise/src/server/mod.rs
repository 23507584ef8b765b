//! Whether the API server keeps `ipMode`: probed when it matters, remembered, and probed again when it may have changed.
//!
//! Only a new answer replaces the verdict; the server is probed again
//! - when the answer to a real write contradicts the verdict,
//! - when `/version` changes, which is read every minute and whenever a watch is interrupted,
//! - every ten minutes, because a changed feature gate shows nowhere else,
//! - sooner after a failed probe.
//!
//! A cluster that is being upgraded may have two API servers behind one address that differ in this. After any answer that
//! shows a dropped mode, to a write or to a probe, the server counts as dropping modes for a time that grows fourfold with
//! each such contradiction, so that the status does not flap with every probe.

mod probe;
#[cfg(test)]
mod tests;

use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::api::core::v1::LoadBalancerIngress;
use kube::Client;
use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_core::lock::lock;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_runtime::call::call;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use crate::cluster::ServerSupport;
use crate::metrics::AdvertiseMetrics;
use crate::writer::StatusWriter;
use probe::{Answer, CALL_TIMEOUT, ask, evidence};

/// Maximum of Services tried for one probe.
const MAX_CANDIDATES: usize = 3;
/// Delays after a failed probe.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(15), Duration::from_secs(300));
/// How long a server counts as dropping modes after an answer showed it.
const HOLD: Backoff =
    Backoff { first: Duration::from_secs(30), factor: 4, longest: Duration::from_secs(600) };
/// Interruptions of watches within this time count as one.
const DEBOUNCE_DELAY: Duration = Duration::from_secs(1);

/// Intervals of the checks for changes of the API server.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// Time between two probes that are expected to show the same.
    pub probe: Duration,
    /// Time between two reads of `/version`.
    pub version: Duration,
}

/// Detects whether the API server keeps `ipMode`.
pub struct ServerDetection {
    gate: Option<bool>,
    client: Client,
    writer: StatusWriter,
    intervals: Intervals,
    state: Mutex<ServerState>,
    /// Held during a probe, so that all other callers wait for the same answer.
    asking: tokio::sync::Mutex<()>,
    /// Notified when something may have changed.
    suspicion: Notify,
    verdict: watch::Sender<ServerSupport>,
    metrics: AdvertiseMetrics,
}

impl ServerDetection {
    /// Starts without a verdict. `gate` is the operator's setting, if there is one.
    pub fn new(
        client: Client,
        writer: StatusWriter,
        gate: Option<bool>,
        intervals: Intervals,
        metrics: AdvertiseMetrics,
    ) -> Self {
        Self {
            gate,
            client,
            writer,
            intervals,
            state: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            suspicion: Notify::new(),
            verdict: watch::Sender::new(ServerSupport::Unknown),
            metrics,
        }
    }

    /// Returns the operator's setting.
    pub fn gate(&self) -> Option<bool> {
        self.gate
    }

    /// Returns a receiver of the verdict.
    pub fn verdicts(&self) -> watch::Receiver<ServerSupport> {
        self.verdict.subscribe()
    }

    /// Returns the present verdict without a probe.
    pub fn known(&self) -> ServerSupport {
        *self.verdict.borrow()
    }

    /// Returns the verdict. If there is none yet, the server is probed with `candidate`, a Service of type
    /// LoadBalancer; several callers wait for one probe, and no caller waits again soon after a failed probe.
    pub async fn server(&self, candidate: &ServiceKey) -> ServerSupport {
        if !self.must_ask() {
            return self.known();
        }
        let _turn = self.asking.lock().await;
        if self.must_ask() {
            self.ask_with(std::slice::from_ref(candidate)).await;
            if self.known() == ServerSupport::Unknown {
                // The probe failed: plan the next one anew.
                self.suspicion.notify_one();
            }
        }
        self.known()
    }

    fn must_ask(&self) -> bool {
        self.gate != Some(false)
            && self.known() == ServerSupport::Unknown
            && lock(&self.state).silent_until.is_none_or(|until| until <= Instant::now())
    }

    /// Learns from the answer to a real status write; returns whether the verdict changed.
    pub fn answered(&self, sent: &[LoadBalancerIngress], answered: &[LoadBalancerIngress]) -> bool {
        let learned = evidence(sent, answered)
            .is_some_and(|support| self.learn(support, "the answer to a status write"));
        if learned {
            self.suspicion.notify_one();
        }
        learned
    }

    /// Takes in an answer; returns whether the verdict changed.
    fn learn(&self, support: ServerSupport, source: &'static str) -> bool {
        // Locked until the conclusion: of two concurrent answers, the doubtful one must not be the last.
        let mut state = lock(&self.state);
        match support {
            ServerSupport::Keeps if state.held() => return false,
            ServerSupport::Drops => state.hold(self.known() == ServerSupport::Keeps),
            ServerSupport::Keeps | ServerSupport::Unknown => {}
        }
        self.conclude(support, source)
    }

    /// Reports a broken connection to the API server: another server, or another version, may answer afterwards.
    pub fn suspect(&self) {
        self.suspicion.notify_one();
    }

    /// Watches for changes for ever. `candidates` names Services of type LoadBalancer for probes.
    pub async fn follow(&self, candidates: impl Fn() -> Vec<ServiceKey>) {
        if self.gate == Some(false) {
            // Nothing depends on the answer.
            return std::future::pending().await;
        }
        let mut next_probe = Instant::now() + self.intervals.probe;
        let mut next_version = Instant::now();
        loop {
            tokio::select! {
                () = sleep_until(next_probe) => {
                    let _turn = self.asking.lock().await;
                    self.ask_with(&candidates()).await;
                    next_probe = self.not_before(Instant::now() + self.intervals.probe);
                }
                () = sleep_until(next_version) => {
                    next_version = Instant::now() + self.intervals.version;
                    if self.version_changed().await {
                        next_probe = self.not_before(Instant::now());
                    }
                }
                () = self.suspicion.notified() => {
                    let soon = Instant::now() + DEBOUNCE_DELAY;
                    next_version = next_version.min(soon);
                    next_probe = next_probe.min(self.not_before(soon));
                }
            }
        }
    }

    /// Returns the time of the next probe: `planned`, unless a failed probe or a contradiction set another time; never while
    /// the answer would not be believed.
    fn not_before(&self, planned: Instant) -> Instant {
        let state = lock(&self.state);
        let now = Instant::now();
        let set = [state.silent_until, state.ask_again].into_iter().flatten().filter(|until| *until > now);
        let time = set.max().unwrap_or(planned);
        state.held_until.filter(|until| *until > now).map_or(time, |until| until.max(time))
    }

    async fn ask_with(&self, candidates: &[ServiceKey]) {
        for candidate in candidates.iter().take(MAX_CANDIDATES) {
            match ask(&self.writer, candidate).await {
                Answer::Shows(support) => {
                    self.concluded(support);
                    return;
                }
                Answer::OtherService => {}
                Answer::Failed(error) => {
                    let mut state = lock(&self.state);
                    let delay = RETRY.delay(state.failures);
                    state.failures = state.failures.saturating_add(1);
                    state.silent_until = Some(Instant::now() + delay);
                    drop(state);
                    tracing::warn!(
                        service = %candidate,
                        error = error.message(),
                        retry_seconds = delay.as_secs(),
                        "could not determine whether the API server stores ipMode (dry-run patch of services/status); \
                         --feature-gates=LoadBalancerIPMode=true|false overrides the detection"
                    );
                    return;
                }
            }
        }
    }

    fn concluded(&self, support: ServerSupport) {
        let mut state = lock(&self.state);
        state.failures = 0;
        state.silent_until = None;
        drop(state);
        self.learn(support, "a dry-run status write");
    }

    fn conclude(&self, support: ServerSupport, source: &'static str) -> bool {
        let changed = self.verdict.send_if_modified(|known| {
            let changed = *known != support;
            *known = support;
            changed
        });
        if changed {
            self.metrics.server(support);
            tracing::info!(server = ?support, source, "determined whether the API server stores ipMode");
        }
        changed
    }

    async fn version_changed(&self) -> bool {
        let version = match call(CALL_TIMEOUT, self.client.apiserver_version()).await {
            Ok(info) => info.git_version,
            Err(error) => {
                tracing::debug!(error = error.message(), "the version of the API server could not be read");
                return false;
            }
        };
        let mut state = lock(&self.state);
        let changed = state.version.as_ref().is_some_and(|known| *known != version);
        if changed {
            tracing::info!(version, "the version of the API server has changed");
        }
        state.version = Some(version);
        changed
    }
}

/// The state that follows from the answers so far.
#[derive(Debug, Default)]
struct ServerState {
    /// `gitVersion` of the server.
    version: Option<String>,
    /// Failed probes in a row.
    failures: u32,
    /// After a failed probe: no Service waits for another probe until then.
    silent_until: Option<Instant>,
    /// Answers in a row that showed modes dropped by a server that was known to keep them.
    contradictions: u32,
    /// After an answer that showed a dropped mode: no answer that modes are kept is believed until then. The value stays
    /// after that time.
    held_until: Option<Instant>,
    /// When to probe again after a contradiction.
    ask_again: Option<Instant>,
}

impl ServerState {
    /// Counts the server as dropping modes for a while: longer after each contradiction, unless the last hold is long over.
    fn hold(&mut self, contradicts: bool) {
        let now = Instant::now();
        if self.held_until.is_none_or(|until| now.saturating_duration_since(until) > HOLD.longest) {
            self.contradictions = 0;
        }
        if contradicts {
            self.contradictions = self.contradictions.saturating_add(1);
        }
        let until = now + HOLD.delay(self.contradictions.saturating_sub(1));
        self.held_until = self.held_until.max(Some(until));
        if self.contradictions > 0 {
            self.ask_again = self.held_until;
        }
    }

    fn held(&self) -> bool {
        self.held_until.is_some_and(|until| until > Instant::now())
    }
}

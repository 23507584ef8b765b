//! Leader election on a Lease, compatible with client-go's record, so that this and any other cloud-controller-manager
//! on the same Lease hand over to each other and never act at once.
//!
//! # Guarantees
//! - Work runs only while the Lease is held: the token handed to it is cancelled before the Lease can lapse for
//!   others, measured on this machine's monotonic clock from the start of the last renewal that succeeded. Work that
//!   does not end by then is dropped.
//! - A process that was stopped for a while has all its timers due at once, and work may run before the renewal. So
//!   each write checks the clock itself, with the fence ([`Elector::fence`]).
//! - Another holder's Lease is only taken when its record did not change for its whole duration as observed here;
//!   timestamps of other machines are never compared with this one's clock.
//! - Every write carries the resourceVersion that was read, so that two candidates cannot both win.
//! - On a requested stop the Lease is released after the work has ended, so that the next leader starts at once.
//!
//! The client must not retry by itself: an answer that comes after the renew deadline is worth nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use openstack_ccm_core::permit::Fence;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

mod record;
mod report;
mod tenure;

use record::{Observed, Standing};
use report::Report;
use tenure::Tenure;

pub use report::{ElectionMetrics, Heartbeat};

/// Reason of the Events about leadership.
const LEADER_ELECTION: &str = "LeaderElection";

/// Longest wait for the Event about the end of the leadership.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct ElectionOptions {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Identity of the candidate: unique for each process, `<hostname>_<uuid>` by convention.
    pub identity: String,
    /// How long others wait after the last change of the record before they take over.
    pub lease_duration: Duration,
    /// How long to try to renew before giving the leadership up; shorter than `lease_duration`.
    pub renew_deadline: Duration,
    /// Time between tries.
    pub retry_period: Duration,
    /// Annotations that the holder writes on the Lease.
    pub annotations: LeaseAnnotations,
    /// Component of the Events about leadership (`source.component`).
    pub component: &'static str,
}

/// Annotations that the holder writes on the Lease, computed at each renewal.
#[derive(Clone)]
pub struct LeaseAnnotations(Arc<dyn Fn() -> BTreeMap<String, String> + Send + Sync>);

impl LeaseAnnotations {
    pub fn new(current: impl Fn() -> BTreeMap<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(current))
    }

    fn current(&self) -> BTreeMap<String, String> {
        self.0()
    }
}

impl Default for LeaseAnnotations {
    fn default() -> Self {
        Self::new(BTreeMap::new)
    }
}

impl fmt::Debug for LeaseAnnotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.current().fmt(f)
    }
}

/// Why [`Elector::lead`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A stop was requested; the Lease is released if it was held.
    Stopped,
    /// The Lease could not be renewed in time, or another candidate holds it.
    Lost,
    /// The work ended by itself; the Lease is released.
    WorkEnded,
}

/// A candidate for the leadership.
pub struct Elector {
    leases: Api<Lease>,
    options: Arc<ElectionOptions>,
    observed: Option<Observed>,
    /// When the last request that took or renewed the Lease was sent. The server may have stored it at once and answered
    /// late, so other candidates may count from this moment.
    held_since: Instant,
    tenure: Tenure,
    /// Whether a request that may have taken the Lease was sent.
    claimed: bool,
    report: Report,
}

/// Result of one try to take or renew the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// This process holds the Lease, and its record is fresh.
    Held,
    /// Another candidate has it.
    HeldByOther,
    /// Another client wrote at the same time, so that our write was refused.
    Contended,
}

/// How a held Lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// The Lease could not be renewed in time; others have to wait until it expires.
    NotRenewed,
    /// Another candidate has it already.
    Taken,
}

impl Elector {
    /// Creates a candidate; `client` must not retry requests by itself.
    pub fn new(client: Client, options: ElectionOptions) -> Self {
        let options = Arc::new(options);
        let report = Report::new(client.clone(), Arc::clone(&options));
        let leases = Api::namespaced(client, &options.namespace);
        let (held_since, tenure) = (Instant::now(), Tenure::default());
        Self { leases, options, observed: None, held_since, tenure, claimed: false, report }
    }

    /// Returns the candidate, counted in these metrics.
    #[must_use]
    pub fn counted_in(mut self, metrics: ElectionMetrics) -> Self {
        self.report.metrics = metrics;
        self
    }

    /// Returns the heartbeat: a process that leads and does not renew is stuck.
    pub fn heartbeat(&self) -> Heartbeat {
        self.report.heartbeat.clone()
    }

    /// Returns the fence that each write of the work has to ask.
    pub fn fence(&self) -> Fence {
        self.tenure.fence(self.options.renew_deadline, self.options.lease_duration)
    }

    /// Waits for the Lease, then runs `work` while it is held. The token that `work` gets is cancelled when the
    /// leadership ends or `stop` is cancelled; `work` is then given `grace` to end before it is dropped, and less if
    /// another candidate may lead sooner.
    pub async fn lead<Work>(
        mut self,
        stop: CancellationToken,
        grace: Duration,
        work: impl FnOnce(CancellationToken) -> Work,
    ) -> Ended
    where
        Work: Future<Output = ()>,
    {
        self.report.waiting();
        tokio::select! {
            () = stop.cancelled() => {
                // A claim without an answer may have been stored all the same.
                if self.claimed {
                    self.release().await;
                }
                return Ended::Stopped;
            }
            () = self.acquire() => {}
        }
        tracing::info!(lease = %self.options.name, identity = %self.options.identity, "became leader");
        self.report.leads();
        let ended = self.lead_while_held(stop, grace, work).await;
        self.report.ended();
        // No candidate waits for this: the lease is free already. After a loss there is no time for an Event.
        if ended != Ended::Lost {
            self.report.say_ended(LAST_EVENT_TIMEOUT).await;
        }
        ended
    }

    async fn lead_while_held<Work>(
        &mut self,
        stop: CancellationToken,
        grace: Duration,
        work: impl FnOnce(CancellationToken) -> Work,
    ) -> Ended
    where
        Work: Future<Output = ()>,
    {
        let leading = CancellationToken::new();
        let work = work(leading.clone());
        tokio::pin!(work);
        tokio::select! {
            () = &mut work => {
                self.release().await;
                Ended::WorkEnded
            }
            loss = self.renew_until_lost() => {
                leading.cancel();
                self.lost(loss, work, grace).await;
                Ended::Lost
            }
            () = stop.cancelled() => {
                leading.cancel();
                // The lease is kept while the work ends, so that no other candidate starts before.
                tokio::select! {
                    _ = timeout(grace, work) => self.release().await,
                    _ = self.renew_until_lost() => {}
                }
                Ended::Stopped
            }
        }
    }

    /// Gives the work the time that is left until another candidate may lead.
    async fn lost(&self, loss: Loss, work: impl Future<Output = ()>, grace: Duration) {
        let left = match loss {
            Loss::NotRenewed => {
                tracing::error!(lease = %self.options.name, "leadership lost: the lease was not renewed in time");
                (self.held_since + self.options.lease_duration).saturating_duration_since(Instant::now())
            }
            Loss::Taken => {
                tracing::error!(lease = %self.options.name, "leadership lost: another instance has the lease");
                self.tenure.end();
                Duration::ZERO
            }
        };
        if timeout(left.min(grace), work).await.is_err() {
            tracing::warn!(lease = %self.options.name, "reconciliations that did not finish in time are cancelled");
        }
    }

    /// Tries until this process holds the Lease.
    async fn acquire(&mut self) {
        loop {
            let started = Instant::now();
            match timeout(self.options.renew_deadline, self.attempt()).await {
                Ok(Ok(Attempt::Held)) => return self.held(started),
                Ok(Ok(Attempt::HeldByOther | Attempt::Contended)) => {
                    tracing::debug!(lease = %self.options.name, "another instance leads");
                }
                Ok(Err(error)) => {
                    tracing::warn!(lease = %self.options.name, %error, "the lease could not be read or written");
                }
                Err(_) => tracing::warn!(lease = %self.options.name, "the API server did not answer in time"),
            }
            // At most the retry period: a released lease waits that long for its next holder. The random part keeps apart
            // candidates that were started together.
            sleep(self.options.retry_period.mul_f64(0.5 + 0.5 * fastrand::f64())).await;
        }
    }

    /// Returns when the Lease was not renewed for the renew deadline, or has another holder.
    async fn renew_until_lost(&mut self) -> Loss {
        loop {
            let deadline = self.held_since + self.options.renew_deadline;
            sleep_until(deadline.min(Instant::now() + self.options.retry_period)).await;
            let started = Instant::now();
            if started >= deadline {
                return Loss::NotRenewed;
            }
            // One request that hangs must not use up the time for all tries.
            let patience = (self.options.renew_deadline / 2).max(Duration::from_secs(1));
            match timeout_at(deadline.min(started + patience), self.attempt()).await {
                Ok(Ok(Attempt::Held)) => self.held(started),
                Ok(Ok(Attempt::HeldByOther)) => return Loss::Taken,
                Ok(Ok(Attempt::Contended)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(lease = %self.options.name, %error, "the lease could not be renewed, retrying");
                }
                Err(_) => {
                    tracing::warn!(lease = %self.options.name, "the API server did not answer in time, retrying");
                }
            }
        }
    }

    /// Records that a request begun at `since` took or renewed the Lease.
    fn held(&mut self, since: Instant) {
        self.held_since = since;
        self.tenure.renew(since);
        self.report.renewed();
    }

    /// Tries once to take or renew the Lease.
    async fn attempt(&mut self) -> kube::Result<Attempt> {
        self.report.tried();
        let name = self.options.name.clone();
        let Some(lease) = self.leases.get_opt(&name).await? else {
            let lease = record::fresh(&self.options);
            self.claimed = true;
            return match self.leases.create(&PostParams::default(), &lease).await {
                Ok(created) => Ok(self.observe(&created)),
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Attempt::Contended),
                Err(error) => Err(error),
            };
        };
        self.observe(&lease);
        let wanted = match record::standing(&lease, self.observed.as_ref(), &self.options, Instant::now()) {
            Standing::HeldByOther => return Ok(Attempt::HeldByOther),
            Standing::Ours => record::renewed(lease, &self.options),
            Standing::Free => record::taken(lease, &self.options),
        };
        self.claimed = true;
        match self.leases.replace(&name, &PostParams::default(), &wanted).await {
            Ok(stored) => Ok(self.observe(&stored)),
            // The next try reads what the other client wrote.
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(Attempt::Contended),
            Err(error) => Err(error),
        }
    }

    /// Remembers when the record changed last, and returns whether this process holds it.
    fn observe(&mut self, lease: &Lease) -> Attempt {
        let record = record::of(lease);
        let ours = record.holder.as_deref() == Some(self.options.identity.as_str());
        if self.observed.as_ref().is_none_or(|observed| observed.record != record) {
            self.observed = Some(Observed { record, at: Instant::now() });
        }
        if ours { Attempt::Held } else { Attempt::HeldByOther }
    }

    /// Releases the Lease, so that no candidate has to wait until it expires.
    async fn release(&self) {
        self.tenure.end();
        let name = &self.options.name;
        match timeout(self.options.retry_period.max(Duration::from_secs(1)), self.try_release()).await {
            Ok(Ok(())) => tracing::info!(lease = %name, "lease released"),
            Ok(Err(error)) => {
                tracing::warn!(lease = %name, %error, "the lease could not be released and will expire");
            }
            Err(_) => {
                tracing::warn!(lease = %name, "the lease could not be released in time and will expire");
            }
        }
    }

    async fn try_release(&self) -> kube::Result<()> {
        loop {
            let Some(lease) = self.leases.get_opt(&self.options.name).await? else { return Ok(()) };
            if record::of(&lease).holder.as_deref() != Some(self.options.identity.as_str()) {
                return Ok(());
            }
            let released = record::released(lease);
            match self.leases.replace(&self.options.name, &PostParams::default(), &released).await {
                // A renewal whose answer was not waited for may come in between.
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                answer => return answer.map(drop),
            }
        }
    }
}

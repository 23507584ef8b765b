//! Leader election on a Lease, compatible with client-go's record, so that any cloud-controller-manager that uses the
//! same Lease and this one hand over to each other and never act at once.
//!
//! # Guarantees
//! - Work runs only while the Lease is held: the token handed to it is cancelled before the Lease can lapse for
//!   others, measured on this machine's monotonic clock from the start of the last renewal that succeeded.
//! - Another holder's Lease is only taken when its record did not change for its whole duration as observed here;
//!   timestamps of other machines are never compared with this one's clock.
//! - Every write carries the resourceVersion that was read, so that two candidates cannot both win.
//! - On a wanted stop the Lease is released after the work has ended, so that the next leader starts at once.
//!
//! The client must not retry by itself: an answer that comes after the renew deadline is worth nothing.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

mod record;

use record::{Observed, Standing};

/// How to elect.
#[derive(Clone, Debug)]
pub struct ElectionOptions {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are: unique for each process, `<hostname>_<uuid>` by convention.
    pub identity: String,
    /// How long others wait after the last change of the record before they take over.
    pub lease_duration: Duration,
    /// How long to try to renew before giving the leadership up; shorter than `lease_duration`.
    pub renew_deadline: Duration,
    /// Time between tries.
    pub retry_period: Duration,
}

/// Why [`Elector::lead`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The stop was asked for; the Lease is released if it was held.
    Stopped,
    /// The Lease could not be renewed in time, or someone else holds it.
    Lost,
    /// The work ended by itself; the Lease is released.
    WorkEnded,
}

/// A candidate for the leadership.
pub struct Elector {
    leases: Api<Lease>,
    options: ElectionOptions,
    observed: Option<Observed>,
}

impl Elector {
    /// A candidate; `client` must not retry requests by itself.
    pub fn new(client: Client, options: ElectionOptions) -> Self {
        Self { leases: Api::namespaced(client, &options.namespace), options, observed: None }
    }

    /// Waits for the Lease, then runs `work` while it is held. The token that `work` gets is cancelled when the
    /// leadership ends or `stop` is cancelled; `work` is then given `grace` to end before it is dropped.
    pub async fn lead<Work>(
        mut self,
        stop: CancellationToken,
        grace: Duration,
        work: impl FnOnce(CancellationToken) -> Work,
    ) -> Ended
    where
        Work: Future<Output = ()>,
    {
        tokio::select! {
            () = stop.cancelled() => return Ended::Stopped,
            () = self.acquire() => {}
        }
        tracing::info!(lease = %self.options.name, identity = %self.options.identity, "became leader");
        let leading = CancellationToken::new();
        let work = work(leading.clone());
        tokio::pin!(work);
        let ended = tokio::select! {
            () = &mut work => Ended::WorkEnded,
            () = self.renew_until_lost() => Ended::Lost,
            () = stop.cancelled() => Ended::Stopped,
        };
        leading.cancel();
        match ended {
            Ended::Lost => {
                tracing::error!(lease = %self.options.name, "leadership lost: the lease was not renewed in time");
                // Others may lead from lease_duration on; what is left until then is all that the work gets.
                let left = self.options.lease_duration.saturating_sub(self.options.renew_deadline).min(grace);
                let _ = timeout(left, work).await;
            }
            Ended::Stopped => {
                let finish = timeout(grace, work);
                tokio::pin!(finish);
                // The lease is kept while the work ends, so that nobody else starts before.
                tokio::select! {
                    _ = &mut finish => self.release().await,
                    () = self.renew_until_lost() => {}
                }
            }
            Ended::WorkEnded => self.release().await,
        }
        ended
    }

    /// Tries until the Lease is ours.
    async fn acquire(&mut self) {
        loop {
            match timeout(self.options.renew_deadline, self.try_hold()).await {
                Ok(Ok(true)) => return,
                Ok(Ok(false)) => tracing::debug!(lease = %self.options.name, "another instance leads"),
                Ok(Err(error)) => {
                    tracing::warn!(lease = %self.options.name, %error, "the lease cannot be read or written");
                }
                Err(_) => tracing::warn!(lease = %self.options.name, "the API server did not answer in time"),
            }
            sleep(self.options.retry_period.mul_f64(1.0 + 1.2 * fastrand::f64())).await;
        }
    }

    /// Returns when the Lease was not renewed for the renew deadline, or is seen in other hands.
    async fn renew_until_lost(&mut self) {
        let mut deadline = Instant::now() + self.options.renew_deadline;
        loop {
            sleep(self.options.retry_period).await;
            let started = Instant::now();
            match timeout_at(deadline, self.try_hold()).await {
                // Counted from before the request: the server may have stored it at once and answered late.
                Ok(Ok(true)) => deadline = started + self.options.renew_deadline,
                Ok(Ok(false)) => return,
                Ok(Err(error)) => {
                    tracing::warn!(lease = %self.options.name, %error, "the lease was not renewed, trying again");
                }
                Err(_) => {}
            }
            if Instant::now() >= deadline {
                return;
            }
        }
    }

    /// One try to take or renew; true when the Lease is ours afterwards.
    async fn try_hold(&mut self) -> kube::Result<bool> {
        let (name, identity) = (self.options.name.clone(), self.options.identity.clone());
        let Some(lease) = self.leases.get_opt(&name).await? else {
            let lease = record::fresh(&self.options);
            return match self.leases.create(&kube::api::PostParams::default(), &lease).await {
                Ok(created) => Ok(self.observe(&created)),
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
                Err(error) => Err(error),
            };
        };
        self.observe(&lease);
        let standing = record::standing(&lease, self.observed.as_ref(), &identity, Instant::now());
        let wanted = match standing {
            Standing::HeldByOther => return Ok(false),
            Standing::Ours => record::renewed(lease, &self.options),
            Standing::Free => record::taken(lease, &self.options),
        };
        match self.leases.replace(&name, &kube::api::PostParams::default(), &wanted).await {
            Ok(stored) => Ok(self.observe(&stored)),
            // Somebody else wrote first; what they wrote is looked at in the next try.
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                Ok(standing == Standing::Ours && self.reread().await?)
            }
            Err(error) => Err(error),
        }
    }

    /// After a conflict on our own Lease: is it still ours?
    async fn reread(&mut self) -> kube::Result<bool> {
        let lease = self.leases.get(&self.options.name).await?;
        Ok(self.observe(&lease))
    }

    /// Remembers when the record changed last, and tells whether it names us.
    fn observe(&mut self, lease: &Lease) -> bool {
        let record = record::of(lease);
        let ours = record.holder.as_deref() == Some(self.options.identity.as_str());
        if self.observed.as_ref().is_none_or(|observed| observed.record != record) {
            self.observed = Some(Observed { record, at: Instant::now() });
        }
        ours
    }

    /// Gives the Lease back, so that nobody has to wait for it to lapse.
    async fn release(&mut self) {
        let (name, identity) = (self.options.name.clone(), self.options.identity.clone());
        let release = async {
            let lease = self.leases.get(&name).await?;
            if record::of(&lease).holder.as_deref() == Some(identity.as_str()) {
                self.leases
                    .replace(&name, &kube::api::PostParams::default(), &record::released(lease))
                    .await?;
            }
            Ok::<(), kube::Error>(())
        };
        match timeout(self.options.retry_period.max(Duration::from_secs(1)), release).await {
            Ok(Ok(())) => tracing::info!(lease = %name, "lease released"),
            Ok(Err(error)) => {
                tracing::warn!(lease = %name, %error, "the lease was not released and will lapse")
            }
            Err(_) => tracing::warn!(lease = %name, "the lease was not released in time and will lapse"),
        }
    }
}

//! One task that watches all load balancers that Octavia is working on.
//!
//! A reconciliation that meets a PENDING load balancer, or makes one PENDING, registers it and ends. Each round of the poller
//! is one list call for all of them in a project; a load balancer that is no longer PENDING, or gone, wakes the Services that wait
//! for it. What became of it is for their next reconciliation to see: nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openstack_ccm_core::provider::Wake;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::{LoadBalancer, LoadBalancerFilter, Octavia};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// How often the poller asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollInterval {
    /// Pause after something happened.
    pub shortest: Duration,
    /// Pause that it grows to, by a fifth each round, while nothing happens.
    pub longest: Duration,
    /// Pause that it grows to, doubling each round, while the list call fails.
    pub longest_after_errors: Duration,
}

impl Default for PollInterval {
    /// 1 s growing to 3 s; 30 s when Octavia does not answer. An amphora takes about a second for a change and some
    /// dozen for a creation: what is noticed late is a tenth of either at most.
    fn default() -> Self {
        Self {
            shortest: Duration::from_secs(1),
            longest: Duration::from_secs(3),
            longest_after_errors: Duration::from_secs(30),
        }
    }
}

/// For how long what a round saw stands for the present: until the reconciliation that it woke has begun.
const GOOD_FOR: Duration = Duration::from_secs(10);

/// Where reconciliations register what they wait for. Clones share the register.
#[derive(Clone, Debug, Default)]
pub(super) struct Watchlist {
    shared: Arc<Register>,
}

#[derive(Debug, Default)]
struct Register {
    pending: Mutex<BTreeMap<String, Pending>>,
    /// Load balancers as they were when Octavia had ended its work on them.
    seen: Mutex<BTreeMap<String, Seen>>,
    added: Notify,
}

#[derive(Debug)]
struct Seen {
    load_balancer: LoadBalancer,
    at: Instant,
}

/// One load balancer that somebody waits for.
#[derive(Clone, Debug)]
struct Pending {
    services: BTreeSet<ServiceKey>,
    project_id: Option<String>,
    /// When it was last registered: an answer to a question asked before that tells nothing.
    since: Instant,
}

impl Watchlist {
    /// Has `service` woken when the load balancer is no longer PENDING.
    pub(super) fn watch(&self, load_balancer_id: &str, project_id: Option<&str>, service: &ServiceKey) {
        self.lock_seen().remove(load_balancer_id);
        let mut pending = self.lock();
        let entry = pending.entry(load_balancer_id.to_owned()).or_insert_with(|| Pending {
            services: BTreeSet::new(),
            project_id: None,
            since: Instant::now(),
        });
        entry.services.insert(service.clone());
        entry.project_id = project_id.map(str::to_owned).or_else(|| entry.project_id.take());
        entry.since = Instant::now();
        drop(pending);
        self.shared.added.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Pending>> {
        // The map is whole between any two statements that hold the lock.
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_seen(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody waits for the load balancer.
    pub(super) fn is_watched(&self, load_balancer_id: &str) -> bool {
        self.lock().contains_key(load_balancer_id)
    }

    /// The load balancer as it was a moment ago, when Octavia had ended its work on it. Told once.
    pub(super) fn take_seen(&self, load_balancer_id: &str) -> Option<LoadBalancer> {
        let seen = self.lock_seen().remove(load_balancer_id)?;
        (seen.at.elapsed() < GOOD_FOR).then_some(seen.load_balancer)
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The smallest lists that show everything watched: the one load balancer, or those of each project. Nothing less is
    /// asked for where the owner of one is not known: an administrator's list would be that of the whole cloud.
    fn filters(&self) -> Vec<LoadBalancerFilter> {
        let pending = self.lock();
        let by_id =
            |id: &String| LoadBalancerFilter { id: Some(id.clone()), ..LoadBalancerFilter::default() };
        if pending.len() == 1 {
            return pending.keys().map(by_id).collect();
        }
        let projects: BTreeSet<_> = pending.values().filter_map(|entry| entry.project_id.as_ref()).collect();
        let of_project = |id: &String| LoadBalancerFilter {
            project_id: Some(id.clone()),
            ..LoadBalancerFilter::default()
        };
        let without_owner = pending.iter().filter(|(_, entry)| entry.project_id.is_none());
        projects.into_iter().map(of_project).chain(without_owner.map(|(id, _)| by_id(id))).collect()
    }

    /// Takes out what the list shows as finished, and returns who waited for it. `asked` is when the question was
    /// sent.
    fn finished(&self, list: Vec<LoadBalancer>, asked: Instant) -> Vec<(String, BTreeSet<ServiceKey>)> {
        let still_pending: BTreeSet<&str> = list
            .iter()
            .filter(|load_balancer| load_balancer.provisioning_status.is_pending())
            .map(|load_balancer| load_balancer.id.as_str())
            .collect();
        let mut pending = self.lock();
        let finished: BTreeSet<String> = pending
            .iter()
            .filter(|(id, entry)| entry.since < asked && !still_pending.contains(id.as_str()))
            .map(|(id, _)| id.clone())
            .collect();
        let mut seen = self.lock_seen();
        seen.retain(|_, seen| seen.at.elapsed() < GOOD_FOR);
        for load_balancer in list.into_iter().filter(|one| finished.contains(&one.id)) {
            seen.insert(load_balancer.id.clone(), Seen { load_balancer, at: asked });
        }
        drop(seen);
        finished.into_iter().filter_map(|id| pending.remove(&id).map(|entry| (id, entry.services))).collect()
    }
}

/// The task. It costs nothing while nothing is PENDING.
pub struct Poller {
    octavia: Octavia,
    watchlist: Watchlist,
    wake: Arc<dyn Wake>,
    interval: PollInterval,
}

impl Poller {
    pub(super) fn new(
        octavia: Octavia,
        watchlist: Watchlist,
        wake: Arc<dyn Wake>,
        interval: PollInterval,
    ) -> Self {
        Self { octavia, watchlist, wake, interval }
    }

    /// Runs until `shutdown`. Failures of OpenStack slow it down and never end it.
    pub async fn run(self, shutdown: CancellationToken) {
        shutdown.run_until_cancelled(self.run_forever()).await;
    }

    async fn run_forever(&self) {
        let mut pause = self.interval.shortest;
        loop {
            while self.watchlist.is_empty() {
                self.watchlist.shared.added.notified().await;
                pause = self.interval.shortest;
            }
            self.rest(&mut pause).await;
            pause = self.round(pause).await;
        }
    }

    /// Waits for the next round, which a new registration brings nearer.
    async fn rest(&self, pause: &mut Duration) {
        let end = Instant::now() + *pause;
        tokio::select! {
            () = tokio::time::sleep_until(end) => {}
            () = self.watchlist.shared.added.notified() => {
                // Not above: after errors the pause may be long, and a new load balancer does not make Octavia well.
                if *pause <= self.interval.longest {
                    *pause = self.interval.shortest;
                }
                tokio::time::sleep_until(end.min(Instant::now() + *pause)).await;
            }
        }
    }

    async fn lists(&self) -> Result<Vec<LoadBalancer>, ApiError> {
        let mut all = Vec::new();
        for filter in self.watchlist.filters() {
            all.extend(self.octavia.list_load_balancers(&filter).await?);
        }
        Ok(all)
    }

    /// One question for all, or one for each project, and the pause until the next.
    async fn round(&self, pause: Duration) -> Duration {
        let asked = Instant::now();
        match self.lists().await {
            Ok(list) => {
                let finished = self.watchlist.finished(list, asked);
                if finished.is_empty() {
                    return (pause + pause / 5).min(self.interval.longest);
                }
                for (load_balancer, services) in finished {
                    debug!(%load_balancer, "load balancer is no longer pending");
                    services.iter().for_each(|service| self.wake.wake(service));
                }
                self.interval.shortest
            }
            Err(error) => {
                let next = error.retry_after().unwrap_or_default().max(pause * 2);
                let next = next.min(self.interval.longest_after_errors);
                warn!(%error, retry_seconds = next.as_secs(), "could not list the load balancers that are pending");
                next
            }
        }
    }
}

#[cfg(test)]
mod tests;

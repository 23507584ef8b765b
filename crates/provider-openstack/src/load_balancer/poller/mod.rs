//! One task that watches all load balancers that Octavia is working on.
//!
//! A reconciliation that meets a PENDING load balancer, or makes one PENDING, registers it and ends. Each round of the poller
//! is one list call for all of them in a project; a load balancer that is no longer PENDING, or gone, wakes the Services that wait
//! for it. What became of it is for their next reconciliation to see: nothing is decided here.
//!
//! | module | holds |
//! | --- | --- |
//! | `watchlist` | what is waited for, and what became of it |
//! | `pace` | when to look, by what Octavia took before |

mod pace;
mod watchlist;

use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_core::provider::Wake;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::{LoadBalancer, Octavia};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub(super) use pace::Work;
use watchlist::Question;
pub(super) use watchlist::{Awaited, End, Watchlist};

/// Pause that it grows to, doubling each round, while the list call fails.
const LONGEST_AFTER_ERRORS: Duration = Duration::from_secs(30);

/// The task. It costs nothing while nothing is PENDING.
pub struct Poller {
    octavia: Octavia,
    watchlist: Watchlist,
    wake: Arc<dyn Wake>,
}

impl Poller {
    pub(super) fn new(octavia: Octavia, watchlist: Watchlist, wake: Arc<dyn Wake>) -> Self {
        Self { octavia, watchlist, wake }
    }

    /// Runs until `shutdown`. Failures of OpenStack slow it down and never end it.
    pub async fn run(self, shutdown: CancellationToken) {
        shutdown.run_until_cancelled(self.run_forever()).await;
    }

    async fn run_forever(&self) {
        let (mut last, mut after_error) = (None, None);
        loop {
            self.rest(last, after_error).await;
            let asked = Instant::now();
            last = Some(asked);
            after_error = self.round(asked, after_error).await;
        }
    }

    /// Waits until a look is due. A new load balancer may bring that nearer, and does not make an Octavia well that fails.
    async fn rest(&self, last: Option<Instant>, after_error: Option<Duration>) {
        loop {
            let Some((next, pause)) = self.watchlist.next_look() else {
                self.watchlist.added().await;
                continue;
            };
            let earliest = last.map(|last| last + after_error.unwrap_or(pause));
            let due = match after_error {
                Some(_) => earliest.unwrap_or(next),
                None => earliest.map_or(next, |earliest| earliest.max(next)),
            };
            tokio::select! {
                () = tokio::time::sleep_until(due) => return,
                () = self.watchlist.added() => {}
            }
        }
    }

    async fn lists(&self, question: &Question) -> Result<Vec<LoadBalancer>, ApiError> {
        let mut all = Vec::new();
        for filter in &question.filters {
            all.extend(self.octavia.list_load_balancers(filter).await?);
        }
        Ok(all)
    }

    /// One question for all, or one for each project. Answers how long to rest where that failed.
    async fn round(&self, asked: Instant, after_error: Option<Duration>) -> Option<Duration> {
        let question = self.watchlist.question();
        match self.lists(&question).await {
            Ok(list) => {
                for (load_balancer, services) in
                    self.watchlist.finished(&list, question.shows_namesakes, asked)
                {
                    debug!(%load_balancer, "load balancer is no longer pending");
                    services.iter().for_each(|service| self.wake.wake(service));
                }
                None
            }
            Err(error) => {
                let pause = after_error.unwrap_or(pace::SHORTEST);
                let next = error.retry_after().unwrap_or_default().max(pause * 2);
                let next = next.min(LONGEST_AFTER_ERRORS);
                warn!(%error, retry_seconds = next.as_secs(), "could not list the load balancers that are pending");
                Some(next)
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! One task that watches all load balancers that Octavia is working on.
//!
//! A reconciliation that meets a PENDING load balancer, or makes one PENDING, registers it and ends. Each round of the poller
//! is one list call for all of them in a project, or where few of very many are watched, one for each of these. A load balancer that is no
//! longer PENDING, or gone, wakes the Services that wait for it. Who only waits to send the next step of a chain of changes is woken when Octavia
//! has probably finished: the answer to that step tells whether it has. What became of it is for their next reconciliation to see: nothing is decided here.
//!
//! | module | holds |
//! | --- | --- |
//! | `watchlist` | what is waited for, and what became of it |
//! | `pending` | one of them, and when something is due for it |
//! | `query` | what a poll asks for |
//! | `poller_list` | what is kept of the lists |
//! | `operation` | what Octavia can be at work on |
//! | `pace` | how long Octavia takes |
//! | `schedule` | polling times |

mod operation;
mod pace;
mod pending;
mod poller_list;
mod query;
mod schedule;
mod watchlist;

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::Octavia;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub(super) use operation::{Afterwards, Operation};
pub(super) use poller_list::LastChanges;
use poller_list::PollerList;
use query::PollQuery;
use watchlist::Finished;
pub(super) use watchlist::{Awaited, End, Watchlist};

/// How many lists of single load balancers are asked for at a time.
const AT_ONCE: usize = 8;
/// Pauses while the list call fails.
const PAUSES_AFTER_ERRORS: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_secs(30));

/// Hears when Octavia has ended its work on the load balancer of a Service, and wakes the Service.
pub(super) trait EndObserver: Send + Sync {
    /// It has ended; `is_active` says whether the load balancer is ACTIVE now, not in ERROR or gone.
    fn ended(&self, service: &ServiceKey, is_active: bool);
}

/// The task. It costs nothing while nothing is PENDING.
pub struct Poller {
    octavia: Octavia,
    watchlist: Watchlist,
    observer: Arc<dyn EndObserver>,
}

impl Poller {
    pub(super) fn new(octavia: Octavia, watchlist: Watchlist, observer: Arc<dyn EndObserver>) -> Self {
        Self { octavia, watchlist, observer }
    }

    /// Runs until `shutdown`. Failures of OpenStack slow it down and never end it.
    pub async fn run(self, shutdown: CancellationToken) {
        self.watchlist.polls_begin();
        shutdown.run_until_cancelled(self.run_forever()).await;
    }

    async fn run_forever(&self) {
        let (mut last, mut after_error, mut failures) = (None, None, 0);
        loop {
            self.rest(last, after_error).await;
            let asked = Instant::now();
            if after_error.is_none() && self.wake(self.watchlist.presume_ended(asked).as_slice()) {
                continue;
            }
            last = Some(asked);
            after_error = self.round(asked, failures).await;
            failures = if after_error.is_some() { failures + 1 } else { 0 };
        }
    }

    /// Waits until a poll is due. A new entry may shorten the pause, but not the back-off after errors.
    async fn rest(&self, last: Option<Instant>, after_error: Option<Duration>) {
        loop {
            let Some((next, pause)) = self.watchlist.next_poll() else {
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

    async fn lists(&self, query: PollQuery) -> Result<PollerList, ApiError> {
        let mut listed = query.listed;
        for filter in &query.of_projects {
            listed = self.octavia.list_load_balancers_into(filter, listed).await?;
        }
        let ask = async |filter| self.octavia.list_load_balancers(&filter).await;
        let mut single = stream::iter(query.single).map(ask).buffer_unordered(AT_ONCE);
        while let Some(found) = single.try_next().await? {
            listed.extend(found);
        }
        Ok(listed)
    }

    /// Wakes who waited for these. Answers whether there are any.
    fn wake(&self, finished: &[Finished]) -> bool {
        for Finished { id, is_active, services } in finished {
            debug!(load_balancer = %id, "load balancer is no longer pending, or not likely to be");
            services.iter().for_each(|service| self.observer.ended(service, *is_active));
        }
        !finished.is_empty()
    }

    /// One list for all, one for each project or one for each load balancer. Returns how long to rest where that failed, as it did so many times in a row
    /// before.
    async fn round(&self, asked: Instant, failures: u32) -> Option<Duration> {
        match self.lists(self.watchlist.query()).await {
            Ok(listed) => {
                self.wake(&self.watchlist.finished(listed, asked));
                None
            }
            Err(error) => {
                let asked_for = error.retry_after().unwrap_or_default();
                let next =
                    PAUSES_AFTER_ERRORS.delay(failures).max(asked_for).min(PAUSES_AFTER_ERRORS.longest);
                warn!(%error, retry_seconds = next.as_secs(), "could not list the load balancers that are pending");
                Some(next)
            }
        }
    }
}

#[cfg(test)]
mod tests;

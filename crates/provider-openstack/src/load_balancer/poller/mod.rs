//! One task that watches all load balancers that Octavia is working on.
//!
//! A reconciliation that meets a PENDING load balancer, or makes one PENDING, registers it and ends. Each round of the poller
//! is one list call for all of them in a project, or where few of very many are watched, one for each of these. A load balancer that is no
//! longer PENDING, or gone, wakes the Services that wait for it as soon as a list tells: one that is slow or fails takes nothing from the
//! others. Who only waits to send the next step of a chain of changes is woken when Octavia has probably finished: the answer to that step
//! tells whether it has. What became of it is for their next reconciliation to see: nothing is decided here.
//!
//! | module | holds |
//! | --- | --- |
//! | `watchlist` | what is waited for, and what became of it |
//! | `pending` | one of them, and when something is due for it |
//! | `query` | what a poll asks for |
//! | `poller_list` | what is kept of a list |
//! | `round` | what came of a round, and what follows |
//! | `operation` | what Octavia can be at work on |
//! | `pace` | how long Octavia takes |
//! | `schedule` | polling times |

mod operation;
mod pace;
mod pending;
mod poller_list;
mod query;
mod round;
mod schedule;
mod watchlist;

use std::pin::pin;
use std::sync::Arc;

use futures::{StreamExt, stream};
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::Octavia;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

pub(super) use operation::{Afterwards, Operation};
use pending::WatchCounts;
pub(super) use poller_list::LastChanges;
use query::{PollQuery, PollRequest};
use round::{NextRound, RoundTally};
use watchlist::Finished;
pub(super) use watchlist::{Awaited, End, Watchlist};

/// How many lists of single load balancers are asked for at a time.
const AT_ONCE: usize = 8;

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
        let (mut last, mut next) = (None, NextRound::default());
        loop {
            self.rest(last, next).await;
            let asked = Instant::now();
            if next.rest.is_none() && self.wake(self.watchlist.presume_ended(asked).as_slice()) {
                continue;
            }
            last = Some(asked);
            next = self.round(asked, next).await;
        }
    }

    /// Waits until a poll is due. A new entry may shorten the pause, but not the back-off after errors.
    async fn rest(&self, last: Option<Instant>, round: NextRound) {
        loop {
            let Some((next, pause)) = self.watchlist.next_poll() else {
                self.watchlist.added().await;
                continue;
            };
            let earliest = last.map(|last| last + round.rest.unwrap_or(pause));
            let due = earliest.map_or(next, |earliest| earliest.max(next));
            tokio::select! {
                () = tokio::time::sleep_until(due) => return,
                () = self.watchlist.added() => {}
            }
        }
    }

    /// Asks for one list, and wakes who waited for what it shows. Answers how long it is.
    async fn ask(&self, request: PollRequest, asked: Instant, among: WatchCounts) -> Result<usize, ApiError> {
        let listed = self.octavia.list_load_balancers_into(&request.filter, request.listed).await?;
        let length = listed.len();
        self.wake(&self.watchlist.finished(listed, asked, among));
        Ok(length)
    }

    /// Wakes who waited for these. Answers whether there are any.
    fn wake(&self, finished: &[Finished]) -> bool {
        for Finished { id, is_active, services } in finished {
            debug!(load_balancer = %id, "load balancer is no longer pending, or not likely to be");
            services.iter().for_each(|service| self.observer.ended(service, *is_active));
        }
        !finished.is_empty()
    }

    /// One list for all, one for each project or one for each load balancer. What is not answered stays as it was, and is asked for again.
    async fn round(&self, asked: Instant, begins: NextRound) -> NextRound {
        let (PollQuery { of_projects, single }, among) = self.watchlist.query(begins.takes_lists(asked));
        let mut tally = RoundTally::default();
        for request in of_projects {
            if !tally.is_overloaded() {
                tally.add(self.ask(request, asked, among).await);
            }
        }
        if let Some(length) = tally.listed() {
            self.watchlist.list_length().note(length);
        }
        let overload = CancellationToken::new();
        if tally.is_overloaded() {
            overload.cancel();
        }
        let requests = stream::iter(single).take_until(overload.cancelled());
        let mut answers =
            pin!(requests.map(|request| self.ask(request, asked, among)).buffer_unordered(AT_ONCE));
        while let Some(answer) = answers.next().await {
            tally.add(answer);
            if tally.is_overloaded() {
                overload.cancel();
            }
        }
        tally.next(begins, asked)
    }
}

#[cfg(test)]
mod tests;

//! The task that watches all load balancers that Octavia is working on.
//!
//! A reconciliation that meets a PENDING load balancer, or makes one PENDING, registers it and ends. The first look comes after a
//! fixed time per type of operation, then the pauses grow to a few seconds. Up to four load balancers are read one by one, more
//! with one list per project, which reconciliations share. A load balancer that is no longer PENDING, or gone, wakes the Services
//! that wait for it. Their next reconciliation evaluates the result: nothing is decided here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::error::{ApiError, ErrorKind};
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::load_balancer::read::lists::Lists;
use crate::load_balancer::state::watchlist::{EndObserver, Finished, Question, Watchlist};

/// Pauses while all requests fail.
const PAUSES_AFTER_ERRORS: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_secs(30));
/// Minimum interval between two rounds of requests.
const MIN_LIST_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of load balancers that are read one by one in each round, if a list is not available.
const MAX_SINGLE_READS: usize = 8;

/// The polling task. It is idle while no load balancer is PENDING.
pub struct Poller {
    lists: Lists,
    watchlist: Watchlist,
    observer: Arc<dyn EndObserver>,
}

impl Poller {
    pub(in crate::load_balancer) fn new(
        lists: Lists,
        watchlist: Watchlist,
        observer: Arc<dyn EndObserver>,
    ) -> Self {
        Self { lists, watchlist, observer }
    }

    /// Runs until `shutdown`. Failures of OpenStack slow the task down and never end it.
    pub async fn run(self, shutdown: CancellationToken) {
        self.watchlist.polls_begin();
        shutdown.run_until_cancelled(self.run_forever()).await;
    }

    /// Requests everything that is due concurrently, and does not wait for slow answers: a project or a load balancer that hangs
    /// delays no other.
    async fn run_forever(&self) {
        let (mut earliest, mut failures) = (Instant::now(), 0);
        let mut rests_until = earliest;
        let mut asked = FuturesUnordered::new();
        loop {
            let answer = tokio::select! {
                Some(answer) = asked.next() => answer,
                () = self.rest(earliest) => {
                    let now = Instant::now();
                    earliest = now + MIN_LIST_INTERVAL;
                    asked.extend(self.watchlist.take_questions(now).into_iter().map(|one| self.ask(one)));
                    continue;
                }
            };
            let now = Instant::now();
            match answer {
                Polled::Had => failures = 0,
                Polled::NoList { mut due } => {
                    let others = due.split_off(due.len().min(MAX_SINGLE_READS));
                    self.watchlist.put_off(others, now + MIN_LIST_INTERVAL);
                    asked.extend(due.into_iter().map(|id| self.ask(Question::One(id))));
                }
                Polled::Failed { error, due } => {
                    // Concurrent requests fail together, so only the first failure counts.
                    if now >= rests_until {
                        let asked_for = error.retry_after().unwrap_or_default();
                        let pause = PAUSES_AFTER_ERRORS
                            .delay(failures)
                            .max(asked_for)
                            .min(PAUSES_AFTER_ERRORS.longest);
                        warn!(%error, retry_seconds = pause.as_secs(), "could not read the load balancers \
                        that are pending");
                        failures = failures.saturating_add(1);
                        rests_until = now + pause;
                    }
                    self.watchlist.put_off(due, rests_until);
                    if is_overload(&error) {
                        earliest = earliest.max(rests_until);
                    }
                }
            }
        }
    }

    /// Waits until a look is due. A new entry may shorten the pause, but not to before `earliest`.
    async fn rest(&self, earliest: Instant) {
        loop {
            let Some(next) = self.watchlist.next() else {
                self.watchlist.added().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(next.max(earliest)) => return,
                () = self.watchlist.added() => {}
            }
        }
    }

    async fn ask(&self, question: Question) -> Polled {
        let begun = Moment::now();
        match question {
            Question::List { project_id, due } => match self.lists.all_load_balancers(&project_id).await {
                Ok(Some(listed)) => {
                    let listed: HashMap<&str, &LoadBalancer> =
                        listed.iter().map(|one| (one.id.as_str(), one)).collect();
                    let is_asked = |_: &str, project: Option<&str>| project == Some(&*project_id);
                    let shown = |id: &str| listed.get(id).map(|one| (*one).clone());
                    self.wake(&self.watchlist.note(begun, is_asked, shown));
                    Polled::Had
                }
                Err(error) if is_overload(&error) => Polled::Failed { error, due },
                Ok(None) | Err(_) => Polled::NoList { due },
            },
            Question::One(id) => {
                let shown = match self.lists.openstack().octavia.get_load_balancer(&id).await {
                    Ok(shown) => Some(shown),
                    Err(error) if error.is_not_found() => None,
                    Err(error) => return Polled::Failed { error: Arc::new(error), due: vec![id] },
                };
                self.wake(&self.watchlist.note(begun, |other, _| other == id, |_| shown.clone()));
                Polled::Had
            }
        }
    }

    /// Wakes the Services that waited for these load balancers.
    fn wake(&self, finished: &[Finished]) {
        for Finished { id, is_active, services } in finished {
            debug!(load_balancer = %id, "load balancer is no longer pending");
            services.iter().for_each(|service| self.observer.ended(service, *is_active));
        }
        self.observer.looked();
    }
}

/// The result of a request.
enum Polled {
    Had,
    /// The list is not available; these load balancers were due.
    NoList {
        due: Vec<String>,
    },
    Failed {
        error: Arc<ApiError>,
        due: Vec<String>,
    },
}

/// Returns whether the error concerns Octavia as a whole, and not only this request.
fn is_overload(error: &ApiError) -> bool {
    matches!(error.kind(), ErrorKind::RateLimited | ErrorKind::Unavailable)
}

#[cfg(test)]
mod tests;

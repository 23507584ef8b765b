//! One task that watches all load balancers that Octavia is working on.
//!
//! A reconciliation that meets a PENDING load balancer, or makes one PENDING, registers it and ends. The first look comes after a fixed
//! time for each kind of operation, then the pauses grow to a few seconds. Up to four are asked for one by one, more by one list for
//! each project, which reconciliations share. A load balancer that is no longer PENDING, or gone, wakes the Services that wait for it.
//! What became of it is for their next reconciliation to see: nothing is decided here.

mod operation;
mod watchlist;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::error::{ApiError, ErrorKind};
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::lists::Lists;
pub(super) use operation::Operation;
use watchlist::Finished;
pub(super) use watchlist::{Awaited, End, Watchlist};

/// Pauses while nothing is answered.
const PAUSES_AFTER_ERRORS: Backoff = Backoff::doubling(Duration::from_secs(2), Duration::from_secs(30));
/// No list is asked for more often.
const BETWEEN_LISTS: Duration = Duration::from_secs(1);
/// Where a list is not to be had, so many are asked for one by one in each round.
const MOST_SINGLE: usize = 8;

/// Hears when Octavia has ended its work on the load balancer of a Service, and wakes the Service.
pub(super) trait EndObserver: Send + Sync {
    /// It has ended; `is_active` says whether the load balancer is ACTIVE now, not in ERROR or gone.
    fn ended(&self, service: &ServiceKey, is_active: bool);
}

/// The task. It costs nothing while nothing is PENDING.
pub struct Poller {
    lists: Lists,
    watchlist: Watchlist,
    observer: Arc<dyn EndObserver>,
}

impl Poller {
    pub(super) fn new(lists: Lists, watchlist: Watchlist, observer: Arc<dyn EndObserver>) -> Self {
        Self { lists, watchlist, observer }
    }

    /// Runs until `shutdown`. Failures of OpenStack slow it down and never end it.
    pub async fn run(self, shutdown: CancellationToken) {
        self.watchlist.polls_begin();
        shutdown.run_until_cancelled(self.run_forever()).await;
    }

    async fn run_forever(&self) {
        let (mut earliest, mut failures) = (Instant::now(), 0);
        loop {
            self.rest(earliest).await;
            let now = Instant::now();
            earliest = now + BETWEEN_LISTS;
            match self.round(now).await {
                Ok(()) => failures = 0,
                Err(error) => {
                    let asked_for = error.retry_after().unwrap_or_default();
                    let rest =
                        PAUSES_AFTER_ERRORS.delay(failures).max(asked_for).min(PAUSES_AFTER_ERRORS.longest);
                    warn!(%error, retry_seconds = rest.as_secs(), "could not look at load balancers that are pending");
                    failures = failures.saturating_add(1);
                    earliest = now + rest;
                }
            }
        }
    }

    /// Waits until something is due. A new entry may shorten the pause, but not the time before which nothing is asked for.
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

    /// Asks for all that is due at the same time, so that a project or a load balancer that does not answer holds up no other.
    ///
    /// # Errors
    /// The first failure, where nothing was answered or the cloud has too much to do.
    async fn round(&self, now: Instant) -> Result<(), Arc<ApiError>> {
        let questions = self.watchlist.questions(now);
        let lists = join_all(questions.projects.iter().map(|project_id| self.ask_for_list(project_id, now)));
        let singles = join_all(questions.ids.iter().map(|id| self.ask_for(id)));
        let (lists, singles) = tokio::join!(lists, singles);
        let mut answers = lists.into_iter().chain(singles);
        let (answered, failed): (Vec<_>, Vec<_>) = answers.by_ref().partition(Result::is_ok);
        let overload = failed.iter().any(|answer| answer.as_ref().is_err_and(|error| is_overload(error)));
        match failed.into_iter().find_map(Result::err) {
            Some(error) if answered.is_empty() || overload => Err(error),
            Some(_) | None => Ok(()),
        }
    }

    /// One list, or where that is not to be had some load balancers by themselves.
    async fn ask_for_list(&self, project_id: &str, now: Instant) -> Result<(), Arc<ApiError>> {
        let begun = Moment::now();
        match self.lists.all_load_balancers(project_id).await {
            Ok(listed) => {
                let listed: HashMap<&str, &LoadBalancer> =
                    listed.iter().map(|one| (one.id.as_str(), one)).collect();
                let tells_of = |_: &str, project: Option<&str>| project == Some(project_id);
                let shown = |id: &str| listed.get(id).map(|one| (*one).clone());
                self.wake(&self.watchlist.note(begun, tells_of, shown));
                Ok(())
            }
            Err(error) if is_overload(&error) => Err(error),
            Err(error) => {
                debug!(%error, "the list of load balancers failed: some are asked for one by one");
                let due = self.watchlist.due_in(project_id, now);
                let asked = join_all(due.iter().take(MOST_SINGLE).map(|id| self.ask_for(id))).await;
                self.watchlist.put_off(due.into_iter().skip(MOST_SINGLE), BETWEEN_LISTS);
                if asked.iter().any(Result::is_ok) { Ok(()) } else { Err(error) }
            }
        }
    }

    async fn ask_for(&self, id: &str) -> Result<(), Arc<ApiError>> {
        let begun = Moment::now();
        let shown = match self.lists.openstack().octavia.get_load_balancer(id).await {
            Ok(shown) => Some(shown),
            Err(error) if error.is_not_found() => None,
            Err(error) => {
                self.watchlist.put_off([id.to_owned()], PAUSES_AFTER_ERRORS.delay(0));
                return Err(Arc::new(error));
            }
        };
        self.wake(&self.watchlist.note(begun, |other, _| other == id, |_| shown.clone()));
        Ok(())
    }

    /// Wakes who waited for these.
    fn wake(&self, finished: &[Finished]) {
        for Finished { id, is_active, services } in finished {
            debug!(load_balancer = %id, "load balancer is no longer pending");
            services.iter().for_each(|service| self.observer.ended(service, *is_active));
        }
    }
}

/// Whether it tells of Octavia as a whole, not of this request.
fn is_overload(error: &ApiError) -> bool {
    matches!(error.kind(), ErrorKind::RateLimited | ErrorKind::Unavailable)
}

#[cfg(test)]
mod tests;

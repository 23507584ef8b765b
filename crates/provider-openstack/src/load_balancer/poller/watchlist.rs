//! What reconciliations wait for, and what became of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::octavia::{LoadBalancer, ProvisioningStatus};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::operation::{Afterwards, Operation};
use super::pace::Pace;
use super::pending::{GOOD_FOR, Pending, WatchCounts};
use super::poller_list::{LastChanges, PollerList};
use super::query::{PollQuery, Watched};
use crate::load_balancer::list_length::ListLength;

/// For how long before somebody asks a list tells when load balancers were changed last.
const RECENT: Duration = Duration::from_secs(2);

/// Where reconciliations register what they wait for. Clones share the register.
#[derive(Clone, Debug, Default)]
pub(in crate::load_balancer) struct Watchlist {
    shared: Arc<Register>,
}

#[derive(Debug, Default)]
struct Register {
    pending: Mutex<BTreeMap<String, Pending>>,
    /// What became of load balancers on which Octavia has ended its work.
    ends: Mutex<BTreeMap<String, RecordedEnd>>,
    /// `updated_at` of load balancers, and when the list was asked for that shows it.
    last_changes: Mutex<HashMap<String, (Instant, Option<String>)>>,
    pace: Mutex<Pace>,
    /// How many load balancers the projects have in which some are watched.
    list_length: Arc<ListLength>,
    added: Notify,
    /// Whether a poller is at work, which sees the ends. On a dry run there is none.
    is_polled: AtomicBool,
}

#[derive(Debug)]
struct RecordedEnd {
    end: End,
    /// When the list came that shows it: a slow answer is not stale when it comes.
    seen: Instant,
}

/// A load balancer on which Octavia has ended its work.
#[derive(Clone, Debug)]
pub(in crate::load_balancer) struct End {
    /// Its name; absent where it is gone and nobody said it.
    pub(in crate::load_balancer) name: Option<String>,
    /// As it was listed then; absent where it is gone.
    pub(in crate::load_balancer) load_balancer: Option<LoadBalancer>,
    /// The others of its name in its project. Absent where the list does not tell.
    pub(in crate::load_balancer) namesakes: Option<Vec<LoadBalancer>>,
}

/// A load balancer that Octavia is at work on.
#[derive(Clone, Copy, Debug)]
pub(in crate::load_balancer) struct Awaited<'a> {
    /// Id.
    pub(in crate::load_balancer) id: &'a str,
    /// Owner.
    pub(in crate::load_balancer) project_id: Option<&'a str>,
    /// Name, where Octavia's work does not change it.
    pub(in crate::load_balancer) name: Option<&'a str>,
    /// What was begun just now; absent where nobody knows since when it goes on.
    pub(in crate::load_balancer) operation: Option<Operation>,
    /// What comes after that.
    pub(in crate::load_balancer) afterwards: Afterwards,
}

/// A load balancer on which Octavia has ended its work, and who waited for it.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) id: String,
    /// Whether it is ACTIVE, not in ERROR or gone.
    pub(super) is_active: bool,
    pub(super) services: BTreeSet<ServiceKey>,
}

impl Watchlist {
    /// Has `service` woken when the load balancer is no longer PENDING.
    pub(in crate::load_balancer) fn watch(&self, awaited: Awaited<'_>, service: &ServiceKey) {
        let Awaited { id, project_id, name, operation, afterwards } = awaited;
        self.ends().remove(id);
        let now = Instant::now();
        let mut pending = self.pending();
        let watched = pending.len() + usize::from(!pending.contains_key(id));
        let presumed = pending.get(id).filter(|entry| entry.presumed.is_some()).map(|entry| entry.schedule);
        let mut pace = self.pace();
        let schedule = match (presumed, operation) {
            // It was too early.
            (Some(mut schedule), None) => {
                schedule.found_pending(now, watched);
                schedule
            }
            (Some(before), Some(_)) => {
                pace.presumed_rightly(&before);
                pace.begin(operation, watched, now)
            }
            (None, _) => pace.begin(operation, watched, now),
        };
        if watched > 1 {
            pending.values_mut().for_each(|other| pace.joined(&mut other.schedule, watched));
        }
        drop(pace);
        let entry = pending.entry(id.to_owned()).or_insert_with(|| Pending {
            services: BTreeSet::new(),
            project_id: None,
            name: None,
            since: now,
            schedule,
            afterwards,
            measures: true,
            presumed: None,
        });
        entry.services.insert(service.clone());
        entry.project_id = project_id.map(str::to_owned).or_else(|| entry.project_id.take());
        entry.name = name.map(str::to_owned);
        entry.since = now;
        entry.schedule = schedule;
        entry.afterwards = afterwards;
        entry.measures = afterwards != Afterwards::Nothing;
        entry.presumed = None;
        drop(pending);
        self.shared.added.notify_one();
    }

    /// How many load balancers the project has, as far as that is known.
    pub(in crate::load_balancer) fn list_length(&self) -> Arc<ListLength> {
        Arc::clone(&self.shared.list_length)
    }

    // The maps are whole between any two statements that hold their locks.

    fn pending(&self) -> MutexGuard<'_, BTreeMap<String, Pending>> {
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends(&self) -> MutexGuard<'_, BTreeMap<String, RecordedEnd>> {
        self.shared.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_changes(&self) -> MutexGuard<'_, HashMap<String, (Instant, Option<String>)>> {
        self.shared.last_changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.shared.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody waits for the load balancer.
    pub(in crate::load_balancer) fn is_watched(&self, load_balancer_id: &str) -> bool {
        self.pending().contains_key(load_balancer_id)
    }

    /// A poller begins its work.
    pub(super) fn polls_begin(&self) {
        self.shared.is_polled.store(true, Ordering::Relaxed);
    }

    /// For how long Octavia has been at work on something that this process began for the Service, and whose end the poller has
    /// not seen. Absent where there is no poller, which could see it. Who asks waits for the end from now on.
    pub(in crate::load_balancer) fn own_work(
        &self,
        load_balancer_id: &str,
        service: &ServiceKey,
    ) -> Option<Duration> {
        let mut pending = self.pending();
        let entry = pending
            .get_mut(load_balancer_id)
            .filter(|entry| entry.services.contains(service) && entry.presumed.is_none())?;
        let is_known = entry.schedule.began().is_some() && self.shared.is_polled.load(Ordering::Relaxed);
        if is_known && entry.afterwards == Afterwards::Nothing {
            entry.afterwards = Afterwards::Look;
            self.shared.added.notify_one();
        }
        is_known.then(|| entry.since.elapsed())
    }

    /// Whether Octavia counts as done with the load balancer, although nobody has seen that.
    pub(in crate::load_balancer) fn is_presumed_ended(&self, load_balancer_id: &str) -> bool {
        self.pending().get(load_balancer_id).is_some_and(|entry| entry.presumed.is_some())
    }

    /// What Octavia has probably finished, where another step follows.
    pub(super) fn presume_ended(&self, now: Instant) -> Option<Finished> {
        let mut pending = self.pending();
        let counts = WatchCounts::of(&pending);
        let is_due = |entry: &Pending| entry.presumable_from(counts).is_some_and(|end| end <= now);
        let (id, entry) = pending.iter_mut().find(|(_, entry)| entry.keeps_waiting() && is_due(entry))?;
        entry.presumed = Some(now);
        // A poll comes only if no step follows, and then late.
        entry.measures = false;
        Some(Finished { id: id.clone(), is_active: true, services: entry.services.clone() })
    }

    /// What became of the load balancer a moment ago, when Octavia had ended its work on it. Told once.
    pub(in crate::load_balancer) fn take_end(&self, load_balancer_id: &str) -> Option<End> {
        let recorded = self.ends().remove(load_balancer_id)?;
        (recorded.seen.elapsed() < GOOD_FOR).then_some(recorded.end)
    }

    /// `updated_at` of a load balancer, if a list shows it that was asked for at `now` or a moment before.
    pub(in crate::load_balancer) fn last_change(&self, id: &str, now: Instant) -> Option<Option<String>> {
        let last_changes = self.last_changes();
        let (_, updated_at) = last_changes.get(id).filter(|(asked, _)| *asked + RECENT >= now)?;
        Some(updated_at.clone())
    }

    /// Notes when load balancers were changed last, as a list shows it that was `asked` for then.
    pub(in crate::load_balancer) fn note_last_changes(&self, listed: LastChanges, asked: Instant) {
        let mut last_changes = self.last_changes();
        last_changes.retain(|_, (before, _)| *before + RECENT >= asked);
        last_changes
            .extend(listed.into_pairs().into_iter().map(|(id, updated_at)| (id, (asked, updated_at))));
    }

    /// Waits until something is registered.
    pub(super) async fn added(&self) {
        self.shared.added.notified().await;
    }

    /// When the next poll is due, and how long after the last one at least.
    pub(super) fn next_poll(&self) -> Option<(Instant, Duration)> {
        let pending = self.pending();
        let counts = WatchCounts::of(&pending);
        let next = pending.values().map(|entry| entry.next(counts)).min();
        next.zip(pending.values().map(|entry| entry.pause(counts)).min())
    }

    /// The smallest lists that show everything watched: of each load balancer, or where that is not much more or few requests
    /// count for more (`takes_lists`), those of each project. And how many are watched.
    pub(super) fn query(&self, takes_lists: bool) -> (PollQuery, WatchCounts) {
        let pending = self.pending();
        let watched: Vec<_> = pending
            .iter()
            .map(|(id, entry)| {
                let (name, project_id) = (entry.name.as_deref(), entry.project_id.as_deref());
                Watched { id, name, project_id }
            })
            .collect();
        let are_few = !takes_lists && self.shared.list_length.is_too_long_for(watched.len());
        let query = if watched.len() < 2 || are_few {
            PollQuery::of_each(&watched)
        } else {
            PollQuery::of_projects(&watched)
        };
        (query, WatchCounts::of(&pending))
    }

    /// Takes out what the list shows as finished, and returns who waited for it. Of whom it does not tell stays as it was. `asked` is when the
    /// round began: who was registered later may have another name or owner than the one that was asked for. So many were watched then.
    pub(super) fn finished(
        &self,
        mut listed: PollerList,
        asked: Instant,
        among: WatchCounts,
    ) -> Vec<Finished> {
        self.note_last_changes(listed.take_last_changes(), asked);
        let mut pending = self.pending();
        let watched = among.watched;
        let mut finished = Vec::new();
        let is_told = |id: &str, entry: &Pending| entry.since < asked && listed.tells_of(id);
        for (id, entry) in pending.iter_mut().filter(|(id, entry)| is_told(id, entry)) {
            if listed.get(id).is_some_and(|one| one.provisioning_status.is_pending()) {
                entry.schedule.found_pending(asked, watched);
            } else {
                finished.push(id.clone());
            }
        }
        let mut ends = self.ends();
        let seen = Instant::now();
        ends.retain(|_, recorded| recorded.seen.elapsed() < GOOD_FOR);
        let mut woken = Vec::new();
        for (id, entry) in finished.into_iter().filter_map(|id| pending.remove_entry(&id)) {
            if let Some(end) = entry.measured_end(asked, among) {
                self.pace().ended(&entry.schedule, watched, end);
            }
            let load_balancer = listed.get(&id).cloned();
            let status = load_balancer.as_ref().map(|one| &one.provisioning_status);
            let is_active = status == Some(&ProvisioningStatus::Active);
            let name = load_balancer.as_ref().map(|one| one.name.clone()).or(entry.name);
            let in_project = name.as_deref().zip(entry.project_id.as_deref());
            let namesakes = in_project.and_then(|(name, project_id)| listed.namesakes(name, &id, project_id));
            ends.insert(id.clone(), RecordedEnd { end: End { name, load_balancer, namesakes }, seen });
            woken.push(Finished { id, is_active, services: entry.services });
        }
        woken
    }
}

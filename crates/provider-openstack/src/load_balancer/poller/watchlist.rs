//! What reconciliations wait for, and what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::octavia::{LoadBalancer, ProvisioningStatus};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::operation::Operation;

/// Up to so many load balancers are asked for one by one; more by one list for each project.
const FEW: usize = 4;
/// First and longest pause between two looks at one load balancer.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Where reconciliations register what they wait for. Clones share the register.
#[derive(Clone, Debug, Default)]
pub(in crate::load_balancer) struct Watchlist {
    shared: Arc<Register>,
}

#[derive(Debug, Default)]
struct Register {
    watched: Mutex<BTreeMap<String, Watched>>,
    added: Notify,
    /// Whether a poller is at work, which sees the ends. On a dry run there is none.
    is_polled: AtomicBool,
}

#[derive(Debug)]
struct Watched {
    services: BTreeSet<ServiceKey>,
    project_id: Option<String>,
    /// When it was last registered: an answer that was begun before tells nothing.
    since: Moment,
    /// Who began the work that is waited for, and when; absent where somebody else did.
    own_work: Option<(ServiceKey, Instant)>,
    /// When to look next, and after which pause again.
    next: Instant,
    pause: Duration,
    /// What became of it. Kept until the Service that waits takes it, however late its turn comes.
    end: Option<End>,
}

/// A load balancer on which Octavia has ended its work.
#[derive(Clone, Debug)]
pub(in crate::load_balancer) struct End {
    /// When the answer that shows it was begun.
    pub(in crate::load_balancer) begun: Moment,
    /// As it was shown then; absent where it is gone.
    pub(in crate::load_balancer) load_balancer: Option<LoadBalancer>,
}

impl End {
    /// The load balancer, if the work succeeded.
    pub(in crate::load_balancer) fn active(self) -> Option<LoadBalancer> {
        self.load_balancer.filter(|shown| shown.provisioning_status == ProvisioningStatus::Active)
    }
}

/// A load balancer that Octavia is at work on.
#[derive(Clone, Copy, Debug)]
pub(in crate::load_balancer) struct Awaited<'a> {
    pub(in crate::load_balancer) id: &'a str,
    /// Owner.
    pub(in crate::load_balancer) project_id: Option<&'a str>,
    /// What was begun just now; absent where it is the work of somebody else.
    pub(in crate::load_balancer) operation: Option<Operation>,
}

/// A load balancer on which Octavia has ended its work, and who waited for it.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) id: String,
    /// Whether it is ACTIVE, not in ERROR or gone.
    pub(super) is_active: bool,
    pub(super) services: BTreeSet<ServiceKey>,
}

/// What a round asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Questions {
    /// Lists of all load balancers of these projects.
    pub(super) projects: BTreeSet<String>,
    /// Single load balancers, by id.
    pub(super) ids: BTreeSet<String>,
}

impl Watchlist {
    /// Has `service` woken when the load balancer is no longer PENDING.
    pub(in crate::load_balancer) fn watch(&self, awaited: Awaited<'_>, service: &ServiceKey) {
        let Awaited { id, project_id, operation } = awaited;
        let now = Instant::now();
        let mut watched = self.watched();
        let before = watched.remove(id).filter(|before| before.end.is_none());
        let (mut services, known_project) =
            before.map(|before| (before.services, before.project_id)).unwrap_or_default();
        services.insert(service.clone());
        watched.insert(
            id.to_owned(),
            Watched {
                services,
                project_id: project_id.map(str::to_owned).or(known_project),
                since: Moment::now(),
                own_work: operation.map(|_| (service.clone(), now)),
                next: now + operation.map_or(FIRST_PAUSE, Operation::first_look),
                pause: FIRST_PAUSE,
                end: None,
            },
        );
        drop(watched);
        self.shared.added.notify_one();
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<String, Watched>> {
        // The map is whole between any two statements that hold the lock.
        self.shared.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long Octavia has been at work on something that this process began for the Service, and whose end the poller has not
    /// seen. Absent where there is no poller, which could see it.
    pub(in crate::load_balancer) fn own_work(&self, id: &str, service: &ServiceKey) -> Option<Duration> {
        if !self.shared.is_polled.load(Ordering::Relaxed) {
            return None;
        }
        let watched = self.watched();
        let entry = watched.get(id).filter(|entry| entry.end.is_none())?;
        let (by, began) = entry.own_work.as_ref()?;
        (by == service).then(|| began.elapsed())
    }

    /// What became of the load balancer when Octavia had ended its work on it. It is handed out once.
    pub(in crate::load_balancer) fn take_end(&self, id: &str) -> Option<End> {
        let mut watched = self.watched();
        let end = watched.get_mut(id)?.end.take()?;
        watched.remove(id);
        Some(end)
    }

    /// The Service goes: nobody takes the end of what it waited for.
    pub(in crate::load_balancer) fn forget(&self, service: &ServiceKey) {
        self.watched().retain(|_, entry| {
            entry.services.remove(service);
            !entry.services.is_empty()
        });
    }

    /// A poller begins its work.
    pub(super) fn polls_begin(&self) {
        self.shared.is_polled.store(true, Ordering::Relaxed);
    }

    /// Waits until something is registered.
    pub(super) async fn added(&self) {
        self.shared.added.notified().await;
    }

    /// When the next look is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.watched().values().filter(|entry| entry.end.is_none()).map(|entry| entry.next).min()
    }

    /// What to ask for now: those that are due one by one, where few are watched; else the lists of their projects. One whose owner is
    /// not known is asked for by itself: an administrator's list would be that of the whole cloud.
    pub(super) fn questions(&self, now: Instant) -> Questions {
        let watched = self.watched();
        let waiting = watched.values().filter(|entry| entry.end.is_none()).count();
        let mut questions = Questions::default();
        for (id, entry) in watched.iter().filter(|(_, entry)| entry.end.is_none() && entry.next <= now) {
            match &entry.project_id {
                Some(project_id) if waiting > FEW => questions.projects.insert(project_id.clone()),
                Some(_) | None => questions.ids.insert(id.clone()),
            };
        }
        questions
    }

    /// Those of a project that are due, the longest first: where its list is not to be had, some are asked for one by one.
    pub(super) fn due_in(&self, project_id: &str, now: Instant) -> Vec<String> {
        let watched = self.watched();
        let is_due = |entry: &Watched| {
            entry.end.is_none() && entry.next <= now && entry.project_id.as_deref() == Some(project_id)
        };
        let mut due: Vec<_> = watched.iter().filter(|(_, entry)| is_due(entry)).collect();
        due.sort_by_key(|(_, entry)| entry.next);
        due.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// Takes over an answer that was begun at `begun`, and returns who waited for what has ended. `shown` finds a load balancer in the
    /// answer; `tells_of` says of which it tells, so that one that it lacks is gone.
    pub(super) fn note(
        &self,
        begun: Moment,
        tells_of: impl Fn(&str, Option<&str>) -> bool,
        shown: impl Fn(&str) -> Option<LoadBalancer>,
    ) -> Vec<Finished> {
        let now = Instant::now();
        let mut finished = Vec::new();
        for (id, entry) in self.watched().iter_mut() {
            if entry.end.is_some() || entry.since > begun || !tells_of(id, entry.project_id.as_deref()) {
                continue;
            }
            let load_balancer = shown(id);
            let status = load_balancer.as_ref().map(|shown| &shown.provisioning_status);
            if status.is_some_and(ProvisioningStatus::is_pending) {
                entry.next = now + entry.pause;
                entry.pause = entry.pause.mul_f64(1.3).min(LONGEST_PAUSE);
                continue;
            }
            let is_active = status == Some(&ProvisioningStatus::Active);
            finished.push(Finished { id: id.clone(), is_active, services: entry.services.clone() });
            entry.end = Some(End { begun, load_balancer });
        }
        finished
    }

    /// Nobody answered: those that were due are asked for again after a pause.
    pub(super) fn put_off(&self, ids: impl IntoIterator<Item = String>, pause: Duration) {
        let next = Instant::now() + pause;
        let mut watched = self.watched();
        for id in ids {
            if let Some(entry) = watched.get_mut(&id) {
                entry.next = entry.next.max(next);
            }
        }
    }
}

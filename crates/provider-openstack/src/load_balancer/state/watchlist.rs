//! The load balancers whose PENDING status reconciliations wait out, and how Octavia's work ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use openstack_ccm_core::lock::lock;
use openstack_ccm_core::service::ServiceKey;
use openstack_ccm_openstack_api::cache::Moment;
use openstack_ccm_openstack_api::octavia::{LoadBalancer, ProvisioningStatus};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::load_balancer::objects::step::Operation;

/// Up to this many load balancers are read one by one; more with one list per project.
const MAX_SINGLE_LOOKS: usize = 4;
/// First and longest pause between two looks at one load balancer.
const FIRST_LOOK_DELAY: Duration = Duration::from_secs(1);
const MAX_LOOK_DELAY: Duration = Duration::from_secs(4);
/// Largest random part that is added to a pause, as a fraction of it.
const LOOK_JITTER: f64 = 0.5;
/// Longer than any request takes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// Is told when Octavia has finished its work on the load balancer of a Service, and wakes the Service.
pub(in crate::load_balancer) trait EndObserver: Send + Sync {
    /// Notes the end of the work; `is_active`: the load balancer is ACTIVE now, not in ERROR or gone.
    fn ended(&self, service: &ServiceKey, is_active: bool);

    /// Notes that a look is over, after which Octavia may be at work on others.
    fn looked(&self);
}

/// Lengthens the pause before a look at another client's work by a random part: a client that changes the load balancer at a fixed
/// interval would otherwise be met at work each time.
fn scattered(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + LOOK_JITTER * fastrand::f64())
}

/// The register of what reconciliations wait for. Clones share it.
#[derive(Clone, Debug, Default)]
pub(in crate::load_balancer) struct Watchlist {
    shared: Arc<Register>,
}

#[derive(Debug, Default)]
struct Register {
    watched: Mutex<BTreeMap<String, Watched>>,
    added: Notify,
    /// Whether a poller sees the ends of work. On a dry run there is none.
    is_polled: AtomicBool,
}

#[derive(Debug)]
struct Watched {
    services: BTreeSet<ServiceKey>,
    project_id: Option<String>,
    /// When it was last registered: an answer that was begun before proves nothing.
    since: Moment,
    /// The Service that began the work, and when; absent for the work of another client.
    own_work: Option<(ServiceKey, Instant)>,
    /// When to look next; `pause` is the time to the look after that.
    next: Instant,
    pause: Duration,
    /// How the work ended. Kept until the waiting Service consumes it.
    end: Option<End>,
}

/// How Octavia's work on a load balancer ended.
#[derive(Clone, Debug)]
pub(in crate::load_balancer) struct End {
    /// When the request whose answer shows the end was begun.
    pub(in crate::load_balancer) begun: Moment,
    /// The load balancer in that answer; absent where it is gone.
    pub(in crate::load_balancer) load_balancer: Option<LoadBalancer>,
}

impl End {
    /// Returns the load balancer, if the work succeeded.
    pub(in crate::load_balancer) fn active(self) -> Option<LoadBalancer> {
        self.load_balancer.filter(|shown| shown.provisioning_status == ProvisioningStatus::Active)
    }
}

/// A load balancer that Octavia is working on.
#[derive(Clone, Copy, Debug)]
pub(in crate::load_balancer) struct Awaited<'a> {
    pub(in crate::load_balancer) id: &'a str,
    pub(in crate::load_balancer) project_id: Option<&'a str>,
    /// The operation that this process just began; absent for the work of another client.
    pub(in crate::load_balancer) operation: Option<Operation>,
}

/// A load balancer on which Octavia has finished its work, and the Services that waited for it.
#[derive(Debug)]
pub(in crate::load_balancer) struct Finished {
    pub(in crate::load_balancer) id: String,
    /// Whether the load balancer is ACTIVE, not in ERROR or gone.
    pub(in crate::load_balancer) is_active: bool,
    pub(in crate::load_balancer) services: BTreeSet<ServiceKey>,
}

/// A request of the poller.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::load_balancer) enum Question {
    /// All load balancers of a project, of which `due` are due.
    List { project_id: String, due: Vec<String> },
    /// One load balancer, by its id.
    One(String),
}

impl Watchlist {
    /// Has `service` woken when the load balancer is no longer PENDING.
    pub(in crate::load_balancer) fn watch(&self, awaited: Awaited<'_>, service: &ServiceKey) {
        let Awaited { id, project_id, operation } = awaited;
        let now = Instant::now();
        let mut watched = self.watched();
        let before = watched.remove(id).filter(|before| before.end.is_none());
        let (mut services, known_project, known_work) =
            before.map(|before| (before.services, before.project_id, before.own_work)).unwrap_or_default();
        services.insert(service.clone());
        watched.insert(
            id.to_owned(),
            Watched {
                services,
                project_id: project_id.map(str::to_owned).or(known_project),
                since: Moment::now(),
                // Another waiting Service does not end this one's work.
                own_work: operation.map(|_| (service.clone(), now)).or(known_work),
                next: now + operation.map_or_else(|| scattered(FIRST_LOOK_DELAY), Operation::first_look),
                pause: FIRST_LOOK_DELAY,
                end: None,
            },
        );
        drop(watched);
        self.shared.added.notify_one();
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<String, Watched>> {
        // The map is whole between any two statements that hold the lock.
        lock(&self.shared.watched)
    }

    /// Returns how long Octavia has been at work on an operation that this process began for the Service, if the poller has not
    /// seen its end. `None` without a poller, which alone could see it.
    pub(in crate::load_balancer) fn own_work(&self, id: &str, service: &ServiceKey) -> Option<Duration> {
        if !self.shared.is_polled.load(Ordering::Relaxed) {
            return None;
        }
        let watched = self.watched();
        let entry = watched.get(id).filter(|entry| entry.end.is_none())?;
        let (by, began) = entry.own_work.as_ref()?;
        (by == service).then(|| began.elapsed())
    }

    /// Takes the end of Octavia's work on a load balancer: it is handed out once.
    pub(in crate::load_balancer) fn take_end(&self, id: &str) -> Option<End> {
        let mut watched = self.watched();
        let end = watched.get_mut(id)?.end.take()?;
        watched.remove(id);
        Some(end)
    }

    /// Removes a Service that is being deleted, with ends that no other Service waits for.
    pub(in crate::load_balancer) fn forget(&self, service: &ServiceKey) {
        self.watched().retain(|_, entry| {
            entry.services.remove(service);
            !entry.services.is_empty()
        });
    }

    /// Notes that a poller is running.
    pub(in crate::load_balancer) fn polls_begin(&self) {
        self.shared.is_polled.store(true, Ordering::Relaxed);
    }

    /// Waits until a load balancer is registered.
    pub(in crate::load_balancer) async fn added(&self) {
        self.shared.added.notified().await;
    }

    /// Returns when the next look is due.
    pub(in crate::load_balancer) fn next(&self) -> Option<Instant> {
        self.watched().values().filter(|entry| entry.end.is_none()).map(|entry| entry.next).min()
    }

    /// Returns the requests to make now: each due load balancer by itself where few are watched, else lists of their projects. A
    /// load balancer of unknown project is read by itself: an administrator's list would show the whole cloud. What is asked for is
    /// not due again until it is answered.
    pub(in crate::load_balancer) fn take_questions(&self, now: Instant) -> Vec<Question> {
        let mut watched = self.watched();
        let waiting = watched.values().filter(|entry| entry.end.is_none()).count();
        let mut lists: BTreeMap<String, Vec<(Instant, String)>> = BTreeMap::new();
        let mut questions = Vec::new();
        for (id, entry) in watched.iter_mut().filter(|(_, entry)| entry.end.is_none() && entry.next <= now) {
            match &entry.project_id {
                Some(project_id) if waiting > MAX_SINGLE_LOOKS => {
                    lists.entry(project_id.clone()).or_default().push((entry.next, id.clone()));
                }
                Some(_) | None => questions.push(Question::One(id.clone())),
            }
            entry.next = now + REQUEST_TIMEOUT;
        }
        questions.extend(lists.into_iter().map(|(project_id, mut due)| {
            due.sort();
            Question::List { project_id, due: due.into_iter().map(|(_, id)| id).collect() }
        }));
        questions
    }

    /// Applies an answer that was begun at `begun`, and returns the finished load balancers with their waiting Services. `shown`
    /// finds a load balancer in the answer; `is_asked` says which ones it covers: one that it covers and lacks is gone.
    pub(in crate::load_balancer) fn note(
        &self,
        begun: Moment,
        is_asked: impl Fn(&str, Option<&str>) -> bool,
        shown: impl Fn(&str) -> Option<LoadBalancer>,
    ) -> Vec<Finished> {
        let now = Instant::now();
        let mut finished = Vec::new();
        for (id, entry) in self.watched().iter_mut() {
            if entry.end.is_some() || entry.since > begun || !is_asked(id, entry.project_id.as_deref()) {
                continue;
            }
            let load_balancer = shown(id);
            let status = load_balancer.as_ref().map(|shown| &shown.provisioning_status);
            if status.is_some_and(ProvisioningStatus::is_pending) {
                let is_own = entry.own_work.is_some();
                entry.next = now + if is_own { entry.pause } else { scattered(entry.pause) };
                entry.pause = entry.pause.mul_f64(1.3).min(MAX_LOOK_DELAY);
                continue;
            }
            let is_active = status == Some(&ProvisioningStatus::Active);
            finished.push(Finished { id: id.clone(), is_active, services: entry.services.clone() });
            entry.end = Some(End { begun, load_balancer });
        }
        finished
    }

    /// Postpones load balancers whose request got no answer.
    pub(in crate::load_balancer) fn put_off(&self, ids: impl IntoIterator<Item = String>, until: Instant) {
        let mut watched = self.watched();
        for id in ids {
            if let Some(entry) = watched.get_mut(&id) {
                entry.next = until;
            }
        }
    }
}

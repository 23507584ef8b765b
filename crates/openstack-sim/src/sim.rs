//! The simulator: one world, shared by everybody who holds a [`Sim`].

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::header::DATE;
use http::{Request as HttpRequest, Response};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::builder::SimBuilder;
use crate::faults::{Fate, Faults};
use crate::forward::Forwarding;
use crate::front_end::{FrontEnd, Rewrite};
use crate::log::CallLog;
use crate::reply::Reply;
use crate::request::Request;
use crate::seed::Seed;
use crate::service::Service;
use crate::traffic::{self, Watchers};
use crate::world::World;
use crate::{barbican, keystone, neutron, nova, octavia};

/// The connection was closed before an answer came. Whether the request was carried out, the caller cannot know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionDropped;

impl fmt::Display for ConnectionDropped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the connection was closed before an answer came")
    }
}

impl std::error::Error for ConnectionDropped {}

/// An OpenStack to run against. Clones share one world.
#[derive(Clone)]
pub struct Sim {
    inner: Arc<Inner>,
}

/// A [`Sim`] that does not keep the world alive: for background tasks.
#[derive(Debug, Clone)]
pub(crate) struct WeakSim {
    inner: Weak<Inner>,
}

impl WeakSim {
    /// The simulator, while somebody still uses it.
    pub(crate) fn upgrade(&self) -> Option<Sim> {
        self.inner.upgrade().map(|inner| Sim { inner })
    }
}

/// The next moment at which the world may have changed; holding it does not keep the world alive.
#[derive(Debug)]
pub(crate) struct NextChange {
    changed: Arc<Notify>,
    due: Option<Duration>,
}

impl NextChange {
    /// Work that is held is due already, and a simulator may be dropped without a word: so both are looked at again.
    const SHORTEST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_millis(500);

    pub(crate) async fn wait(self) {
        let wait = self.due.map_or(Self::LONGEST, |due| due.clamp(Self::SHORTEST, Self::LONGEST));
        let _elapsed = tokio::time::timeout(wait, self.changed.notified()).await;
    }
}

struct Inner {
    world: Mutex<World>,
    seed: Seed,
    faults: Faults,
    front_end: FrontEnd,
    log: CallLog,
    started: Instant,
    changed: Arc<Notify>,
    forwarding: Forwarding,
    watchers: Watchers,
}

impl fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inner").field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sim").field("seed", &self.inner.seed).finish_non_exhaustive()
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}

impl Sim {
    /// A simulator with the default seed and three nodes.
    pub fn new() -> Self {
        SimBuilder::default().build()
    }

    /// Chooses how the simulator begins.
    pub fn builder() -> SimBuilder {
        SimBuilder::default()
    }

    pub(crate) fn with_world(world: World, seed: Seed) -> Self {
        let inner = Inner {
            world: Mutex::new(world),
            seed,
            faults: Faults::default(),
            front_end: FrontEnd::default(),
            log: CallLog::default(),
            started: Instant::now(),
            changed: Arc::default(),
            forwarding: Forwarding::default(),
            watchers: Watchers::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn downgrade(&self) -> WeakSim {
        WeakSim { inner: Arc::downgrade(&self.inner) }
    }

    /// Makes one request without a socket; the path is relative to the root of the service, version included.
    ///
    /// Faults apply, the call is logged, and time is tokio's: with a paused clock nothing here needs real time.
    ///
    /// # Errors
    /// A fault closed the connection, or there is no service with this catalog type.
    pub async fn call(
        &self,
        service: &str,
        request: HttpRequest<Bytes>,
    ) -> Result<Response<Bytes>, ConnectionDropped> {
        let service = Service::from_catalog_type(service).ok_or(ConnectionDropped)?;
        let request = Request::new(service, request);
        let identity_url = self.read(World::identity_url);
        let decision = self.inner.faults.decide(&request, &identity_url);
        let request = self.inner.front_end.forward(request);
        if !decision.latency.is_zero() {
            tokio::time::sleep(decision.latency).await;
        }
        self.work_for(&request).await;
        let mut reply = match decision.fate {
            Fate::Serve => Some(self.apply_watched(&request)),
            Fate::Answer(reply) => Some(reply),
            Fate::Replica(mut world) => {
                // Keystone's database is another one.
                self.read(|present| world.identity.clone_from(&present.identity));
                Some(answer(&mut world, &request))
            }
            Fate::DropBefore => None,
            Fate::ServeThen(reply) => {
                self.apply_watched(&request);
                reply
            }
        };
        if let Some(body) = reply.as_mut().and_then(|reply| reply.body.as_mut()) {
            self.inner.front_end.hide(&request, body);
        }
        let status = reply.as_ref().map(|reply| reply.status.as_u16());
        tracing::debug!(service = %service, method = %request.method, path = %request.path, status, "call");
        self.inner.log.record(&request, status);
        reply.map(|reply| reply.with_header(DATE, self.date()).into_http()).ok_or(ConnectionDropped)
    }

    /// The present as the header `Date` has it.
    fn date(&self) -> String {
        let now = self.inner.started.elapsed();
        let world = self.inner.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.calendar(now).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// Lets the time pass that a request takes where Octavia cannot do everything at once.
    async fn work_for(&self, request: &Request) {
        let Some(job) = self.write(|world| world.begin_request(request)) else { return };
        while let Some(rest) = self.read(|world| world.request_rests(job)) {
            tokio::time::sleep(rest).await;
        }
    }

    /// Carries a request of a client out, and shows it to those who watch writes.
    fn apply_watched(&self, request: &Request) -> Reply {
        let watchers = self.inner.watchers.get();
        if watchers.is_empty() || !request.is_write() {
            return self.apply(request);
        }
        let before = self.traffic();
        let reply = self.apply(request);
        traffic::show(self, &watchers, request, &before);
        reply
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.inner.watchers
    }

    /// Carries a request out, with neither faults nor log.
    pub(crate) fn apply(&self, request: &Request) -> Reply {
        self.write(|world| answer(world, request))
    }

    /// Brings the world to the present and looks at it.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&World) -> R) -> R {
        self.enter(|world| look(world))
    }

    /// Brings the world to the present, changes it, and wakes those who wait for changes.
    pub(crate) fn write<R>(&self, change: impl FnOnce(&mut World) -> R) -> R {
        let result = self.enter(change);
        self.inner.changed.notify_one();
        result
    }

    fn enter<R>(&self, enter: impl FnOnce(&mut World) -> R) -> R {
        let now = Instant::now().saturating_duration_since(self.inner.started);
        let mut world = self.inner.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.set_now(now);
        self.inner.faults.with_worker(|faults| world.run_worker(faults));
        enter(&mut world)
    }

    /// What to wait for until the world may have changed: a write, or work that is due.
    pub(crate) fn next_change(&self) -> NextChange {
        let due = self.read(|world| world.next_due().map(|due| due.saturating_sub(world.now())));
        NextChange { changed: Arc::clone(&self.inner.changed), due }
    }

    pub(crate) fn forwarding(&self) -> &Forwarding {
        &self.inner.forwarding
    }

    /// What the cloud has from the beginning.
    pub fn seed(&self) -> &Seed {
        &self.inner.seed
    }

    /// The rules about what goes wrong.
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }

    /// Has requests or answers changed on their way, from here on.
    pub fn rewrite(&self, rule: Rewrite) {
        self.inner.front_end.add(rule);
    }

    /// Every call that was made.
    pub fn log(&self) -> &CallLog {
        &self.inner.log
    }

    /// A copy of everything that exists.
    pub fn snapshot(&self) -> World {
        self.read(World::clone)
    }

    /// Goes back to a copy. Time does not go back.
    pub fn restore(&self, world: World) {
        self.write(|current| *current = world);
    }

    /// The base URL of a service, as the catalog has it (without the version).
    pub fn service_url(&self, service: Service) -> String {
        self.read(|world| world.endpoint(service).to_owned())
    }

    /// Sets the base URLs of all services to `base` plus the catalog type of each.
    pub fn set_base_url(&self, base: &str) {
        self.write(|world| {
            for service in Service::ALL {
                world.endpoints.insert(service, format!("{}/{service}", base.trim_end_matches('/')));
            }
        });
    }
}

/// Carries a request out in a world.
fn answer(world: &mut World, request: &Request) -> Reply {
    let mut reply = match request.service {
        Service::Identity => keystone::answer(world, request),
        Service::Compute => nova::answer(world, request),
        Service::Network => neutron::answer(world, request),
        Service::LoadBalancer => octavia::answer(world, request),
        Service::KeyManager => barbican::answer(world, request),
    };
    if let Some(body) = &mut reply.body {
        octavia::lacks::trim(world.load_balancing.release, request.service, body);
    }
    reply
}

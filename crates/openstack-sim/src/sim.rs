//! The simulator: one world, shared by everybody who holds a [`Sim`].

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{Request as HttpRequest, Response};
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::actor::Actor;
use crate::faults::{Fate, Faults};
use crate::forward::Forwarding;
use crate::log::CallLog;
use crate::reply::Reply;
use crate::request::Request;
use crate::seed::{self, Node, Seed};
use crate::service::Service;
use crate::world::World;
use crate::world::operation::OperationKind;
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

/// How a simulator begins.
#[derive(Debug, Clone)]
pub struct SimBuilder {
    nodes: usize,
    ipv6: bool,
    token_lifetime: Duration,
    octavia_api: u8,
}

impl Default for SimBuilder {
    fn default() -> Self {
        Self {
            nodes: 3,
            ipv6: false,
            token_lifetime: Duration::from_secs(3600),
            octavia_api: octavia::NEWEST_MINOR,
        }
    }
}

impl SimBuilder {
    /// How many node servers there are from the beginning: `node-1`, `node-2`, ...; 3 by default.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Whether the network `cluster` has an IPv6 subnet beside the IPv4 one; not by default.
    #[must_use]
    pub fn ipv6(mut self, ipv6: bool) -> Self {
        self.ipv6 = ipv6;
        self
    }

    /// How long tokens live; one hour by default.
    #[must_use]
    pub fn token_lifetime(mut self, lifetime: Duration) -> Self {
        self.token_lifetime = lifetime;
        self
    }

    /// The newest API version 2.x that Octavia knows; 2.30 by default.
    #[must_use]
    pub fn octavia_api(mut self, minor: u8) -> Self {
        self.octavia_api = minor;
        self
    }

    /// The simulator.
    #[must_use]
    pub fn build(self) -> Sim {
        let mut world = World::new(Timestamp::now());
        let seed = seed::plant(&mut world, self.ipv6, self.token_lifetime);
        world.load_balancing.api_minor = self.octavia_api.min(octavia::NEWEST_MINOR);
        for number in 1..=self.nodes {
            seed::add_node(&mut world, &seed, &format!("node-{number}"));
        }
        let inner = Inner {
            world: Mutex::new(world),
            seed,
            faults: Faults::default(),
            log: CallLog::default(),
            started: Instant::now(),
            changed: Arc::default(),
            forwarding: Forwarding::default(),
        };
        Sim { inner: Arc::new(inner) }
    }
}

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

    /// Waits for it.
    pub(crate) async fn wait(self) {
        let wait = self.due.map_or(Self::LONGEST, |due| due.clamp(Self::SHORTEST, Self::LONGEST));
        let _elapsed = tokio::time::timeout(wait, self.changed.notified()).await;
    }
}

struct Inner {
    world: Mutex<World>,
    seed: Seed,
    faults: Faults,
    log: CallLog,
    started: Instant,
    changed: Arc<Notify>,
    forwarding: Forwarding,
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
    #[must_use]
    pub fn new() -> Self {
        SimBuilder::default().build()
    }

    /// Chooses how the simulator begins.
    #[must_use]
    pub fn builder() -> SimBuilder {
        SimBuilder::default()
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
        if !decision.latency.is_zero() {
            tokio::time::sleep(decision.latency).await;
        }
        let reply = match decision.fate {
            Fate::Serve => Some(self.apply(&request)),
            Fate::Answer(reply) => Some(reply),
            Fate::DropBefore => None,
            Fate::DropAfter => {
                self.apply(&request);
                None
            }
        };
        let status = reply.as_ref().map(|reply| reply.status.as_u16());
        tracing::debug!(service = %service, method = %request.method, path = %request.path, status, "call");
        self.inner.log.record(&request, status);
        reply.map(Reply::into_http).ok_or(ConnectionDropped)
    }

    /// Carries a request out, with neither faults nor log.
    pub(crate) fn apply(&self, request: &Request) -> Reply {
        self.write(|world| match request.service {
            Service::Identity => keystone::answer(world, request),
            Service::Compute => nova::answer(world, request),
            Service::Network => neutron::answer(world, request),
            Service::LoadBalancer => octavia::answer(world, request),
            Service::KeyManager => barbican::answer(world, request),
        })
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
    #[must_use]
    pub fn seed(&self) -> &Seed {
        &self.inner.seed
    }

    /// The rules about what goes wrong.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }

    /// Every call that was made.
    #[must_use]
    pub fn log(&self) -> &CallLog {
        &self.inner.log
    }

    /// A valid token of the user `demo` in the project `demo`.
    #[must_use]
    pub fn token(&self) -> String {
        self.token_of(seed::USER)
    }

    /// A valid token of a seeded user (`admin`, `demo`, `plain`, `stranger`, `octavia`, ...) in its project; empty when
    /// there is no such user.
    #[must_use]
    pub fn token_of(&self, user: &str) -> String {
        self.enter(|world| seed::token_of(world, user))
    }

    /// Revokes every token: the next request with one gets 401.
    pub fn revoke_tokens(&self) {
        self.enter(|world| world.identity.tokens.values_mut().for_each(|token| token.revoked = true));
    }

    /// An administrator.
    #[must_use]
    pub fn admin(&self) -> Actor<'_> {
        Actor::new(self, self.token_of("admin"))
    }

    /// The user `demo`, beside whoever else uses that account.
    #[must_use]
    pub fn user(&self) -> Actor<'_> {
        Actor::new(self, self.token())
    }

    /// A user of another project with the same roles.
    #[must_use]
    pub fn stranger(&self) -> Actor<'_> {
        Actor::new(self, self.token_of("stranger"))
    }

    /// Adds a node server.
    pub fn add_node(&self, name: &str) -> Node {
        let seed = self.inner.seed.clone();
        self.write(|world| seed::add_node(world, &seed, name))
    }

    /// Removes a node server with its ports. Answers whether there was one.
    pub fn remove_node(&self, name: &str) -> bool {
        let found = self.nodes().into_iter().find(|node| node.name == name);
        found.is_some_and(|node| {
            self.write(|world| nova::servers::remove(world, &node.server_id));
            true
        })
    }

    /// The node servers by name.
    #[must_use]
    pub fn nodes(&self) -> Vec<Node> {
        self.read(|world| seed::nodes(world, &self.inner.seed))
    }

    /// Sets the status of the server with this name, such as `ACTIVE`, `SHUTOFF` or `ERROR`.
    pub fn set_server_status(&self, name: &str, status: &str) {
        self.write(|world| {
            let ids: Vec<String> = world
                .compute
                .servers
                .values()
                .filter(|one| one.name == name)
                .map(|one| one.id.clone())
                .collect();
            for id in ids {
                nova::servers::set_status(world, &id, status);
            }
        });
    }

    /// How long operations of a kind take from now on; zero means that they are finished when next looked at.
    pub fn set_delay(&self, kind: OperationKind, delay: Duration) {
        self.write(|world| world.load_balancing.delays.insert(kind, delay));
    }

    /// How long operations of every kind take from now on.
    pub fn set_delays(&self, delay: Duration) {
        for kind in OperationKind::ALL {
            self.set_delay(kind, delay);
        }
    }

    /// Finishes all unfinished work that no rule holds, whatever its delay.
    pub fn settle(&self) {
        self.write(World::hurry);
        self.write(|_| ());
    }

    /// The newest API version 2.x that Octavia knows from now on; newer attributes are unknown to it.
    pub fn set_octavia_api(&self, minor: u8) {
        self.write(|world| world.load_balancing.api_minor = minor.min(octavia::NEWEST_MINOR));
    }

    /// Limits how many load balancers, listeners, pools, members or health monitors the project `demo` may have
    /// (`load_balancer`, `listener`, `pool`, `member`, `health_monitor`); -1 for no limit.
    pub fn set_octavia_quota(&self, resource: &str, limit: i64) {
        let project = self.inner.seed.project_id.clone();
        self.write(|world| {
            world.load_balancing.quotas.entry(project).or_default().insert(resource.to_owned(), limit);
        });
    }

    /// Limits how many Neutron resources the project `demo` may have (`port`, `floatingip`, `security_group`, ...).
    pub fn set_neutron_quota(&self, resource: &str, limit: i64) {
        let project = self.inner.seed.project_id.clone();
        self.write(|world| {
            world.network.quotas.entry(project).or_default().insert(resource.to_owned(), limit);
        });
    }

    /// Makes Neutron lack an API extension, such as `extraroute-atomic`.
    pub fn remove_extension(&self, alias: &str) {
        self.write(|world| world.network.missing_extensions.insert(alias.to_owned()));
    }

    /// Adds a load balancer flavor.
    pub fn add_octavia_flavor(&self, name: &str) -> String {
        self.write(|world| {
            let id = world.new_id();
            let view = serde_json::json!({
                "id": id, "name": name, "description": "", "enabled": true, "flavor_profile_id": null,
            });
            world.load_balancing.flavors.insert(id.clone(), view);
            id
        })
    }

    /// Adds a load balancer availability zone.
    pub fn add_octavia_availability_zone(&self, name: &str) {
        self.write(|world| {
            let view = serde_json::json!({"name": name, "description": "", "enabled": true});
            world.load_balancing.availability_zones.insert(name.to_owned(), view);
        });
    }

    /// Adds a load balancer provider, such as `ovn`.
    pub fn add_octavia_provider(&self, name: &str) {
        self.write(|world| world.load_balancing.providers.push((name.to_owned(), String::new())));
    }

    /// Says whether a backend passes its health checks, where none are really made; all do by default.
    pub fn set_backend_health(&self, address: &str, port: u16, healthy: bool) {
        self.write(|world| {
            let backend = (address.to_owned(), port);
            if healthy {
                world.load_balancing.unhealthy_backends.remove(&backend);
            } else {
                world.load_balancing.unhealthy_backends.insert(backend);
            }
            octavia::status::refresh_all(&mut world.load_balancing);
        });
    }

    /// A copy of everything that exists.
    #[must_use]
    pub fn snapshot(&self) -> World {
        self.read(World::clone)
    }

    /// Goes back to a copy. Time does not go back.
    pub fn restore(&self, world: World) {
        self.write(|current| *current = world);
    }

    /// The base URL of a service, as the catalog has it (without the version).
    #[must_use]
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

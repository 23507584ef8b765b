//! The forwarder: makes sockets and health checks agree with what is wanted.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::environment::Environment;
use super::health::{Check, MemberStatus, RunningCheck};
use super::listener::RunningListener;
use super::statistics::Statistics;
use super::wanted::{Listener, Wanted};

/// An address of a listener has no socket.
#[derive(Debug)]
pub struct BindError {
    /// The listener.
    pub listener_id: String,
    /// The address and port in the world.
    pub address: SocketAddr,
    source: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listener_id, address, source: _ } = self;
        write!(formatter, "no loopback port can stand for {address} of listener {listener_id}")
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Forwards connections. Everything ends when it is dropped.
#[derive(Debug)]
pub struct Forwarder {
    runtime: Handle,
    environment: Environment,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    listeners: BTreeMap<String, RunningListener>,
    checks: BTreeMap<String, RunningCheck>,
}

impl Forwarder {
    /// A forwarder that forwards nothing yet.
    ///
    /// `member` turns the address and port of a member (or of its health checks) into one that can be dialled on this
    /// machine. Its tasks run in the Tokio runtime of the caller.
    ///
    /// # Panics
    /// Outside a Tokio runtime, as [`tokio::spawn`] does.
    #[must_use]
    pub fn new(member: impl Fn(SocketAddr) -> SocketAddr + Send + Sync + 'static) -> Self {
        let environment = Environment { member: Arc::new(member), ..Environment::default() };
        Self { runtime: Handle::current(), environment, running: Mutex::default() }
    }

    /// Turns the peer of an accepted connection into the client's address in the world, which `allowed_cidrs`, PROXY headers
    /// and `X-Forwarded-For` are about. Without it the peer is the client.
    #[must_use]
    pub fn with_source(mut self, source: impl Fn(SocketAddr) -> SocketAddr + Send + Sync + 'static) -> Self {
        self.environment.source = Arc::new(source);
        self
    }

    /// Makes everything as wanted. It does not wait for anything and may be called from any thread.
    ///
    /// An address and port of a listener that stay keep their socket and their open connections, whatever else changes, as
    /// across a reload of HAProxy; new connections are served as is wanted now. What is not wanted any more is closed with
    /// its connections.
    ///
    /// # Errors
    /// A socket could not be opened: the first one. Everything else is as wanted, and the next call tries again.
    pub fn apply(&self, wanted: Wanted) -> Result<(), BindError> {
        let _entered = self.runtime.enter();
        let mut running = self.lock();
        self.environment.health.reconcile(&wanted);
        running.reconcile_checks(Check::all(&wanted), &self.environment);
        let wanted = wanted.listeners.into_iter().map(|listener| (listener.id.clone(), listener)).collect();
        running.reconcile_listeners(wanted, &self.environment)
    }

    /// Where an address and port of a load balancer are found on this machine, while a listener has them.
    #[must_use]
    pub fn endpoint(&self, address: IpAddr, port: u16) -> Option<SocketAddr> {
        self.lock().listeners.values().find_map(|listener| listener.endpoint(address, port))
    }

    /// The status of every wanted member, by id.
    #[must_use]
    pub fn status(&self) -> BTreeMap<String, MemberStatus> {
        self.environment.health.read()
    }

    /// [`Self::status`] for those who want to wait for changes.
    #[must_use]
    pub fn watch_status(&self) -> watch::Receiver<BTreeMap<String, MemberStatus>> {
        self.environment.health.subscribe()
    }

    /// How many connections there were.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.environment.counters.read()
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    fn reconcile_checks(&mut self, wanted: BTreeMap<String, Check>, environment: &Environment) {
        self.checks.retain(|member_id, running| wanted.get(member_id) == Some(&running.check));
        for (member_id, check) in wanted {
            self.checks.entry(member_id).or_insert_with_key(|member_id| {
                RunningCheck::start(member_id.clone(), check, environment.clone())
            });
        }
    }

    fn reconcile_listeners(
        &mut self,
        wanted: BTreeMap<String, Listener>,
        environment: &Environment,
    ) -> Result<(), BindError> {
        self.listeners.retain(|id, _| {
            let kept = wanted.contains_key(id);
            if !kept {
                environment.counters.remove_listener(id);
            }
            kept
        });
        let mut failures = Vec::new();
        for (id, listener) in wanted {
            let running = self
                .listeners
                .entry(id.clone())
                .or_insert_with(|| RunningListener::new(listener.clone(), environment.clone()));
            running.update(listener);
            let failed = running.open().into_iter();
            failures.extend(failed.map(|(address, source)| BindError {
                listener_id: id.clone(),
                address,
                source,
            }));
        }
        failures.into_iter().next().map_or(Ok(()), Err)
    }
}

//! Running listeners: their sockets, which outlive changes of the pool.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::connection;
use super::environment::Environment;
use super::wanted::Listener;

/// Pause after a connection could not be accepted, which happens when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the sockets and connections of one listener share.
#[derive(Debug)]
pub(super) struct Shared {
    listener: Mutex<Arc<Listener>>,
    turn: AtomicUsize,
    pub(super) environment: Environment,
}

impl Shared {
    /// The listener as it is wanted now. A connection keeps what it began with.
    pub(super) fn listener(&self) -> Arc<Listener> {
        Arc::clone(&self.listener.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whose turn it is.
    pub(super) fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    fn set_listener(&self, listener: Arc<Listener>) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = listener;
    }
}

/// A listener with its sockets. Drop it to close them and all its connections.
#[derive(Debug)]
pub(super) struct RunningListener {
    shared: Arc<Shared>,
    sockets: BTreeMap<(IpAddr, u16), Socket>,
}

/// What stands for one address and port of a listener.
#[derive(Debug)]
struct Socket {
    endpoint: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl RunningListener {
    /// A listener without sockets.
    pub(super) fn new(listener: Listener, environment: Environment) -> Self {
        environment.counters.add_listener(&listener.id);
        let shared =
            Shared { listener: Mutex::new(Arc::new(listener)), turn: AtomicUsize::new(0), environment };
        Self { shared: Arc::new(shared), sockets: BTreeMap::new() }
    }

    /// Serves new connections as this listener says, and no address that it does not have.
    pub(super) fn update(&mut self, listener: Listener) {
        self.sockets.retain(|(address, port), _| {
            *port == listener.port && listener.addresses.iter().any(|wanted| wanted.reached_at == *address)
        });
        self.shared.set_listener(Arc::new(listener));
    }

    /// Opens the sockets that are missing, in the runtime that is entered. Answers the addresses that failed.
    pub(super) fn open(&mut self) -> Vec<(SocketAddr, io::Error)> {
        let listener = self.shared.listener();
        let mut failures = Vec::new();
        for address in listener.addresses.iter().map(|address| address.reached_at) {
            let key = (address, listener.port);
            if self.sockets.contains_key(&key) {
                continue;
            }
            match Socket::open(address, &self.shared) {
                Ok(socket) => {
                    self.sockets.insert(key, socket);
                }
                Err(error) => failures.push((SocketAddr::from(key), error)),
            }
        }
        failures
    }

    /// Where an address and port of the load balancer are found on this machine.
    pub(super) fn endpoint(&self, address: IpAddr, port: u16) -> Option<SocketAddr> {
        self.sockets.get(&(address, port)).map(|socket| socket.endpoint)
    }
}

impl Socket {
    fn open(address: IpAddr, shared: &Arc<Shared>) -> io::Result<Self> {
        let socket = bind(address)?;
        socket.set_nonblocking(true)?;
        let endpoint = socket.local_addr()?;
        let socket = TcpListener::from_std(socket)?;
        let task = tokio::spawn(accept(socket, address, Arc::clone(shared)));
        Ok(Self { endpoint, _task: AbortOnDropHandle::new(task) })
    }
}

/// Binds a free port on loopback, of the same family as the address where this machine has it.
fn bind(address: IpAddr) -> io::Result<std::net::TcpListener> {
    let v4 = || std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    match address {
        IpAddr::V4(_) => v4(),
        IpAddr::V6(_) => std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).or_else(|_| v4()),
    }
}

/// Accepts connections until it is aborted, which ends the connections as well.
async fn accept(socket: TcpListener, address: IpAddr, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((client, peer)) => {
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move { connection::serve(client, peer, address, &shared).await });
                }
                Err(error) => {
                    tracing::warn!(%address, %error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_finished) = connections.join_next() => {}
        }
    }
}

//! Real forwarding: what an ACTIVE listener of a load balancer does with connections.
//!
//! Without rights on the machine there is no interface with a VIP. Each listener really listens on a loopback port instead, and
//! [`Sim::endpoint`] says where the connections to a VIP, or to the floating IP in front of it, have to go. Members are found
//! through a resolver that a test can set.

mod connection;
mod health;
mod http;
mod packet;
mod proxy_header;
mod route;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::sim::{Sim, WeakSim};
use connection::Connection;
pub use packet::{Delivery, Loss, Packet, Transport};
use route::Frontend;

type MemberResolver = Arc<dyn Fn(&str, u16) -> Option<SocketAddr> + Send + Sync>;
type ClientIdentity = Arc<dyn Fn(SocketAddr) -> SocketAddr + Send + Sync>;

/// The state of forwarding: off until started.
#[derive(Default)]
pub(crate) struct Forwarding {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    started: bool,
    open: BTreeMap<Frontend, Open>,
    member_resolver: Option<MemberResolver>,
    client_identity: Option<ClientIdentity>,
}

/// A listener that is really listening; dropping it closes its socket and its connections.
struct Open {
    socket: SocketAddr,
    _stop: DropGuard,
}

impl fmt::Debug for Forwarding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open: Vec<(String, SocketAddr)> = self
            .state()
            .open
            .iter()
            .map(|(one, open)| (format!("{}:{}", one.vip, one.port), open.socket))
            .collect();
        formatter.debug_struct("Forwarding").field("open", &open).finish_non_exhaustive()
    }
}

impl Forwarding {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a member is to be reached; by default at its own address.
    pub(crate) fn member_socket(&self, address: &str, port: u16) -> Option<SocketAddr> {
        let resolver = self.state().member_resolver.clone();
        match resolver {
            Some(resolve) => resolve(address, port),
            None => Some(SocketAddr::new(address.parse().ok()?, port)),
        }
    }

    fn client(&self, peer: SocketAddr) -> SocketAddr {
        let identity = self.state().client_identity.clone();
        identity.map_or(peer, |identity| identity(peer))
    }
}

impl Sim {
    /// Begins to forward: every ACTIVE listener with protocol TCP, HTTPS or HTTP listens, and health monitors make real checks.
    /// Needs a tokio runtime with a running clock. A second call changes nothing.
    pub fn start_forwarding(&self) {
        if std::mem::replace(&mut self.forwarding().state().started, true) {
            return;
        }
        self.write(|world| world.load_balancing.real_health_checks = true);
        tokio::spawn(follow(self.downgrade()));
        tokio::spawn(health::run(self.downgrade()));
    }

    /// Where the listener on a VIP, or behind a floating IP, really listens; `None` while it does not.
    pub fn endpoint(&self, address: &str, port: u16) -> Option<SocketAddr> {
        let vip = self.read(|world| route::vip_behind(world, address));
        let state = self.forwarding().state();
        state
            .open
            .iter()
            .find(|(frontend, _)| frontend.vip == vip && frontend.port == port)
            .map(|(_, open)| open.socket)
    }

    /// Says where members are really to be reached, by address and port; `None` means nowhere. By default at their own address.
    pub fn set_member_resolver(
        &self,
        resolve: impl Fn(&str, u16) -> Option<SocketAddr> + Send + Sync + 'static,
    ) {
        self.forwarding().state().member_resolver = Some(Arc::new(resolve));
    }

    /// Says as whom the load balancer sees a client that connects from a real address: it decides about `allowed_cidrs` and is
    /// in PROXY and X-Forwarded-For headers. By default the real address.
    pub fn set_client_identity(&self, identity: impl Fn(SocketAddr) -> SocketAddr + Send + Sync + 'static) {
        self.forwarding().state().client_identity = Some(Arc::new(identity));
    }

    /// Opens what is to be open and closes the rest.
    async fn synchronize_frontends(&self) {
        let wanted = self.read(route::frontends);
        self.forwarding().state().open.retain(|frontend, _| wanted.contains(frontend));
        for frontend in wanted {
            let is_open = self.forwarding().state().open.contains_key(&frontend);
            if is_open {
                continue;
            }
            match open(&frontend).await {
                Ok((listener, socket)) => {
                    let stop = CancellationToken::new();
                    tokio::spawn(accept(self.downgrade(), listener, frontend.clone(), stop.clone()));
                    self.forwarding()
                        .state()
                        .open
                        .insert(frontend, Open { socket, _stop: stop.drop_guard() });
                }
                Err(error) => {
                    tracing::warn!(%error, vip = frontend.vip, port = frontend.port, "could not open a listener");
                }
            }
        }
    }
}

/// Keeps the open sockets as the world wants them, until nobody uses the simulator any more.
async fn follow(sim: WeakSim) {
    loop {
        let Some(strong) = sim.upgrade() else { return };
        strong.synchronize_frontends().await;
        let change = strong.next_change();
        drop(strong);
        change.wait().await;
    }
}

/// IPv6 VIPs get an IPv6 loopback socket where the machine has one, so that the families in PROXY headers agree.
async fn open(frontend: &Frontend) -> std::io::Result<(TcpListener, SocketAddr)> {
    let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
    let preferred = if frontend.vip.contains(':') { IpAddr::from(Ipv6Addr::LOCALHOST) } else { v4 };
    let listener = match TcpListener::bind((preferred, 0)).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind((v4, 0)).await?,
    };
    let socket = listener.local_addr()?;
    Ok((listener, socket))
}

async fn accept(sim: WeakSim, listener: TcpListener, frontend: Frontend, stop: CancellationToken) {
    let turns = AtomicUsize::new(0);
    loop {
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    continue;
                }
            },
        };
        let Some(sim) = sim.upgrade() else { return };
        let turn = turns.fetch_add(1, Ordering::Relaxed);
        let (frontend, stop) = (frontend.clone(), stop.clone());
        tokio::spawn(async move {
            let Some(route) = sim.read(|world| route::route(world, &frontend.listener_id)) else { return };
            let client = sim.forwarding().client(peer);
            let connection = Connection { sim: &sim, frontend: &frontend, client, turn };
            tokio::select! {
                () = stop.cancelled() => {}
                ended = connection.carry(stream, &route) => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, %client, "connection ended");
                    }
                }
            }
        });
    }
}

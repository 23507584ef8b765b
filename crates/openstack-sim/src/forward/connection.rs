//! One connection of a client.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

use super::http;
use super::listener::Shared;
use super::upstream::{self, Route};
use super::wanted::{Listener, ListenerProtocol, PoolProtocol};

/// Serves a connection that was accepted on an address of the listener, to its end.
pub(super) async fn serve(client: TcpStream, peer: SocketAddr, address: IpAddr, shared: &Shared) {
    let listener = shared.listener();
    let counted = shared.environment.counters.open(&listener.id);
    let source = (shared.environment.source)(peer);
    if !admits(&listener, source.ip()) {
        counted.denied();
        if let Err(error) = client.set_zero_linger() {
            tracing::debug!(%error, "the connection is closed rather than reset");
        }
        return;
    }
    let route = Route { source, destination: destination(&listener, address) };
    let end = match listener.protocol {
        ListenerProtocol::Tcp => relay(client, &listener, route, shared).await,
        ListenerProtocol::Http => http::exchange(client, &listener, route, shared).await,
    };
    match end {
        Ok(End::Served) => {}
        Ok(End::Unserved) => counted.unserved(),
        Err(error) => tracing::debug!(listener = %listener.id, client = %source, %error, "connection broke"),
    }
}

/// What came of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// A member had it.
    Served,
    /// No member could be reached.
    Unserved,
}

/// Copies bytes both ways until both sides are done. Without a member the connection is closed, as HAProxy does.
async fn relay(mut client: TcpStream, listener: &Listener, route: Route, shared: &Shared) -> io::Result<End> {
    client.set_nodelay(true)?;
    let Some(mut member) = connect(listener, route, shared).await else { return Ok(End::Unserved) };
    copy_bidirectional(&mut client, &mut member).await?;
    Ok(End::Served)
}

/// Connects to a member of the listener's pool.
pub(super) async fn connect(listener: &Listener, route: Route, shared: &Shared) -> Option<TcpStream> {
    let pool = listener.pool.as_ref()?;
    upstream::connect(pool, shared.next_turn(), route, &shared.environment).await
}

/// Whether requests get `X-Forwarded-For`: not in PROXY pools, whatever the listener says.
pub(super) fn inserts_x_forwarded_for(listener: &Listener) -> bool {
    listener.insert_x_forwarded_for
        && listener.pool.as_ref().is_some_and(|pool| match pool.protocol {
            PoolProtocol::Http => true,
            PoolProtocol::Tcp | PoolProtocol::Proxy | PoolProtocol::ProxyV2 => false,
        })
}

fn admits(listener: &Listener, client: IpAddr) -> bool {
    listener.allowed_cidrs.is_empty()
        || listener.allowed_cidrs.iter().any(|network| network.contains(&client))
}

/// Where the load balancer sees a connection arrive. A floating IP is translated before it.
fn destination(listener: &Listener, address: IpAddr) -> SocketAddr {
    let known = listener.addresses.iter().find(|known| known.reached_at == address);
    SocketAddr::new(known.map_or(address, |known| known.seen_as), listener.port)
}

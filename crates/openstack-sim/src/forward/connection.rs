//! One connection from a client through a listener to a member.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::http;
use super::proxy_header;
use super::route::{Frontend, Mode, Route};
use crate::sim::Sim;

/// How long a member may take to accept a connection: Octavia's default `timeout_member_connect`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client's connection and what the load balancer knows about it.
pub(crate) struct Connection<'a> {
    pub(crate) sim: &'a Sim,
    pub(crate) frontend: &'a Frontend,
    /// The client as the load balancer sees it.
    pub(crate) client: SocketAddr,
    /// How many connections came before.
    pub(crate) turn: usize,
}

impl Connection<'_> {
    /// Carries a connection until one side closes it. A client that may not connect is closed at once; a real load balancer
    /// lets it hang.
    ///
    /// # Errors
    /// Either side went away.
    pub(crate) async fn carry(&self, mut stream: TcpStream, route: &Route) -> io::Result<()> {
        if !route.allows(self.client.ip()) {
            tracing::debug!(client = %self.client, port = self.frontend.port, "not in allowed_cidrs");
            return Ok(());
        }
        match route.mode {
            Mode::Stream => {
                let Some(mut member) = self.connect(route).await else { return Ok(()) };
                self.send_proxy_header(&mut member, route).await?;
                copy_bidirectional(&mut stream, &mut member).await?;
            }
            Mode::Http => {
                let (head, body) = http::read_head(&mut stream).await?;
                let Some(mut member) = self.connect(route).await else {
                    return stream.write_all(http::UNAVAILABLE).await;
                };
                self.send_proxy_header(&mut member, route).await?;
                let head = http::rewrite(&head, &route.insert, self.client.ip(), self.frontend.port);
                member.write_all(&head).await?;
                member.write_all(&body).await?;
                copy_bidirectional(&mut stream, &mut member).await?;
            }
        }
        Ok(())
    }

    /// The first member that accepts, beginning with the one whose turn it is.
    async fn connect(&self, route: &Route) -> Option<TcpStream> {
        for (address, port) in route.candidates(self.client.ip(), self.turn) {
            let Some(target) = self.sim.forwarding().member_socket(&address, port) else { continue };
            if let Ok(Ok(member)) = timeout(CONNECT_TIMEOUT, TcpStream::connect(target)).await {
                return Some(member);
            }
            tracing::debug!(address, port, "member does not accept connections");
        }
        None
    }

    async fn send_proxy_header(&self, member: &mut TcpStream, route: &Route) -> io::Result<()> {
        let Some(version) = route.proxy else { return Ok(()) };
        let destination = match self.frontend.vip.parse() {
            Ok(vip) => SocketAddr::new(vip, self.frontend.port),
            Err(_) => member.peer_addr()?,
        };
        member.write_all(&proxy_header::header(version, self.client, destination)).await
    }
}

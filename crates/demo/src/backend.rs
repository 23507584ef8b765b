//! The ingress pod of the demo: an HTTP server that requires the PROXY header, as nginx does with `proxy_protocol`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use openstack_ccm_core::lock::lock;
use ppp::{HeaderResult, PartialResult as _, v1, v2};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// Longest PROXY header plus request that is read.
const MAX_REQUEST_SIZE: usize = 4096;

/// A running backend.
pub(super) struct Backend {
    /// The address on which it listens.
    pub(super) address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    _server: AbortOnDropHandle<()>,
}

impl Backend {
    /// Starts the backend on a free port.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port for the backend")?;
        let address = listener.local_addr()?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let server = tokio::spawn(serve(listener, Arc::clone(&log)));
        Ok(Self { address, log, _server: AbortOnDropHandle::new(server) })
    }

    /// Takes the log lines since the last call.
    pub(super) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.log))
    }
}

async fn serve(listener: TcpListener, log: Arc<Mutex<Vec<String>>>) {
    while let Ok((mut stream, peer)) = listener.accept().await {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            let line = match answer(&mut stream).await {
                Ok(client) => format!("client={client} \"GET / HTTP/1.1\" 200"),
                Err(error) => format!("{error:#}, client: {}", peer.ip()),
            };
            // The line is logged before the connection closes, so that a client that sees it closed finds the line.
            lock(&log).push(line);
            drop(stream);
        });
    }
}

/// Reads header and request, answers, and returns the client's address from the header.
async fn answer(stream: &mut TcpStream) -> anyhow::Result<IpAddr> {
    let mut received = Vec::new();
    let (client, header_length) = loop {
        let count = stream.read_buf(&mut received).await.context("the connection broke")?;
        anyhow::ensure!(count > 0, "the connection was closed before the header was complete");
        let result = HeaderResult::parse(&received);
        if result.is_complete() {
            // As in nginx: log the first line received instead, and close the connection without an answer.
            break client_of(&result).with_context(|| broken_header(&received))?;
        }
        anyhow::ensure!(received.len() < MAX_REQUEST_SIZE, "the header is too long");
    };
    while !received[header_length..].windows(4).any(|window| window == b"\r\n\r\n") {
        let count = stream.read_buf(&mut received).await.context("the connection broke")?;
        anyhow::ensure!(count > 0 && received.len() < MAX_REQUEST_SIZE, "the request is not complete");
    }
    let body = format!("client={client}\n");
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes()).await.context("the answer could not be sent")?;
    Ok(client)
}

fn client_of(result: &HeaderResult<'_>) -> Option<(IpAddr, usize)> {
    match result {
        HeaderResult::V1(Ok(header)) => match header.addresses {
            v1::Addresses::Tcp4(addresses) => Some((addresses.source_address.into(), header.header.len())),
            v1::Addresses::Tcp6(addresses) => Some((addresses.source_address.into(), header.header.len())),
            v1::Addresses::Unknown => None,
        },
        HeaderResult::V2(Ok(header)) => match header.addresses {
            v2::Addresses::IPv4(addresses) => Some((addresses.source_address.into(), header.len())),
            v2::Addresses::IPv6(addresses) => Some((addresses.source_address.into(), header.len())),
            v2::Addresses::Unspecified | v2::Addresses::Unix(_) => None,
        },
        HeaderResult::V1(Err(_)) | HeaderResult::V2(Err(_)) => None,
    }
}

fn broken_header(received: &[u8]) -> String {
    let line = received.split(|byte| *byte == b'\r').next().unwrap_or(received);
    format!("broken header: \"{}\" while reading PROXY protocol", String::from_utf8_lossy(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::fetch;

    async fn send(backend: &Backend, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(backend.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = String::new();
        // A strict server may reset the connection instead of answering.
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    #[tokio::test]
    async fn a_request_without_the_header_is_refused_and_logged() {
        let backend = Backend::start().await.unwrap();
        assert!(fetch(None, backend.address, "x").await.is_err());
        let log = backend.take_log();
        assert!(
            log[0].starts_with("broken header: \"GET / HTTP/1.1\" while reading PROXY protocol"),
            "{log:?}"
        );
    }

    #[tokio::test]
    async fn the_address_in_the_header_is_the_client() {
        let backend = Backend::start().await.unwrap();
        let request = b"PROXY TCP4 192.0.2.7 192.0.2.9 1000 80\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";
        assert!(send(&backend, request).await.ends_with("client=192.0.2.7\n"));
    }
}

//! The HTTPS server, and the connections of every server here.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::crypto::CryptoProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::certificate::Certificate;
use crate::args::{ServingArgs, TlsVersion, tls};

/// Longest TLS handshake: a client that does not finish it must not hold a connection for ever.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for the head of each request: an idle connection is closed. As long as in other
/// cloud-controller-managers, and longer than scrapers pause.
const HEAD_TIMEOUT: Duration = Duration::from_secs(90);
/// Connections that may wait to be accepted.
const ACCEPT_BACKLOG: u32 = 1024;
/// Maximum of open connections. One more closes the oldest: a probe is new and short, a connection held open is not.
const MAX_CONNECTIONS: usize = 256;

/// Returns the TLS configuration.
pub(super) fn tls(arguments: &ServingArgs, certificate: Arc<Certificate>) -> anyhow::Result<ServerConfig> {
    let cipher_suites = tls::cipher_suites(&arguments.tls_cipher_suites)?;
    let kx_groups = tls::key_exchanges(&arguments.tls_curve_preferences)?;
    let provider = CryptoProvider { cipher_suites, kx_groups, ..rustls::crypto::ring::default_provider() };
    let provider = Arc::new(provider);
    // Without a suite of TLS 1.2, only TLS 1.3 can be offered.
    let only_newest = arguments.tls_min_version == TlsVersion::Tls13
        || provider.cipher_suites.iter().all(|suite| suite.tls13().is_some());
    let versions: &[&SupportedProtocolVersion] = if only_newest { &[&TLS13] } else { &[&TLS13, &TLS12] };
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .context("no cipher suite is allowed by both --tls-min-version and --tls-cipher-suites")?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    Ok(config)
}

/// Binds the port.
pub(super) fn bind(arguments: &ServingArgs) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(arguments.bind_address, arguments.secure_port);
    let listen = || {
        let socket = if address.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(arguments.permit_port_sharing)?;
        socket.bind(address)?;
        socket.listen(ACCEPT_BACKLOG)
    };
    listen().with_context(|| {
        format!("the health and metrics endpoints cannot listen on {address} (--bind-address, --secure-port)")
    })
}

/// Serves until `stop` is cancelled.
pub(super) async fn serve(listener: TcpListener, tls: ServerConfig, router: Router, stop: CancellationToken) {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    accept(listener, stop, |stream| connection(acceptor.clone(), stream, router.clone())).await;
}

/// Serves the connections to a port until `stop` is cancelled.
pub(crate) async fn accept<C>(listener: TcpListener, stop: CancellationToken, serve: impl Fn(TcpStream) -> C)
where
    C: Future<Output = ()> + Send + 'static,
{
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                open.retain(|connection| !connection.is_finished());
                if open.len() >= MAX_CONNECTIONS
                    && let Some(oldest) = open.pop_front()
                {
                    oldest.abort();
                }
                open.push_back(tokio::spawn(serve(stream)).abort_handle());
            }
            // Most likely out of file descriptors: give other connections the time to close.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn connection(acceptor: TlsAcceptor, stream: TcpStream, router: Router) {
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await else {
        return;
    };
    answer(stream, router).await;
}

/// Answers the requests of one connection until it ends.
pub(crate) async fn answer(stream: impl AsyncRead + AsyncWrite + Send + Unpin, router: Router) {
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection to the health endpoints ended early");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use rstest::rstest;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn of_too_many_connections_the_oldest_gives_way() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/livez", get(async || "ok"));
        let stop = CancellationToken::new();
        let serving =
            tokio::spawn(accept(listener, stop.clone(), move |stream| answer(stream, router.clone())));
        let mut held = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            held.push(TcpStream::connect(address).await.unwrap());
        }
        let mut probe = TcpStream::connect(address).await.unwrap();
        probe.write_all(REQUEST.as_bytes()).await.unwrap();
        let mut received = [0; 12];
        probe.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"HTTP/1.1 200");
        let patience = Duration::from_secs(60);
        let closed = tokio::time::timeout(patience, held[0].read(&mut received)).await;
        assert_eq!(closed.expect("the oldest is open still").unwrap_or_default(), 0);
        stop.cancel();
        serving.await.unwrap();
    }

    const REQUEST: &str = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

    #[rstest]
    #[case::nothing("", 0)]
    #[case::half_a_head("GET /livez HTTP/1.1\r\nHost:", 0)]
    #[case::a_request_and_no_other(REQUEST, 1)]
    #[case::two_requests(&REQUEST.repeat(2), 2)]
    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_no_more_is_let_go(#[case] sent: &str, #[case] answers: usize) {
        let (mut client, server) = duplex(1024);
        let router = Router::new().route("/livez", get(async || "ok"));
        let connection = tokio::spawn(answer(server, router));
        client.write_all(sent.as_bytes()).await.unwrap();
        let (start, mut received) = (Instant::now(), String::new());
        client.read_to_string(&mut received).await.unwrap();
        assert_eq!(received.matches("200 OK").count(), answers, "{received}");
        assert_eq!(start.elapsed().as_secs(), HEAD_TIMEOUT.as_secs());
        connection.await.unwrap();
    }
}

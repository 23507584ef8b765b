//! The simulator on a TCP port: each service below a path prefix that is its catalog type.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::sim::{ConnectionDropped, Sim};

/// A running server; it stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    _stop: DropGuard,
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Sim {
    /// Serves all services on one TCP port, for example `http://ADDRESS/load-balancer/v2.0/lbaas/loadbalancers`, and points
    /// the catalog there. Port 0 takes a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn serve(&self, address: SocketAddr) -> io::Result<Server> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        self.set_base_url(&format!("http://{address}"));
        let stop = CancellationToken::new();
        tokio::spawn(accept(self.clone(), listener, stop.clone()));
        Ok(Server { address, _stop: stop.drop_guard() })
    }
}

async fn accept(sim: Sim, listener: TcpListener, stop: CancellationToken) {
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    continue;
                }
            },
        };
        let face = TowerToHyperService::new(Face { sim: sim.clone() });
        let stop = stop.clone();
        tokio::spawn(async move {
            let builder = Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection(TokioIo::new(stream), face);
            tokio::select! {
                () = stop.cancelled() => {}
                // An error here is a client that went away, or a connection that a fault closed.
                _ended = connection => {}
            }
        });
    }
}

/// Strips the prefix and hands the request to the simulator. An error makes hyper close the connection without an answer.
#[derive(Debug, Clone)]
struct Face {
    sim: Sim,
}

impl<B> tower::Service<Request<B>> for Face
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = ConnectionDropped;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let sim = self.sim.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let body = body.collect().await.map_err(|_| ConnectionDropped)?.to_bytes();
            let target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
            let Some((service, rest)) = split(&target) else {
                return Ok(not_found());
            };
            parts.uri = rest.parse().map_err(|_| ConnectionDropped)?;
            let response = sim.call(&service, Request::from_parts(parts, body)).await?;
            Ok(response.map(Full::new))
        })
    }
}

/// The service of a path, and what is left of the path for it.
fn split(target: &str) -> Option<(String, String)> {
    let target = target.trim_start_matches('/');
    let end = target.find(['/', '?']).unwrap_or(target.len());
    let (service, rest) = target.split_at(end);
    crate::service::Service::from_catalog_type(service)?;
    let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    Some((service.to_owned(), rest))
}

fn not_found() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"no such service\n")));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/network/v2.0/ports?limit=1", Some(("network", "/v2.0/ports?limit=1")))]
    #[case("/load-balancer", Some(("load-balancer", "/")))]
    #[case("/identity?x", Some(("identity", "/?x")))]
    #[case("/image/v2", None)]
    fn the_first_segment_names_the_service(#[case] target: &str, #[case] expected: Option<(&str, &str)>) {
        let expected = expected.map(|(service, rest)| (service.to_owned(), rest.to_owned()));
        assert_eq!(split(target), expected);
    }
}

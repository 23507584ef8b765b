//! What lies between a client and the network: the rate limit, and the metrics.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::{Request, Response};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use super::limit::RequestLimit;
use super::metrics::RequestMetrics;
use super::unanswered::Unanswered;

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Puts the limit and the metrics over a client's connection.
#[derive(Clone, Debug)]
pub(super) struct RequestLayer {
    pub(super) limit: RequestLimit,
    pub(super) metrics: RequestMetrics,
    /// Host and port of the API server.
    pub(super) host: String,
    /// Address of the API server, for errors.
    pub(super) server: String,
}

impl<S> Layer<S> for RequestLayer {
    type Service = LimitedRequests<S>;

    fn layer(&self, inner: S) -> Self::Service {
        LimitedRequests { inner, layer: self.clone(), turn: Turn::None }
    }
}

/// Whether the next request may go out.
enum Turn {
    /// Nobody has asked.
    None,
    /// It has to wait.
    Waiting { since: Instant, wait: Waiting },
    /// It may, after having waited since then.
    Free { since: Instant },
}

/// A connection with a limit and metrics.
pub(super) struct LimitedRequests<S> {
    inner: S,
    layer: RequestLayer,
    turn: Turn,
}

impl<S, Answer> Service<Request<Body>> for LimitedRequests<S>
where
    S: Service<Request<Body>, Response = Response<Answer>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        loop {
            match &mut self.turn {
                Turn::None => {
                    let limit = self.layer.limit.clone();
                    let wait: Waiting = Box::pin(async move { limit.wait().await });
                    self.turn = Turn::Waiting { since: Instant::now(), wait };
                }
                Turn::Waiting { since, wait } => {
                    ready!(wait.as_mut().poll(context));
                    self.turn = Turn::Free { since: *since };
                }
                Turn::Free { .. } => return self.inner.poll_ready(context).map_err(Into::into),
            }
        }
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let RequestLayer { metrics, host, server, .. } = self.layer.clone();
        let method = request.method().clone();
        if let Turn::Free { since } = std::mem::replace(&mut self.turn, Turn::None) {
            metrics.waited(&method, &host, since.elapsed());
        }
        let start = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            metrics.ended(&method, &host, code, start.elapsed());
            answer.map_err(|error| Unanswered::explain(&server, error.into()))
        })
    }
}

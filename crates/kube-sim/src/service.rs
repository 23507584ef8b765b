//! The face for clients in the same process: no sockets, so that a paused clock works.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt as _;

use crate::answer::SimBody;
use crate::handler;
use crate::shared::Shared;

/// Serves requests of one client. Cheap to copy. An error stands for a broken connection, which only a
/// [`Fault`](crate::Fault) causes.
#[derive(Debug, Clone)]
pub struct SimService {
    shared: Arc<Shared>,
}

impl SimService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl<B> tower::Service<Request<B>> for SimService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<SimBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<SimBody>>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            handler::handle(shared, parts, body).await
        })
    }
}

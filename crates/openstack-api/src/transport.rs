//! The interface between typed calls and HTTP.
//!
//! Code above it uses a [`Service`], a path and a body; code below it handles tokens, catalogs and sockets. A test replaces it by
//! an in-process simulator with [`FnTransport`].

use std::fmt;
use std::future::Future;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};
use openstack_ccm_core::permit::{NotPermitted, Permit};

pub use crate::error::TransportError;
pub use crate::service::Service;

/// One HTTP request to a service.
#[derive(Clone, Debug)]
pub struct Request {
    /// The service that answers.
    pub service: Service,
    /// HTTP method.
    pub method: Method,
    /// Path from the root of the service, with its version and already percent-encoded:
    /// `/v2.0/lbaas/loadbalancers`, `/v2.0/ports`, `/v2.1/servers/<id>`, `/v1/containers/<id>`, `/`.
    pub path: String,
    /// Query pairs in order, not encoded.
    pub query: Vec<(String, String)>,
    /// Headers besides the token, which the transport adds.
    pub headers: HeaderMap,
    /// JSON body; `None` sends none.
    pub body: Option<Bytes>,
    /// The permission to send the request; absent where it only reads.
    pub permit: Option<Permit>,
}

/// The answer to a [`Request`], of any status.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: StatusCode,
    /// Headers as received.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

/// Carries requests to OpenStack.
#[async_trait]
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends one request and reads the whole answer.
    ///
    /// # Errors
    /// There is no answer. An answer of any HTTP status is an `Ok`.
    async fn send(&self, request: Request) -> Result<Response, TransportError>;
}

type SendFn = dyn Fn(Request) -> BoxFuture<'static, Result<Response, TransportError>> + Send + Sync;

/// A transport made from a function, for tests with an in-process simulator.
///
/// ```
/// use http::StatusCode;
/// use openstack_ccm_openstack_api::transport::{FnTransport, Response};
///
/// let transport = FnTransport::new(|request| async move {
///     assert_eq!(request.path, "/v2.0/ports");
///     Ok(Response { status: StatusCode::OK, headers: Default::default(), body: r#"{"ports":[]}"#.into() })
/// });
/// # let _ = transport;
/// ```
pub struct FnTransport {
    send: Box<SendFn>,
}

impl FnTransport {
    /// Wraps `send`, which is called once for every request.
    pub fn new<F, A>(send: F) -> Self
    where
        F: Fn(Request) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Response, TransportError>> + Send + 'static,
    {
        Self { send: Box::new(move |request| Box::pin(send(request))) }
    }

    /// Wraps a function that takes the service's catalog type and a plain `http` request whose URI is path and query, as a
    /// simulator does.
    pub fn http<F, A>(send: F) -> Self
    where
        F: Fn(&'static str, http::Request<Bytes>) -> A + Send + Sync + 'static,
        A: Future<Output = http::Response<Bytes>> + Send + 'static,
    {
        Self::new(move |request| {
            let service = request.service;
            let answer = request.into_http().map(|http| send(service.catalog_type(), http));
            async move {
                let answer =
                    answer.map_err(|source| TransportError::Request { service, source: source.into() })?;
                Ok(answer.await.into())
            }
        })
    }
}

impl fmt::Debug for FnTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FnTransport")
    }
}

#[async_trait]
impl Transport for FnTransport {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        (self.send)(request).await
    }
}

impl Request {
    /// Returns whether the request may change something.
    pub fn writes(&self) -> bool {
        self.method != Method::GET && self.method != Method::HEAD
    }

    /// Checks the permission; to be called right before the request is sent.
    ///
    /// # Errors
    /// The request writes, but no write is permitted now.
    pub fn check_permit(&self) -> Result<(), TransportError> {
        let checked = match &self.permit {
            _ if !self.writes() => Ok(()),
            Some(permit) => permit.check(),
            None => Err(NotPermitted::NotAsked),
        };
        checked.map_err(TransportError::NotPermitted)
    }

    /// Returns path and encoded query, as in an HTTP request line.
    pub fn path_and_query(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        format!("{}?{query}", self.path)
    }

    /// Converts the request into the `http` crate's type, with path and query as its URI.
    ///
    /// # Errors
    /// The path is not a valid URI.
    pub fn into_http(self) -> Result<http::Request<Bytes>, http::Error> {
        let uri = self.path_and_query();
        let mut request =
            http::Request::builder().method(self.method).uri(uri).body(self.body.unwrap_or_default())?;
        *request.headers_mut() = self.headers;
        Ok(request)
    }
}

impl From<http::Response<Bytes>> for Response {
    fn from(response: http::Response<Bytes>) -> Self {
        let (parts, body) = response.into_parts();
        Self { status: parts.status, headers: parts.headers, body }
    }
}

//! A request as the services see it: split into segments and parameters, its body not yet read as JSON.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

use crate::reply::Reply;
use crate::service::Service;
use crate::world::World;
use crate::world::identity::Caller;

/// One request to one service.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The service that is asked.
    pub(crate) service: Service,
    pub(crate) method: Method,
    /// The path below the service root, beginning with `/`.
    pub(crate) path: String,
    /// The query as it was sent.
    pub(crate) raw_query: String,
    /// The decoded query parameters in their order.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    /// The body as sent.
    pub(crate) body: Bytes,
}

impl Request {
    /// Splits an HTTP request whose path is relative to the service root.
    pub(crate) fn new(service: Service, request: http::Request<Bytes>) -> Self {
        let (parts, body) = request.into_parts();
        let raw_query = parts.uri.query().unwrap_or_default().to_owned();
        let query = url::form_urlencoded::parse(raw_query.as_bytes()).into_owned().collect();
        let path = match parts.uri.path() {
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        Self { service, method: parts.method, path, raw_query, query, headers: parts.headers, body }
    }

    /// Who sent it, as the authentication middleware of every service finds out.
    ///
    /// # Errors
    /// The answer to a token that is missing, unknown, revoked or expired.
    pub(crate) fn caller(&self, world: &World) -> Result<Caller, Reply> {
        let caller = self.header("x-auth-token").and_then(|token| world.caller(token));
        caller.ok_or_else(|| Reply::unauthorized(&world.identity_url()))
    }

    /// The path's segments without empty ones.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.split('/').filter(|segment| !segment.is_empty()).collect()
    }

    /// The first value of a query parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a query parameter.
    pub(crate) fn parameters(&self, name: &str) -> Vec<&str> {
        self.query.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    /// A header's value when it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as JSON; `None` when it is not.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Whether the body has a text.
    pub(crate) fn has(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.body).contains(text)
    }

    /// Whether the request asks for a change.
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
    }
}

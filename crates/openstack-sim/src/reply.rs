//! What a service answers.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use serde_json::{Value, json};

/// The answer to a request, or a refusal: both leave by the same door.
pub(crate) type Answer = Result<Reply, Reply>;

/// Status, headers and body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// Headers beside the content type.
    pub(crate) headers: Vec<(HeaderName, String)>,
    /// The body; where there is none, there is no content type either.
    pub(crate) body: Option<Value>,
}

impl Reply {
    /// A JSON answer.
    pub(crate) fn json(status: StatusCode, body: Value) -> Self {
        Self { status, headers: Vec::new(), body: Some(body) }
    }

    /// A page for people.
    pub(crate) fn page(status: StatusCode, html: &str) -> Self {
        Self { status, headers: vec![(CONTENT_TYPE, "text/html".to_owned())], body: Some(json!(html)) }
    }

    /// A JSON answer with status 200.
    pub(crate) fn ok(body: Value) -> Self {
        Self::json(StatusCode::OK, body)
    }

    /// A JSON answer with status 201.
    pub(crate) fn created(body: Value) -> Self {
        Self::json(StatusCode::CREATED, body)
    }

    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: None }
    }

    /// Adds a header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The 401 that every service's authentication middleware gives.
    pub(crate) fn unauthorized(identity_url: &str) -> Self {
        Self::json(
            StatusCode::UNAUTHORIZED,
            json!({"error": {
                "code": 401,
                "title": "Unauthorized",
                "message": "The request you have made requires authentication.",
            }}),
        )
        .with_header(WWW_AUTHENTICATE, format!("Keystone uri=\"{identity_url}\""))
    }

    /// The body of the shape that Octavia's and Barbican's routing layers use: code, title, description.
    pub(crate) fn titled(status: StatusCode, description: &str) -> Self {
        let title = status.canonical_reason().unwrap_or_default();
        Self::json(status, json!({"code": status.as_u16(), "title": title, "description": description}))
    }

    /// The JSON of the body, `Null` when there is none.
    pub(crate) fn value(&self) -> Value {
        self.body.clone().unwrap_or_default()
    }

    /// The answer as it goes over the wire.
    pub(crate) fn into_http(self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = self.status;
        match self.body {
            Some(Value::String(page)) if self.headers.iter().any(|(name, _)| *name == CONTENT_TYPE) => {
                *response.body_mut() = Bytes::from(page);
            }
            Some(body) => {
                *response.body_mut() = Bytes::from(body.to_string());
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            None => {}
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

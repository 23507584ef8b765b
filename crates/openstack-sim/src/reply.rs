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
    /// The status.
    pub(crate) status: StatusCode,
    /// Headers beside the content type.
    pub(crate) headers: Vec<(HeaderName, String)>,
    /// The body.
    pub(crate) body: Body,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// No body and no content type.
    Empty,
    /// JSON.
    Json(Value),
    /// Plain text, such as the payload of a secret.
    Text(String),
}

impl Reply {
    /// A JSON answer.
    pub(crate) fn json(status: StatusCode, body: Value) -> Self {
        Self { status, headers: Vec::new(), body: Body::Json(body) }
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
        Self { status, headers: Vec::new(), body: Body::Empty }
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
        match &self.body {
            Body::Json(value) => value.clone(),
            Body::Text(text) => Value::String(text.clone()),
            Body::Empty => Value::Null,
        }
    }

    /// The answer as it goes over the wire.
    pub(crate) fn into_http(self) -> Response<Bytes> {
        let (content_type, body) = match self.body {
            Body::Empty => (None, Bytes::new()),
            Body::Json(value) => (Some("application/json"), Bytes::from(value.to_string())),
            Body::Text(text) => (Some("text/plain"), Bytes::from(text)),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        if let Some(content_type) = content_type {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

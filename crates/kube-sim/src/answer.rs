//! Answers on their way out.

use std::io;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::Value;

use crate::failure::Failure;

/// The body of an answer: whole, or lines of a watch as they come. It fails when the connection is broken on purpose.
pub type SimBody = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) type Answer = Response<SimBody>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

fn whole(status: u16, content_type: HeaderValue, body: impl Into<Bytes>) -> Answer {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(header::CONTENT_TYPE, content_type);
    answer
}

/// A JSON document.
pub(crate) fn json(status: u16, body: &Value) -> Answer {
    // A value is always JSON.
    whole(status, JSON, serde_json::to_vec(body).unwrap_or_default())
}

/// A JSON document with `Warning` headers.
pub(crate) fn json_with_warnings(status: u16, body: &Value, warnings: &[String]) -> Answer {
    let mut answer = json(status, body);
    for warning in warnings {
        let text = format!("299 - {}", crate::go_text::quote(warning));
        if let Ok(value) = HeaderValue::from_str(&text) {
            answer.headers_mut().append(header::WARNING, value);
        }
    }
    answer
}

/// Plain text.
pub(crate) fn text(status: u16, body: &'static str) -> Answer {
    whole(status, TEXT, body)
}

/// The answer to a path that nothing is served at.
pub(crate) fn unknown_path() -> Answer {
    text(404, "404 page not found\n")
}

/// A refusal.
pub(crate) fn failure(failure: &Failure) -> Answer {
    with_retry_after(json(failure.code, &failure.to_status()), failure.retry_after())
}

pub(crate) fn with_retry_after(mut answer: Answer, seconds: Option<u64>) -> Answer {
    if let Some(seconds) = seconds {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

/// Lines that come one by one.
pub(crate) fn lines(lines: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Answer {
    let mut answer = Response::new(StreamBody::new(lines.map(|line| line.map(Frame::data))).boxed_unsync());
    answer.headers_mut().insert(header::CONTENT_TYPE, JSON);
    answer
}

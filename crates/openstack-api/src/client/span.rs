//! The span of one HTTP exchange, for traces. It has the name of the call and no address, query, header or body, so that
//! nothing in it is secret.

use tracing::Span;
use tracing::field::Empty;

use crate::error::ApiError;
use crate::transport::{Request, Response};

/// The span of a request. Names of fields are those of OpenTelemetry
/// (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/>).
pub(super) fn of(call: &'static str, request: &Request) -> Span {
    tracing::debug_span!(
        "openstack",
        otel.name = call,
        otel.kind = "client",
        otel.status_code = Empty,
        openstack.service = request.service.catalog_type(),
        http.request.method = request.method.as_str(),
        http.response.status_code = Empty,
        "error.type" = Empty,
    )
}

/// Notes how it ended.
pub(super) fn end(span: &Span, result: &Result<Response, ApiError>) {
    match result {
        Ok(response) => {
            span.record("http.response.status_code", response.status.as_u16());
        }
        Err(error) => {
            if let ApiError::Status { status, .. } = error {
                span.record("http.response.status_code", status.as_u16());
            }
            span.record("error.type", error.kind().as_str());
            span.record("otel.status_code", "ERROR");
        }
    }
}

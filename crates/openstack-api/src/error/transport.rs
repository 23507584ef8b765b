//! Why there is no answer.

use std::sync::Arc;

use super::{AuthError, Cause};
use crate::service::Service;

/// Why there is no answer. The distinction that matters: could the request have taken effect?
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// No connection: the request was certainly not processed.
    #[error("could not connect to the {service} service at {host}")]
    Connect {
        /// Service that was called.
        service: Service,
        /// Host and port of the endpoint.
        host: String,
        /// What the network said.
        source: Cause,
    },
    /// The request went out and no complete answer came back: it may have been processed.
    #[error("the {service} service at {host} gave no complete answer{}", if *.timed_out { " in time" } else { "" })]
    LostAnswer {
        /// Service that was called.
        service: Service,
        /// Host and port of the endpoint.
        host: String,
        /// Whether the time-out ended the wait, not the connection.
        timed_out: bool,
        /// What the network said.
        source: Cause,
    },
    /// No token to send the request with.
    #[error("could not log in to OpenStack")]
    Auth(#[source] Arc<AuthError>),
    /// The catalog has no such endpoint.
    #[error(
        "the service catalog has no {interface} endpoint of type {service} in region {}; check region and os-endpoint-type",
        region.as_deref().unwrap_or("(any)")
    )]
    NoEndpoint {
        /// Service that was looked for.
        service: Service,
        /// Region of the configuration; `None` means any.
        region: Option<String>,
        /// `public`, `internal` or `admin`.
        interface: &'static str,
    },
    /// The request could not be built.
    #[error("could not build a request for the {service} service")]
    Request {
        /// Service that was to be called.
        service: Service,
        /// What is wrong with it.
        source: Cause,
    },
}

//! Errors of a call, and their meaning for the caller.

mod classification;
mod fault;
mod login;

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use openstack::InterfaceType;
use openstack_ccm_core::permit::NotPermitted;

pub use classification::{ConflictCause, ErrorKind};
pub use fault::Fault;
pub use login::{AuthError, TlsError};

use crate::service::Service;

/// The cause of an error: from the network, a parser or the `openstack` crate.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// A failed call. `Display` never repeats the source, and never contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The service answered with an error status.
    #[error("{call}: {} {fault}{}", status.as_u16(), request_id_suffix(request_id.as_deref()))]
    Status {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// Method and path.
        sent: String,
        /// Whether the service answers other calls with success.
        others_well: bool,
        status: StatusCode,
        /// The service's description of the error.
        fault: Box<Fault>,
        /// `X-Openstack-Request-Id` (or Nova's `X-Compute-Request-Id`), to find the request in the service's log.
        request_id: Option<String>,
        /// The pause that the service asks for.
        retry_after: Option<Duration>,
    },
    /// The call got no answer.
    #[error("{call}: no answer")]
    Transport {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// The cause.
        source: TransportError,
    },
    /// The answer does not conform to the API.
    #[error("{call}: the answer of the {service} service cannot be read")]
    Decode {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// The service that answered.
        service: Service,
        /// The error of the decoder.
        source: DecodeError,
    },
    /// The login failed, so there is no token.
    #[error("{call}: could not log in to OpenStack")]
    Auth {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// The cause, shared by all calls that waited for the same login.
        source: Arc<AuthError>,
    },
    /// The catalog does not list the service.
    #[error(
        "{call}: the service catalog has no {interface} endpoint of type {service} in region {}; check region and os-endpoint-type",
        region.as_deref().unwrap_or("(any)")
    )]
    NoEndpoint {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// The service without an endpoint.
        service: Service,
        /// Region of the configuration; `None` means any.
        region: Option<String>,
        /// `public`, `internal` or `admin`.
        interface: InterfaceType,
    },
    /// An id that no object can have: it is empty, or would change the path of the request. The call was not sent.
    #[error("{call}: {id:?} is not an id")]
    InvalidId {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// The given text.
        id: String,
    },
}

/// Why there is no answer. The variants differ in whether the request may have taken effect.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// No connection: the request was certainly not processed.
    #[error("could not connect to the {service} service at {host}")]
    Connect {
        /// Service that was called.
        service: Service,
        /// Host and port of the endpoint.
        host: String,
        /// The network error.
        source: Cause,
    },
    /// The request was sent but no complete answer arrived: the request may have been processed.
    #[error("the {service} service at {host} sent no complete answer{}", if *.timed_out { " in time" } else { "" })]
    LostAnswer {
        /// Service that was called.
        service: Service,
        /// Host and port of the endpoint.
        host: String,
        /// Whether the timeout ended the wait, and not the connection.
        timed_out: bool,
        /// The network error.
        source: Cause,
    },
    /// The answer exceeds the longest that is read. A requested change may have been made.
    #[error(
        "the {service} service at {host} answered with more than {} MiB, which is too much to read: check that this is the address of the \
         service",
        crate::body::MAX_ANSWER_SIZE >> 20
    )]
    TooLong {
        /// Service that was called.
        service: Service,
        /// Host and port of the endpoint.
        host: String,
    },
    /// There is no token for the request.
    #[error("could not log in to OpenStack")]
    Auth(#[source] Arc<AuthError>),
    /// The catalog has no such endpoint.
    #[error(
        "the service catalog has no {interface} endpoint of type {service} in region {}; check region and os-endpoint-type",
        region.as_deref().unwrap_or("(any)")
    )]
    NoEndpoint {
        /// The service without an endpoint.
        service: Service,
        /// Region of the configuration; `None` means any.
        region: Option<String>,
        /// `public`, `internal` or `admin`.
        interface: InterfaceType,
    },
    /// The request writes, but no write is permitted now.
    #[error(transparent)]
    NotPermitted(NotPermitted),
    /// The request could not be built.
    #[error("could not build a request for the {service} service")]
    Request {
        /// The service of the request.
        service: Service,
        /// The defect of the request.
        source: Cause,
    },
}

/// Why an answer cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The answer is not JSON, or an attribute has another type than documented.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The answer is an HTML page from a front end.
    #[error("the answer is an HTML page")]
    Html,
    /// The answer lacks the object that should contain everything.
    #[error("no {0:?} in the answer")]
    MissingRoot(String),
    /// The links between pages do not end.
    #[error("the list does not end after {0} pages")]
    EndlessPages(usize),
    /// The version document has no version that can be parsed.
    #[error("the version document lists no version that can be understood")]
    NoVersion,
}

fn request_id_suffix(request_id: Option<&str>) -> String {
    request_id.map(|id| format!(" (request {id})")).unwrap_or_default()
}

impl ApiError {
    pub(crate) fn from_transport(call: &'static str, error: TransportError) -> Self {
        match error {
            TransportError::Auth(source) => Self::Auth { call, source },
            TransportError::NoEndpoint { service, region, interface } => {
                Self::NoEndpoint { call, service, region, interface }
            }
            source @ (TransportError::Connect { .. }
            | TransportError::LostAnswer { .. }
            | TransportError::TooLong { .. }
            | TransportError::NotPermitted(_)
            | TransportError::Request { .. }) => Self::Transport { call, source },
        }
    }

    /// Returns whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Returns the name of the failed call, as in the metrics.
    pub const fn call(&self) -> &'static str {
        match self {
            Self::Status { call, .. }
            | Self::Transport { call, .. }
            | Self::Decode { call, .. }
            | Self::Auth { call, .. }
            | Self::NoEndpoint { call, .. }
            | Self::InvalidId { call, .. } => call,
        }
    }

    /// Returns method and path of the call, if the answer was an error status.
    pub fn sent(&self) -> Option<&str> {
        let Self::Status { sent, .. } = self else { return None };
        Some(sent)
    }

    /// Returns whether the token is refused for this call, but accepted for other calls to the service.
    pub fn is_of_this_call_alone(&self) -> bool {
        matches!(self, Self::Status { status: StatusCode::UNAUTHORIZED, others_well: true, .. })
    }

    /// Returns advice for a token that is refused for this call alone.
    pub fn access_advice(&self) -> Option<String> {
        let Self::Status { sent, .. } = self else { return None };
        self.is_of_this_call_alone().then(|| {
            format!(
                "the application credential can log in and make other calls, but its access rules do not allow {sent}: create an \
                 application credential with an access rule for this call, or without access rules (an existing one cannot be changed)"
            )
        })
    }

    /// Returns the HTTP status, if the answer was an error status.
    pub const fn status(&self) -> Option<StatusCode> {
        let Self::Status { status, .. } = self else { return None };
        Some(*status)
    }

    /// Returns the service's description, if the answer was an error status.
    pub fn fault(&self) -> Option<&Fault> {
        let Self::Status { fault, .. } = self else { return None };
        Some(fault)
    }

    /// Returns the pause that the service asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Auth { source, .. } => source.retry_after(),
            _ => None,
        }
    }
}

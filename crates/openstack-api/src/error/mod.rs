//! What can go wrong with a call, and what that means for the caller.

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

/// What lies below an error of the network, of a parser or of the `openstack` crate.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// A failed call. `Display` never repeats the source, and never holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The service answered with an error status.
    #[error("{call}: {} {fault}{}", status.as_u16(), request_id_suffix(request_id.as_deref()))]
    Status {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// Method and path.
        sent: String,
        /// Whether the service answers other calls well.
        others_well: bool,
        status: StatusCode,
        /// What the service says about it.
        fault: Box<Fault>,
        /// `X-Openstack-Request-Id` (or Nova's `X-Compute-Request-Id`), to find the request in the service's log.
        request_id: Option<String>,
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
    },
    /// There is no answer.
    #[error("{call}: no answer")]
    Transport {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// Why.
        source: TransportError,
    },
    /// The answer is not what the API promises.
    #[error("{call}: the answer of the {service} service cannot be read")]
    Decode {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// The service that answered.
        service: Service,
        /// Where the reading stopped.
        source: DecodeError,
    },
    /// No token could be had.
    #[error("{call}: could not log in to OpenStack")]
    Auth {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// Why. Shared by all calls that waited for the same login.
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
        /// Service that was looked for.
        service: Service,
        /// Region of the configuration; `None` means any.
        region: Option<String>,
        /// `public`, `internal` or `admin`.
        interface: InterfaceType,
    },
    /// An id that no object can have: it is empty or would change the path of the request. Nothing was sent.
    #[error("{call}: {id:?} is not an id")]
    InvalidId {
        /// Name of the call, as in the metrics.
        call: &'static str,
        /// The text given.
        id: String,
    },
}

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
    #[error("the {service} service at {host} sent no complete answer{}", if *.timed_out { " in time" } else { "" })]
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
    /// The answer is longer than any that is read. A change that was asked for may have been made.
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
        interface: InterfaceType,
    },
    /// It writes, and nothing may be written now.
    #[error(transparent)]
    NotPermitted(NotPermitted),
    /// The request could not be built.
    #[error("could not build a request for the {service} service")]
    Request {
        /// Service that was to be called.
        service: Service,
        /// What is wrong with it.
        source: Cause,
    },
}

/// Why an answer cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or an attribute of another type than documented.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// A page for people, which a front end sends.
    #[error("the answer is an HTML page")]
    Html,
    /// The object that the whole answer should be wrapped in is not there.
    #[error("no {0:?} in the answer")]
    MissingRoot(String),
    /// The links from page to page do not end.
    #[error("the list does not end after {0} pages")]
    EndlessPages(usize),
    /// No version in the version document can be understood.
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

    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Name of the call that failed, as in the metrics.
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

    /// Method and path of the call, if it was answered with an error status.
    pub fn sent(&self) -> Option<&str> {
        let Self::Status { sent, .. } = self else { return None };
        Some(sent)
    }

    /// Whether the token is refused for this call, and taken for others of the same service.
    pub fn is_of_this_call_alone(&self) -> bool {
        matches!(self, Self::Status { status: StatusCode::UNAUTHORIZED, others_well: true, .. })
    }

    /// What helps where the token is refused for this call alone.
    pub fn access_advice(&self) -> Option<String> {
        let Self::Status { sent, .. } = self else { return None };
        self.is_of_this_call_alone().then(|| {
            format!(
                "the application credential can log in and make other calls, but its access rules do not allow {sent}: create an \
                 application credential with an access rule for this call, or without access rules (an existing one cannot be changed)"
            )
        })
    }

    /// HTTP status, if there was an answer with an error status.
    pub const fn status(&self) -> Option<StatusCode> {
        let Self::Status { status, .. } = self else { return None };
        Some(*status)
    }

    /// What the service said, if it answered with an error status.
    pub fn fault(&self) -> Option<&Fault> {
        let Self::Status { fault, .. } = self else { return None };
        Some(fault)
    }

    /// How long the service asked to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Auth { source, .. } => source.retry_after(),
            _ => None,
        }
    }
}

//! Classifies errors. The status code is not enough: Octavia answers 403 for a quota and for a missing role, and 409 for its lock,
//! for a conflict and for Neutron's quota, so the text decides.

use http::StatusCode;

use super::{ApiError, AuthError, Fault, TransportError};

/// The meaning of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The object, or one that the request names, does not exist.
    NotFound,
    /// The object is locked, was changed meanwhile, or conflicts with another object.
    Conflict(ConflictCause),
    /// The project has used up its quota, or the network its addresses: the quota has to be raised or something deleted.
    Quota,
    /// The user lacks a role.
    Policy,
    /// The request is wrong, or asks for something that the service or its provider cannot do.
    BadRequest,
    /// Credentials or token are not accepted, even after a new login.
    Unauthorized,
    /// Too many requests; see [`ApiError::retry_after`].
    RateLimited,
    /// The service cannot be reached or is temporarily out of order. As far as is known the request was not processed, except
    /// behind a 502 of a proxy.
    Unavailable,
    /// The request was sent but the answer did not arrive: the request may have taken effect.
    LostAnswer,
    /// The service failed while processing this request (500); the effect is not known.
    ServerFault,
    /// The answer cannot be understood.
    Decode,
    /// The catalog has no endpoint of the service, or only one that redirects.
    NoEndpoint,
}

/// The three meanings of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConflictCause {
    /// Octavia's lock: the load balancer is PENDING or ERROR. PENDING ends by itself.
    Immutable,
    /// The object has another revision than the one that the request was based on. The caller should read it again.
    Stale,
    /// Another object is in the way: same port, same name, still in use, already exists.
    Other,
}

impl ErrorKind {
    /// Returns a short stable name for logs and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Conflict(ConflictCause::Immutable) => "immutable",
            Self::Conflict(ConflictCause::Stale) => "stale",
            Self::Conflict(ConflictCause::Other) => "conflict",
            Self::Quota => "quota",
            Self::Policy => "policy",
            Self::BadRequest => "bad_request",
            Self::Unauthorized => "unauthorized",
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
            Self::LostAnswer => "lost_answer",
            Self::ServerFault => "server_fault",
            Self::Decode => "decode",
            Self::NoEndpoint => "no_endpoint",
        }
    }
}

impl ApiError {
    /// Returns the meaning of the failure, on which callers decide.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Status { status, fault, .. } => of_status(*status, fault),
            Self::Transport { source, .. } => of_transport(source),
            Self::Decode { .. } => ErrorKind::Decode,
            Self::Auth { source, .. } => source.kind(),
            Self::NoEndpoint { .. } => ErrorKind::NoEndpoint,
            Self::InvalidId { .. } => ErrorKind::BadRequest,
        }
    }
}

fn of_transport(error: &TransportError) -> ErrorKind {
    match error {
        TransportError::Connect { .. } | TransportError::NotPermitted(_) => ErrorKind::Unavailable,
        TransportError::LostAnswer { .. } => ErrorKind::LostAnswer,
        TransportError::TooLong { .. } => ErrorKind::Decode,
        TransportError::Auth(source) => source.kind(),
        TransportError::NoEndpoint { .. } => ErrorKind::NoEndpoint,
        TransportError::Request { .. } => ErrorKind::BadRequest,
    }
}

impl AuthError {
    /// Returns the meaning of the failure, on which callers decide.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { status, fault, .. } => match of_status(*status, fault) {
                // Keystone refuses a login with 403 (locked account, receipt) as well as 401, and with 404 if the application
                // credential was deleted. This does not mean that an object of the cloud is absent.
                ErrorKind::Policy | ErrorKind::NotFound => ErrorKind::Unauthorized,
                other => other,
            },
            // A proxy without a Keystone behind it answers like this too; this does not mean that an object of the cloud is absent.
            Self::Unreachable { .. } | Self::NotKeystone { .. } => ErrorKind::Unavailable,
            Self::Decode { .. } | Self::TooLong { .. } | Self::NoSubjectToken => ErrorKind::Decode,
            Self::Redirected { .. } => ErrorKind::NoEndpoint,
            Self::InvalidAuthUrl { .. } | Self::Tls(_) | Self::HttpClient(_) | Self::Session(_) => {
                ErrorKind::BadRequest
            }
            Self::Expired => ErrorKind::Unauthorized,
        }
    }
}

fn of_status(status: StatusCode, fault: &Fault) -> ErrorKind {
    let text = fault.message.to_ascii_lowercase();
    match status {
        StatusCode::UNAUTHORIZED => ErrorKind::Unauthorized,
        _ if status.is_client_error() && is_exhausted(fault, &text) => ErrorKind::Quota,
        StatusCode::FORBIDDEN => ErrorKind::Policy,
        StatusCode::NOT_FOUND | StatusCode::GONE => ErrorKind::NotFound,
        StatusCode::CONFLICT => of_conflict(&text),
        StatusCode::PRECONDITION_FAILED => ErrorKind::Conflict(ConflictCause::Stale),
        StatusCode::PAYLOAD_TOO_LARGE if text.contains("too large") => ErrorKind::BadRequest,
        // Front ends of old limit rates with 413, and send the time in a header, in the body (`overLimit`), or not at all.
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => ErrorKind::RateLimited,
        // Octavia: the provider driver lacks the option.
        StatusCode::NOT_IMPLEMENTED => ErrorKind::BadRequest,
        StatusCode::INTERNAL_SERVER_ERROR => of_provider_report(fault, &text),
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Unavailable,
        StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => ErrorKind::LostAnswer,
        other if other.is_server_error() => ErrorKind::ServerFault,
        other if other.is_redirection() => ErrorKind::NoEndpoint,
        _ => ErrorKind::BadRequest,
    }
}

/// Classifies a failure of a provider. Octavia reports a refusal of Neutron as such: before version 19 every refusal, since then
/// only an address outside the subnet. Versions 10 and 12 quote Neutron; later ones name only the status of its answer, and then a
/// conflict may be an address in use or a used-up quota of ports.
fn of_provider_report(fault: &Fault, text: &str) -> ErrorKind {
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    if !(text.starts_with("provider '") && text.contains("' reports error: ")) {
        ErrorKind::ServerFault
    } else if is_exhausted(fault, text) {
        ErrorKind::Quota
    } else if says(&["conflictexception: 409", "already allocated"]) {
        ErrorKind::Conflict(ConflictCause::Other)
    } else if says(&["badrequestexception: 400", "is not a valid ip", "subnet not found"]) {
        ErrorKind::BadRequest
    } else {
        ErrorKind::ServerFault
    }
}

fn of_conflict(text: &str) -> ErrorKind {
    if text.contains("immutable") || text.starts_with("invalid state ") {
        ErrorKind::Conflict(ConflictCause::Immutable)
    } else {
        ErrorKind::Conflict(ConflictCause::Other)
    }
}

/// Neutron's error names for a used-up quota (409), network (409) and external network (400).
const EXHAUSTION: [&str; 3] = ["OverQuota", "IpAddressGenerationFailure", "ExternalIpAddressExhausted"];

/// Recognises exhaustion. Octavia: `Quota has been met for resources: …` (403); Neutron, and Octavia quoting it in a 409:
/// `Quota exceeded for resources: […].`, `No more IP addresses available on network …`; Nova: `Quota exceeded for …` (403).
fn is_exhausted(fault: &Fault, text: &str) -> bool {
    fault.name.as_deref().is_some_and(|name| EXHAUSTION.contains(&name))
        || ["quota has been met", "quota exceeded", "no more ip addresses available"]
            .iter()
            .any(|words| text.contains(words))
}

//! Errors of a login.

use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;

use super::{Cause, Fault};

/// A failed login. It contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Keystone answered with an error status.
    #[error("Keystone at {url} {} ({}): {fault}", deed(*status), status.as_u16())]
    Refused {
        /// The requested address.
        url: String,
        status: StatusCode,
        /// Keystone's description, which is the same for a wrong user, password or project.
        fault: Fault,
        /// The pause that Keystone asks for.
        retry_after: Option<Duration>,
    },
    /// The answer is not from Keystone, or not from this path of it.
    #[error(
        "{url} does not answer like Keystone ({}): check auth-url, which usually ends with /v3",
        status.as_u16()
    )]
    NotKeystone {
        /// The requested address.
        url: String,
        status: StatusCode,
    },
    /// A front end redirects the login. Redirects are not followed: the password goes only where the configuration says.
    #[error("{url} redirects to {to} ({}): redirects are not followed; set auth-url to {to}", status.as_u16())]
    Redirected {
        /// The requested address.
        url: String,
        status: StatusCode,
        /// The target, as an auth-url.
        to: String,
    },
    /// Keystone cannot be reached, or did not answer in time.
    #[error("keystone at {host} cannot be reached")]
    Unreachable {
        /// Host and port of the auth-url.
        host: String,
        /// The network error.
        source: Cause,
    },
    /// The answer exceeds the longest that is read.
    #[error(
        "keystone at {host} answered with more than {} MiB, which is too much to read: check that auth-url is the address of an identity \
         v3 service",
        crate::body::MAX_ANSWER_SIZE >> 20
    )]
    TooLong {
        /// Host and port of the auth-url.
        host: String,
    },
    /// Keystone's answer is not a token document.
    #[error("keystone's answer cannot be read: check that auth-url is the address of an identity v3 service")]
    Decode {
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// Keystone's answer has no `X-Subject-Token`.
    #[error("keystone's answer has no token in its X-Subject-Token header")]
    NoSubjectToken,
    /// The ready-made token of the configuration is no longer accepted and cannot be renewed.
    #[error(
        "the token of the configuration has expired and cannot be renewed; use a password or an application credential"
    )]
    Expired,
    /// The auth-url is not an address for a login.
    #[error("auth-url {url:?} must be an http or https address without user name and password")]
    InvalidAuthUrl {
        /// The given text, without a possible password.
        url: String,
    },
    /// CA or client certificate cannot be used.
    #[error("the TLS settings cannot be used")]
    Tls(#[source] TlsError),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built")]
    HttpClient(#[source] Cause),
    /// The session of the `openstack` crate cannot be built.
    #[error("the session cannot be built")]
    Session(#[source] Cause),
}

impl AuthError {
    /// Returns the pause that Keystone asked for.
    pub const fn retry_after(&self) -> Option<Duration> {
        let Self::Refused { retry_after, .. } = self else { return None };
        *retry_after
    }
}

/// Errors of the TLS settings.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("could not read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// No certificate in a CA bundle.
    #[error("the CA bundle of {origin} holds no certificate")]
    EmptyCaBundle {
        /// The file, or the key that holds the text.
        origin: String,
    },
    /// A certificate or key cannot be parsed.
    #[error("{origin} holds no valid PEM data")]
    Pem {
        /// The file, or the key that holds the text.
        origin: String,
        /// The error of the parser.
        source: Cause,
    },
}

/// Returns what Keystone did where it answered a login with this status: a server that fails refuses nothing.
fn deed(status: StatusCode) -> &'static str {
    if status.is_server_error() { "failed to answer the login" } else { "refused the login" }
}

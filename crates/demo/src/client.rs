//! One HTTP request of the demo.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::header::HOST;

/// A request takes microseconds here; after this time it hangs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// HTTP status code.
    pub(super) status: u16,
    pub(super) body: String,
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// The connection could not be made.
    #[error("connection refused")]
    Connect,
    /// The connection was closed or reset without an answer.
    #[error("connection closed without an answer")]
    NoAnswer,
    /// No answer came in time.
    #[error("no answer in time")]
    Timeout,
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        match error {
            error if error.is_timeout() => Self::Timeout,
            error if error.is_connect() => Self::Connect,
            _ => Self::NoAnswer,
        }
    }
}

/// Sends `GET /` to `destination` from the address `source`, on a new connection.
pub(super) async fn fetch(
    source: Option<IpAddr>,
    destination: SocketAddr,
    host: &str,
) -> Result<Answer, FetchError> {
    let builder = reqwest::Client::builder().no_proxy().tls_built_in_root_certs(false);
    let client = builder.local_address(source).timeout(REQUEST_TIMEOUT).build()?;
    let answer = client.get(format!("http://{destination}/")).header(HOST, host).send().await?;
    Ok(Answer { status: answer.status().as_u16(), body: answer.text().await? })
}

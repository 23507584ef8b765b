//! What the client sends again by itself. Little: the controllers above repeat whole reconciliations with their own delays, and a repeated
//! POST makes a second load balancer.

use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use http::Method;

use crate::error::{ApiError, ErrorKind};

/// Pause before the first repetition; doubles with each one, with jitter.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// Longest pause. A service that asks to wait longer gets no repetition: the error carries its wish.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// How often a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Repetitions after the first try.
    most_repetitions: usize,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { most_repetitions: 2 }
    }
}

impl RetryPolicy {
    /// No repetition.
    pub const fn never() -> Self {
        Self { most_repetitions: 0 }
    }

    pub(super) async fn run<T, F, A>(&self, method: &Method, send: F) -> Result<T, ApiError>
    where
        F: FnMut() -> A,
        A: Future<Output = Result<T, ApiError>>,
    {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_DELAY)
            .with_max_delay(MAX_DELAY)
            .with_max_times(self.most_repetitions)
            .with_jitter();
        send.retry(pauses)
            .when(|error| may_repeat(method, error))
            .adjust(|error, pause| {
                let pause = pause?;
                let wanted = error.retry_after().unwrap_or_default();
                (wanted <= MAX_DELAY).then(|| pause.max(wanted))
            })
            .await
    }
}

/// Whether sending the request again can do no harm and may help.
fn may_repeat(method: &Method, error: &ApiError) -> bool {
    match error.kind() {
        // Refused before it was looked at.
        ErrorKind::RateLimited => true,
        // A front end says 503 also when its backend died over the request: only what is idempotent goes again.
        ErrorKind::Unavailable => {
            *method == Method::GET || (*method != Method::POST && error.retry_after().is_some())
        }
        ErrorKind::LostAnswer => *method == Method::GET,
        ErrorKind::NotFound
        | ErrorKind::Conflict(_)
        | ErrorKind::Quota
        | ErrorKind::Policy
        | ErrorKind::BadRequest
        | ErrorKind::Unauthorized
        | ErrorKind::ServerFault
        | ErrorKind::Decode
        | ErrorKind::NoEndpoint => false,
    }
}

//! The repetitions that the client makes itself. They are few: the controllers repeat whole reconciliations with their own delays,
//! and a repeated POST would make a second load balancer.

use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use http::Method;

use crate::error::{ApiError, ErrorKind};

/// The pause before the first repetition; it doubles with each repetition, with jitter.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// The longest pause. If a service asks for a longer one, the client does not repeat: the error carries the requested pause.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// How often a request is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Repetitions after the first attempt.
    most_repetitions: usize,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { most_repetitions: 2 }
    }
}

impl RetryPolicy {
    /// Returns a policy without repetitions.
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

/// Returns whether repeating the request does no harm and may help.
fn may_repeat(method: &Method, error: &ApiError) -> bool {
    match error.kind() {
        // Refused before it was processed.
        ErrorKind::RateLimited => true,
        // A front end also answers 503 if its backend died while processing the request: only idempotent requests are repeated.
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

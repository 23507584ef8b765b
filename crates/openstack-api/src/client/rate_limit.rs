//! An upper bound for the rate of requests.

use std::num::NonZeroU32;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// At most `per_second` requests a second in the long run, and `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests a second.
    pub per_second: NonZeroU32,
    /// Requests that may go out at once after a pause.
    pub burst: NonZeroU32,
}

#[derive(Debug)]
pub(super) struct Limiter {
    limiter: DefaultDirectRateLimiter,
}

impl Limiter {
    pub(super) fn new(limit: RateLimit) -> Self {
        let quota = Quota::per_second(limit.per_second).allow_burst(limit.burst);
        Self { limiter: RateLimiter::direct(quota) }
    }

    /// Waits until a request may go out.
    pub(super) async fn wait(&self) {
        self.limiter.until_ready().await;
    }
}

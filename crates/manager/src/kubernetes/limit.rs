//! `--kube-api-qps` and `--kube-api-burst`: the rate of requests to the API server.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::Mutex;

/// The limit of one client; clones share it.
#[derive(Clone, Debug)]
pub struct RequestLimit {
    /// Locked by the request whose turn it is: the limiter itself keeps no order among waiting requests.
    limiter: Option<Arc<Mutex<DefaultDirectRateLimiter>>>,
}

impl RequestLimit {
    /// Sets no limit.
    pub fn none() -> Self {
        Self { limiter: None }
    }

    /// Allows on average `per_second` requests a second, and `burst` at once after a pause. A rate that is not above 0 sets
    /// no limit, as in the framework.
    pub fn new(per_second: f64, burst: u32) -> Self {
        let between = Some(per_second).filter(|rate| *rate > 0.0).map(|rate| 1.0 / rate);
        let quota = between
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .and_then(Quota::with_period)
            .map(|quota| quota.allow_burst(NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN)));
        Self { limiter: quota.map(|quota| Arc::new(Mutex::new(RateLimiter::direct(quota)))) }
    }

    /// Waits until a request may be sent.
    pub async fn wait(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.lock().await.until_ready().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn at_once(limit: &RequestLimit) -> usize {
        (0..100).take_while(|_| limit.wait().now_or_never().is_some()).count()
    }

    #[tokio::test]
    async fn a_burst_goes_out_at_once_and_then_the_rate_holds() {
        let limit = RequestLimit::new(0.001, 5);
        assert_eq!(at_once(&limit), 5);
        assert_eq!(at_once(&limit.clone()), 0, "clones share the limit");
    }

    #[tokio::test]
    async fn a_rate_of_nothing_is_no_limit() {
        for rate in [0.0, -1.0, f64::NAN] {
            assert_eq!(at_once(&RequestLimit::new(rate, 1)), 100, "{rate}");
        }
    }
}

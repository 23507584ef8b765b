//! The clock of a service.

use std::sync::Mutex;

use openstack_ccm_core::lock::lock;

use http::HeaderMap;
use http::header::DATE;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The clock of a service, by the `Date` header of its answers.
#[derive(Debug, Default)]
pub(super) struct ServiceClock {
    last: Mutex<Option<(Timestamp, Instant)>>,
}

impl ServiceClock {
    /// Notes the time of an answer. Front ends without a clock send none.
    pub(super) fn note(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let Some(date) = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()) else { return };
        let mut last = lock(&self.last);
        *last = Some((date.timestamp(), Instant::now()));
    }

    /// Returns the present time; by this machine's clock where the service has never sent a time.
    pub(super) fn now(&self) -> Timestamp {
        let last = *lock(&self.last);
        let Some((date, at)) = last else { return Timestamp::now() };
        let since = SignedDuration::try_from(at.elapsed()).unwrap_or(SignedDuration::MAX);
        date.saturating_add(since).unwrap_or(date)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn headers(date: &'static str) -> HeaderMap {
        [(DATE, http::HeaderValue::from_static(date))].into_iter().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_goes_on_from_the_last_answer() {
        let clock = ServiceClock::default();
        clock.note(&headers("Sat, 21 Nov 2026 07:15:48 GMT"));
        tokio::time::advance(Duration::from_secs(14)).await;
        assert_eq!(clock.now(), "2026-11-21T07:16:02Z".parse().unwrap());
        clock.note(&headers("yesterday"));
        clock.note(&HeaderMap::new());
        assert_eq!(clock.now(), "2026-11-21T07:16:02Z".parse().unwrap());
    }

    #[test]
    fn without_a_word_of_the_service_it_is_the_time_of_this_machine() {
        let before = Timestamp::now();
        assert!(ServiceClock::default().now() >= before);
    }
}

//! How many changes Octavia is asked for at once: more while it answers as quickly as ever, fewer when it does not.
//!
//! A node that joins changes every load balancer. A large cloud takes hundreds of such requests within a second; a small
//! one answers each of them later, the more there are, and what other users ask for waits behind them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::adaptive_limit::{ANSWER_NOISE, AdaptiveLimit, Shortest};
use crate::error::{ApiError, ErrorKind};
use crate::transport::{Request, Service};

/// Requests that may be under way before anything was measured.
const FIRST: u16 = 10;
/// The limit does not become larger, however many workers there are.
const MOST: usize = 128;

/// The limit, and the requests under it.
#[derive(Debug)]
pub(super) struct WriteLimit {
    room: Semaphore,
    window: Mutex<Window>,
}

/// A request that is under way. Dropped, it makes room for another one.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    limit: &'a WriteLimit,
    call: &'static str,
    began: Instant,
    /// Requests under way when it began, this one included.
    company: usize,
}

impl Default for WriteLimit {
    fn default() -> Self {
        Self { room: Semaphore::new(FIRST.into()), window: Mutex::default() }
    }
}

impl WriteLimit {
    /// Whether a request is bound to the limit. Reads are not, so that nobody waits for news. Neither is the creation of a load
    /// balancer, which is answered only after seconds: who sends it bounds how many of them are under way.
    pub(super) fn binds(call: &str, request: &Request) -> bool {
        request.service == Service::LoadBalancer
            && request.method != Method::GET
            && call != "loadbalancer_create"
    }

    /// Waits until there is room for a request, in the order of those who wait.
    pub(super) async fn enter(&self, call: &'static str) -> UnderWay<'_> {
        if let Ok(permit) = self.room.acquire().await {
            // It is given back by count, because the limit may have become another one.
            permit.forget();
        }
        let mut window = self.window();
        window.under_way += 1;
        UnderWay { limit: self, call, began: Instant::now(), company: window.under_way }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay<'_> {
    /// Octavia has answered, or has not.
    pub(super) fn answered<T>(self, result: &Result<T, ApiError>) {
        let overloaded = result.as_ref().is_err_and(|error| {
            matches!(error.kind(), ErrorKind::RateLimited | ErrorKind::Unavailable | ErrorKind::LostAnswer)
        });
        let Self { call, began, company, .. } = self;
        let took = (!overloaded).then(|| began.elapsed());
        let is_full = self.limit.room.available_permits() == 0;
        let mut window = self.limit.window();
        let company = company.max(window.under_way);
        window.answered(Answered { call, took, began, company, is_full });
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut window = self.limit.window();
        window.under_way -= 1;
        let room = window.give_room();
        drop(window);
        self.limit.room.add_permits(room);
    }
}

/// The limit as a number, and what it follows from. Pure.
#[derive(Debug)]
struct Window {
    limit: AdaptiveLimit,
    /// Permits that were given out or lie in the semaphore.
    permits: usize,
    under_way: usize,
    /// The quickest answer to each call.
    quickest: HashMap<&'static str, Shortest>,
}

/// A request that is over.
#[derive(Clone, Copy, Debug)]
struct Answered {
    call: &'static str,
    /// Absent where Octavia had too much to do for an answer.
    took: Option<Duration>,
    began: Instant,
    /// Requests that were under way beside it, this one included.
    company: usize,
    /// Whether the limit is reached: only then would a larger one make a difference.
    is_full: bool,
}

impl Default for Window {
    fn default() -> Self {
        let limit = AdaptiveLimit::new(FIRST);
        Self { permits: limit.size(), limit, under_way: 0, quickest: HashMap::new() }
    }
}

impl Window {
    fn answered(&mut self, answered: Answered) {
        let Answered { call, took, began, company, is_full } = answered;
        let quickest = self.quickest.entry(call).or_default();
        if took.is_none_or(|took| quickest.is_longer(took, company, ANSWER_NOISE)) {
            self.limit.shrink(began, Instant::now());
        } else if is_full && self.limit.size() < MOST {
            self.limit.grow(1);
        }
    }

    /// A request is over: how many others may begin.
    fn give_room(&mut self) -> usize {
        let free = (self.limit.size() + 1).saturating_sub(self.permits);
        self.permits = self.permits - 1 + free;
        free
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::adaptive_limit::FEWEST;

    const CALL: &str = "loadbalancer_member_batch";

    /// Sends so many requests at once, each of which takes this long beside `n` others. Answers how many were under way at most.
    async fn burst(limit: &Arc<WriteLimit>, requests: usize, takes: fn(usize) -> Duration) -> usize {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let sent: Vec<_> = (0..requests)
            .map(|_| {
                let (limit, now, most) = (Arc::clone(limit), Arc::clone(&now), Arc::clone(&most));
                tokio::spawn(async move {
                    let under_way = limit.enter(CALL).await;
                    let beside = now.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(beside, Ordering::SeqCst);
                    tokio::time::sleep(takes(beside)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    under_way.answered(&Ok(()));
                })
            })
            .collect();
        for request in sent {
            request.await.unwrap();
        }
        most.load(Ordering::SeqCst)
    }

    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_answers_as_quickly_as_ever_gets_more_at_once() {
        let limit = Arc::default();
        let began = Instant::now();
        let most = burst(&limit, 500, |_| Duration::from_millis(50)).await;
        assert!(most >= 60, "{most}");
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_becomes_slow_gets_fewer() {
        let limit = Arc::default();
        burst(&limit, 1, |_| Duration::from_millis(100)).await;
        let each = |beside: usize| Duration::from_millis(25 * beside.max(4) as u64);
        burst(&limit, 300, each).await;
        let size = limit.window().limit.size();
        assert!((FEWEST.into()..=20).contains(&size), "{size}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_told_to_come_later_sends_less() {
        let limit = WriteLimit::default();
        let error = ApiError::Status {
            call: CALL,
            status: http::StatusCode::TOO_MANY_REQUESTS,
            fault: crate::error::Fault::default(),
            request_id: None,
            retry_after: None,
        };
        limit.enter(CALL).await.answered::<()>(&Err(error));
        assert_eq!(limit.window().limit.size(), 7);
        assert_eq!(limit.room.available_permits(), 9, "the room that is left goes as requests end");
        for _ in 0..5 {
            drop(limit.enter(CALL).await);
        }
        assert_eq!(limit.room.available_permits(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_makes_room() {
        let limit = WriteLimit::default();
        for _ in 0..30 {
            drop(limit.enter(CALL).await);
        }
        assert_eq!((limit.window().under_way, limit.room.available_permits()), (0, FIRST.into()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_by_itself_is_no_sign() {
        let mut window = Window { limit: AdaptiveLimit::new(FEWEST), ..Window::default() };
        for (call, took) in [("loadbalancer_listener_create", 5000), (CALL, 50)].into_iter().cycle().take(12)
        {
            let (took, began) = (Some(Duration::from_millis(took)), Instant::now());
            window.answered(Answered { call, took, began, company: FEWEST.into(), is_full: true });
        }
        assert!(window.limit.size() > FEWEST.into(), "{window:?}");
    }
}

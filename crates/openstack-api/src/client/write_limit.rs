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

use crate::error::{ApiError, ErrorKind};
use crate::transport::{Request, Service};

/// Requests that may be under way before anything was measured.
const FIRST: usize = 10;
/// It does not become fewer.
const FEWEST: usize = 2;
/// An answer counts as slow from this factor of the quickest one on,
const LONGER: f64 = 1.5;
/// and by more than what chance makes of it.
const NOISE: Duration = Duration::from_millis(200);
/// What is left of the limit after a slow answer.
const LESS: f64 = 0.7;
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
        Self { room: Semaphore::new(FIRST), window: Mutex::default() }
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
    size: f64,
    /// Permits that were given out or lie in the semaphore.
    permits: usize,
    under_way: usize,
    /// The quickest answer to each call.
    quickest: HashMap<&'static str, Duration>,
    shrunk_at: Option<Instant>,
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
        let quickest = HashMap::new();
        Self { size: to_float(FIRST), permits: FIRST, under_way: 0, quickest, shrunk_at: None }
    }
}

impl Window {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small and positive")]
    fn size(&self) -> usize {
        self.size as usize
    }

    fn answered(&mut self, answered: Answered) {
        let Answered { call, took, began, company, is_full } = answered;
        if took.is_some_and(|took| !self.is_slow(call, took, company)) {
            if is_full {
                self.size = (self.size + 1.0).min(to_float(MOST));
            }
        } else if self.shrunk_at.is_none_or(|at| began >= at) {
            // Those that began before were sent under the larger limit.
            self.size = (self.size * LESS).max(to_float(FEWEST));
            self.shrunk_at = Some(Instant::now());
        }
    }

    /// Whether an answer took longer than the quickest one. With so few under way as there always may be, fewer would not help:
    /// then that is the new measure.
    fn is_slow(&mut self, call: &'static str, took: Duration, company: usize) -> bool {
        let quickest = match self.quickest.get(call) {
            Some(quickest) if company > FEWEST => took.min(*quickest),
            Some(_) | None => took,
        };
        self.quickest.insert(call, quickest);
        took > quickest.mul_f64(LONGER) + NOISE
    }

    /// A request is over: how many others may begin.
    fn give_room(&mut self) -> usize {
        let free = (self.size() + 1).saturating_sub(self.permits);
        self.permits = self.permits - 1 + free;
        free
    }
}

#[allow(clippy::cast_precision_loss, reason = "it is small")]
fn to_float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

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
        let each = |beside: usize| Duration::from_millis(100).mul_f64(to_float(beside.max(4)) / 4.0);
        burst(&limit, 300, each).await;
        let size = limit.window().size();
        assert!((FEWEST..=20).contains(&size), "{size}");
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
        assert_eq!(limit.window().size(), 7);
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
        assert_eq!((limit.window().under_way, limit.room.available_permits()), (0, FIRST));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_by_itself_is_no_sign() {
        let mut window = Window { size: to_float(FEWEST), ..Window::default() };
        for (call, took) in [("loadbalancer_listener_create", 5000), (CALL, 50)].into_iter().cycle().take(12)
        {
            let (took, began) = (Some(Duration::from_millis(took)), Instant::now());
            window.answered(Answered { call, took, began, company: FEWEST, is_full: true });
        }
        assert!(window.size() > FEWEST, "{window:?}");
    }
}

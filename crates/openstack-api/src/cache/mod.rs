//! Caches answers of the cloud to questions that many Services ask: concurrent callers share one request, and its answer is kept
//! for a while.
//!
//! - **Single flight.** A request in progress is not sent a second time: later callers wait for it. If the caller that sent it is
//!   dropped, one of the waiting callers sends it again.
//! - **Failures are shared, and never kept.** All callers that waited for a request get its failure, so that an outage costs them the
//!   time of only one request. The next caller sends a new one.
//! - **Lifetime.** An answer is valid for the lifetime of its cache. With [`Duration::ZERO`] it serves only the callers that waited
//!   for it; with [`Duration::MAX`] it is never requested again.
//! - **New enough.** A caller may require an answer that was requested after some [`Moment`] ([`Cache::get_or_fetch_since`]). It first
//!   waits for an older request in progress, so there is never more than one request per key. If that one fails, the next one would
//!   too: its failure is shared as well.
//!
//! No existing crate fits: those with lifetime and single flight use their own clock, which tests cannot pause, and none knows
//! when the request of an answer was sent.

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::ApiError;
use openstack_ccm_core::lock::lock;

/// A point in the order of events in this process. It is not a time: no two moments are equal, whatever the clock does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The moment before all events.
    pub const FIRST: Self = Self(0);

    /// Returns a moment after all past events and before all future ones.
    pub fn now() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::SeqCst))
    }
}

/// Cached answers of one kind, by key.
#[derive(Debug)]
pub struct Cache<K, T, E = ApiError> {
    lifetime: Duration,
    state: Mutex<State<K, T, E>>,
}

#[derive(Debug)]
struct State<K, T, E> {
    answers: HashMap<K, CachedAnswer<T>>,
    in_flight: HashMap<K, InFlight<T, E>>,
    /// Answers to requests sent before this moment are not kept.
    cleared: Option<Moment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedAnswer<T> {
    /// The answer.
    pub value: T,
    /// When its request was sent.
    pub begun: Moment,
    /// When it came.
    came: Instant,
    /// When it expires; absent where it lasts as long as the process.
    until: Option<Instant>,
}

impl<T> CachedAnswer<T> {
    /// Returns whether its lifetime has not ended.
    pub fn is_alive(&self) -> bool {
        self.until.is_none_or(|until| until > Instant::now())
    }

    /// Returns how long ago it came.
    pub fn age(&self) -> Duration {
        self.came.elapsed()
    }
}

/// A request in progress. Its sender holds the sending half of `result`: if that is dropped, the request was abandoned.
#[derive(Debug)]
struct InFlight<T, E> {
    begun: Moment,
    result: ResultReceiver<T, E>,
}

/// Holds nothing while the request is in progress.
type ResultSender<T, E> = watch::Sender<Option<Result<T, Arc<E>>>>;
type ResultReceiver<T, E> = watch::Receiver<Option<Result<T, Arc<E>>>>;

/// How a caller gets its answer.
enum Lookup<T, E> {
    Cached(T),
    /// Another caller has sent the request.
    Join(ResultReceiver<T, E>),
    /// Another caller has sent the request, but too early for the answer to be new enough.
    After(ResultReceiver<T, E>),
    Send(Moment, ResultSender<T, E>),
}

impl<K: Hash + Eq, T: Clone, E> Cache<K, T, E> {
    /// Creates an empty cache.
    pub fn new(lifetime: Duration) -> Self {
        let state = State { answers: HashMap::new(), in_flight: HashMap::new(), cleared: None };
        Self { lifetime, state: Mutex::new(state) }
    }

    /// Returns the valid answer for this key, else the answer to the request in progress, else the result of `fetch`.
    ///
    /// # Errors
    /// The failure of the request, which all waiting callers share.
    pub async fn get_or_fetch<Q>(
        &self,
        key: &Q,
        fetch: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Arc<E>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.find(key, None, fetch).await
    }

    /// As `get_or_fetch`, but requires an answer to a request sent after `since`.
    ///
    /// # Errors
    /// The failure of the request, or of an older request that was in progress.
    pub async fn get_or_fetch_since<Q>(
        &self,
        key: &Q,
        since: Moment,
        fetch: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Arc<E>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.find(key, Some(since), fetch).await
    }

    /// Returns the last answer for this key, even if its lifetime has ended.
    pub fn last<Q>(&self, key: &Q) -> Option<CachedAnswer<T>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.state().answers.get(key).cloned()
    }

    /// Returns the valid answer for this key.
    pub fn get<Q>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.state().alive(key, None)
    }

    /// Stores an answer to a request sent at `begun`, unless a later answer is stored or the cache was cleared since.
    pub fn insert(&self, key: K, begun: Moment, value: T) {
        self.state().insert(key, begun, value, self.lifetime);
    }

    /// Clears the cache. Requests in progress still serve their waiting callers, but their answers are not kept.
    pub fn clear(&self) {
        let mut state = self.state();
        state.answers.clear();
        state.in_flight.clear();
        state.cleared = Some(Moment::now());
    }

    async fn find<Q>(
        &self,
        key: &Q,
        since: Option<Moment>,
        fetch: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Arc<E>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let (begun, sender) = loop {
            match self.look_up(key, since) {
                Lookup::Cached(value) => return Ok(value),
                Lookup::Send(begun, sender) => break (begun, sender),
                Lookup::Join(result) => {
                    if let Some(result) = ended(result).await {
                        return result;
                    }
                }
                Lookup::After(result) => {
                    if let Some(Err(error)) = ended(result).await {
                        return Err(error);
                    }
                }
            }
        };
        let result = fetch.await.map_err(Arc::new);
        self.keep(key, begun, &result);
        sender.send_replace(Some(result.clone()));
        result
    }

    fn look_up<Q>(&self, key: &Q, since: Option<Moment>) -> Lookup<T, E>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut state = self.state();
        if let Some(value) = state.alive(key, since) {
            return Lookup::Cached(value);
        }
        state.in_flight.retain(|_, request| request.result.has_changed().is_ok());
        if let Some(request) = state.in_flight.get(key) {
            let result = request.result.clone();
            let is_new_enough = since.is_none_or(|since| request.begun > since);
            return if is_new_enough { Lookup::Join(result) } else { Lookup::After(result) };
        }
        let (sender, result) = watch::channel(None);
        let begun = Moment::now();
        state.in_flight.insert(key.to_owned(), InFlight { begun, result });
        Lookup::Send(begun, sender)
    }

    fn keep<Q>(&self, key: &Q, begun: Moment, result: &Result<T, Arc<E>>)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut state = self.state();
        if state.in_flight.get(key).is_some_and(|request| request.begun == begun) {
            state.in_flight.remove(key);
        }
        if let Ok(value) = result {
            state.insert(key.to_owned(), begun, value.clone(), self.lifetime);
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K, T, E>> {
        // The maps are consistent between any two statements that hold the lock.
        lock(&self.state)
    }
}

/// Waits for the result of a request; absent where the caller that sent it was dropped.
async fn ended<T: Clone, E>(mut result: ResultReceiver<T, E>) -> Option<Result<T, Arc<E>>> {
    result.wait_for(Option::is_some).await.ok()?.clone()
}

impl<K: Hash + Eq, T: Clone, E> State<K, T, E> {
    fn alive<Q>(&self, key: &Q, since: Option<Moment>) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let answer = self.answers.get(key)?;
        let is_new_enough = since.is_none_or(|since| answer.begun > since);
        (answer.is_alive() && is_new_enough).then(|| answer.value.clone())
    }

    fn insert(&mut self, key: K, begun: Moment, value: T, lifetime: Duration) {
        let later = self.answers.get(&key).map(|answer| answer.begun).max(self.cleared);
        if lifetime.is_zero() || later.is_some_and(|later| later > begun) {
            return;
        }
        self.answers.retain(|_, answer| answer.is_alive());
        let came = Instant::now();
        self.answers.insert(key, CachedAnswer { value, begun, came, until: came.checked_add(lifetime) });
    }
}

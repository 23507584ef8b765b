//! Answers of the cloud to questions that many Services ask: one request for all who ask at the same time, and its answer
//! for a while.
//!
//! - **Single flight.** A request that is under way is not sent once more: whoever asks meanwhile waits for it. When the one
//!   who sent it is dropped, one of those who wait sends it again.
//! - **Failures are shared, and never kept.** Those who waited for a request get its failure, so that an outage costs all of
//!   them the time of one request. The next one asks again.
//! - **Lifetime.** An answer serves for the lifetime of its cache. With [`Duration::ZERO`] it serves those who waited for it,
//!   with [`Duration::MAX`] it is never asked for again.
//! - **New enough.** A caller may require an answer that was requested after some [`Moment`] ([`Cache::get_or_fetch_since`]). An older
//!   request in progress is waited for first, so there is never more than one for each key. If it fails, so would the next one: its
//!   failure is shared too.
//!
//! Not a crate, because those with a lifetime and single flight go by a clock of their own, which tests cannot pause, and none
//! knows when an answer was begun.

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::ApiError;

/// A point in the order of what happens in this process. Not a time: no two of them are equal, whatever the clock does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// After everything that has happened, before everything that has not.
    pub fn now() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::SeqCst))
    }
}

/// Answers of one kind by the key of their question.
#[derive(Debug)]
pub struct Cache<K, T, E = ApiError> {
    lifetime: Duration,
    state: Mutex<State<K, T, E>>,
}

#[derive(Debug)]
struct State<K, T, E> {
    answers: HashMap<K, CachedAnswer<T>>,
    in_flight: HashMap<K, InFlight<T, E>>,
    /// What was begun before is not kept.
    cleared: Option<Moment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedAnswer<T> {
    /// What was answered.
    pub value: T,
    /// When its request was begun.
    pub begun: Moment,
    /// Absent where it lasts as long as the process.
    until: Option<Instant>,
}

impl<T> CachedAnswer<T> {
    /// Whether its lifetime is not over.
    pub fn is_alive(&self) -> bool {
        self.until.is_none_or(|until| until > Instant::now())
    }
}

/// A request under way. Who sends it holds the sender of `result`: without one the request was given up.
#[derive(Debug)]
struct InFlight<T, E> {
    begun: Moment,
    result: ResultReceiver<T, E>,
}

/// Nothing is in it while the request is under way.
type ResultSender<T, E> = watch::Sender<Option<Result<T, Arc<E>>>>;
type ResultReceiver<T, E> = watch::Receiver<Option<Result<T, Arc<E>>>>;

/// Where an answer is to be had.
enum Lookup<T, E> {
    Cached(T),
    /// Somebody has sent the request.
    Join(ResultReceiver<T, E>),
    /// Somebody has sent the request, but before the answer would be new enough.
    After(ResultReceiver<T, E>),
    Send(Moment, ResultSender<T, E>),
}

impl<K: Hash + Eq, T: Clone, E> Cache<K, T, E> {
    /// An empty cache.
    pub fn new(lifetime: Duration) -> Self {
        let state = State { answers: HashMap::new(), in_flight: HashMap::new(), cleared: None };
        Self { lifetime, state: Mutex::new(state) }
    }

    /// The answer of this key whose lifetime is not over, else the one to the request under way, else the one of `fetch`.
    ///
    /// # Errors
    /// The failure of the request, shared by all who waited for it.
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

    /// The same, from a request that was begun after `since`.
    ///
    /// # Errors
    /// The failure of the request, also of an older one that was under way.
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

    /// The last answer of this key, even if its lifetime is over.
    pub fn last<Q>(&self, key: &Q) -> Option<CachedAnswer<T>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.state().answers.get(key).cloned()
    }

    /// The answer of this key whose lifetime is not over.
    pub fn get<Q>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.state().alive(key, None)
    }

    /// Keeps an answer to a request that was begun at `begun`, unless a later one is there or everything was forgotten since.
    pub fn insert(&self, key: K, begun: Moment, value: T) {
        self.state().insert(key, begun, value, self.lifetime);
    }

    /// Forgets everything. What is under way serves those who wait for it, and is not kept.
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
        // The maps are whole between any two statements that hold the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a request ended; absent where the one who sent it was dropped on the way.
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
        self.answers.insert(key, CachedAnswer { value, begun, until: Instant::now().checked_add(lifetime) });
    }
}

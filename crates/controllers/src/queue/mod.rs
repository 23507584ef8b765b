//! The work queue of a controller.
//!
//! One entry for each key: bursts collapse, and no two workers have the same key. The reason for a key ([`Reason`]) is kept,
//! because it may decide what is done and in which order. Delays are entries of the queue, never a sleeping worker.
//!
//! The scheduler of `kube` knows neither reasons nor an order, and `workqueue_*` metrics would have to be counted around it.

mod metrics;
mod ready;
mod state;

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::lock::lock;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

pub use metrics::WorkQueues;
use metrics::{QueueMetrics, Source};
use state::State;

/// Why a key is queued.
pub(crate) trait Reason: Copy + Send + Sync + 'static {
    /// Combines both reasons.
    fn and(self, other: Self) -> Self;

    /// Returns the rank: the smallest is served first.
    fn rank(self) -> u32;

    /// Whether only the object itself changed. A key that changes all the time waits a little after each time.
    fn is_own_change(self) -> bool {
        false
    }
}

/// A queue in which all keys are alike.
impl Reason for () {
    fn and(self, (): Self) {}

    fn rank(self) -> u32 {
        0
    }
}

/// The key of a queued object.
pub(crate) trait Key: Clone + Eq + Hash + Ord + Send + 'static {
    /// Returns the namespace; namespaces take turns.
    fn namespace(&self) -> &str {
        ""
    }
}

/// The name of a node.
impl Key for String {}

/// What happens with a key after the work on it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Requeue<R> {
    /// Success. Failures are forgotten; the key is queued again after the delay, if there is one, for this reason.
    Done(Option<(Duration, R)>),
    /// Work is under way elsewhere: the key is queued again after the delay, unless it is added before. Failures are neither
    /// counted nor forgotten.
    Wait(Duration),
    /// Like `Wait`, but the key is queued again for this reason.
    WaitFor(Duration, R),
    /// Failure: the key is queued again after the failure's delay, which grows.
    Backoff(Failure),
    /// No result: a planned retry stays planned.
    Unchanged,
}

impl<R> Requeue<R> {
    /// Nothing is left to do until something happens.
    pub(crate) const DONE: Self = Self::Done(None);
}

/// The queue. Clones share it.
pub(crate) struct WorkQueue<K: Key, R: Reason>(Arc<Shared<K, R>>);

struct Shared<K, R> {
    state: Mutex<State<K, R>>,
    /// Wakes one waiting worker: the state changed.
    changed: Notify,
    /// The reason of retries.
    retry: R,
    /// Adds a random part to delays.
    jitter: Option<RandomState>,
    metrics: QueueMetrics,
}

impl<K: Key, R: Reason> Clone for WorkQueue<K, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Key, R: Reason> WorkQueue<K, R> {
    /// Creates an empty queue. With `spread`, keys that failed together do not return together.
    pub(crate) fn new(retry: R, spread: bool) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            changed: Notify::new(),
            retry,
            jitter: spread.then(RandomState::new),
            metrics: QueueMetrics::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State<K, R>> {
        lock(&self.0.state)
    }

    /// Makes the metrics of the queue visible, under its name in the framework.
    pub(crate) fn register(&self, name: &'static str, queues: &WorkQueues) {
        let shared = Arc::downgrade(&self.0);
        let source: Source = Arc::new(move || {
            let Some(shared) = shared.upgrade() else { return (0, Vec::new()) };
            let (mut state, now) = (lock(&shared.state), Instant::now());
            state.mature(now, &shared.metrics);
            (state.ready(), state.working(now))
        });
        queues.add(name, &self.0.metrics, source);
    }

    /// Queues a key. A key that waits for a retry is ready at once: the change may have removed the cause of the failure.
    pub(crate) fn add(&self, key: &K, reason: R) {
        self.state().add(key, reason, &self.0.metrics);
        self.0.changed.notify_one();
    }

    /// Takes the next key, waiting until there is one; `None` once the queue is closed.
    pub(crate) async fn take(&self) -> Option<TakenKey<K, R>> {
        while self.is_ready().await {
            if let Some(taken) = self.pop() {
                if self.state().ready() > 0 {
                    self.0.changed.notify_one();
                }
                return Some(taken);
            }
        }
        // Other workers wait for the same notification.
        self.0.changed.notify_one();
        None
    }

    /// Takes all ready keys, in order; waits for the first, and then for `delay` for others.
    pub(crate) async fn take_together(&self, delay: Duration) -> Vec<TakenKey<K, R>> {
        if self.is_ready().await {
            sleep(delay).await;
        }
        self.take_ready()
    }

    /// Takes all keys that are ready now, in order.
    pub(crate) fn take_ready(&self) -> Vec<TakenKey<K, R>> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    fn pop(&self) -> Option<TakenKey<K, R>> {
        let mut state = self.state();
        state.mature(Instant::now(), &self.0.metrics);
        let (key, reason) = state.pop(&self.0.metrics)?;
        Some(TakenKey { queue: self.clone(), key, reason, finished: false })
    }

    /// Waits until a key is ready; returns `false` once the queue is closed.
    async fn is_ready(&self) -> bool {
        loop {
            let due = {
                let mut state = self.state();
                state.mature(Instant::now(), &self.0.metrics);
                if state.closed || state.ready() > 0 {
                    return !state.closed;
                }
                state.next_due()
            };
            let timer = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.0.changed.notified() => {}
                () = timer => {}
            }
        }
    }

    /// Closes the queue: workers get no more keys.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.0.changed.notify_one();
    }

    fn finish(&self, key: &K, next: Requeue<R>) {
        let shared = &*self.0;
        let mut state = self.state();
        let (failures, sequence) = state.finished(key, &shared.metrics);
        let spread = |delay: Duration| {
            shared.jitter.as_ref().map_or(delay, |jitter| {
                // A random part of up to a fifth.
                let permille = u32::try_from(jitter.hash_one((key, sequence)) % 200).unwrap_or(0);
                delay.saturating_add(delay.checked_mul(permille).unwrap_or(Duration::MAX) / 1000)
            })
        };
        match next {
            Requeue::Unchanged => {}
            Requeue::Done(again) => {
                state.plan(key, 0, again.map(|(delay, reason)| (spread(delay), reason)));
            }
            Requeue::Wait(delay) => state.plan(key, failures, Some((delay, shared.retry))),
            Requeue::WaitFor(delay, reason) => state.plan(key, failures, Some((delay, reason))),
            Requeue::Backoff(failure) => {
                shared.metrics.retried();
                let delay = spread(failure.delay(failures));
                state.plan(key, failures.saturating_add(1), Some((delay, shared.retry)));
            }
        }
        state.release(key);
        drop(state);
        shared.changed.notify_one();
    }
}

/// One key that one worker has taken.
///
/// If it is dropped before [`TakenKey::finish`], because the work panicked or was cancelled, the key returns to the queue as
/// a failure.
pub(crate) struct TakenKey<K: Key, R: Reason> {
    queue: WorkQueue<K, R>,
    pub(crate) key: K,
    /// Why the key was queued.
    pub(crate) reason: R,
    finished: bool,
}

impl<K: Key, R: Reason> TakenKey<K, R> {
    /// Returns the key to the queue.
    pub(crate) fn finish(mut self, next: Requeue<R>) {
        self.queue.finish(&self.key, next);
        self.finished = true;
    }
}

impl<K: Key, R: Reason> Drop for TakenKey<K, R> {
    fn drop(&mut self) {
        if !self.finished {
            let failure = Failure::new(FailureClass::Bug, "the reconciliation was interrupted");
            self.queue.finish(&self.key, Requeue::Backoff(failure));
        }
    }
}

#[cfg(test)]
mod tests;

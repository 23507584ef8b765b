//! The work queue of Services.
//!
//! One entry per Service: bursts collapse, and no Service is in two hands at once. Why a Service is queued
//! ([`Causes`]) is kept, because it decides what the reconciliation has to do and who goes first. Delays are entries of the
//! queue, never a sleeping worker.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::Wake;
use openstack_ccm_core::service::ServiceKey;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::cause::{Cause, Causes};
use crate::queue_metrics::{QueueMetrics, Source, WorkQueues};
use openstack_ccm_runtime::lock::lock;

/// What happens with a Service after a reconciliation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Requeue {
    /// The goal is reached. Failures are forgotten; it is looked at again after the delay, if there is one.
    Done {
        /// Delay before the look for drift; a random part is added.
        resync: Option<Duration>,
    },
    /// The goal is reached as far as one can tell. Failures are forgotten; it is looked at again after the delay, to which
    /// a random part is added, before it is time for the look for drift.
    Again(Duration),
    /// Work is under way; it is looked at after the delay unless something happens before. Failures are neither
    /// counted nor forgotten.
    Wait(Duration),
    /// It failed: again after the failure's delay, which grows.
    Backoff(Failure),
    /// The reconciliation learned nothing about the goal: whatever was planned stays planned.
    Unchanged,
}

/// The queue of Services that one controller works on.
///
/// It is created before the controller, so that the provider can hold a [`ServiceQueue::waker`] from its first moment.
#[derive(Clone)]
pub struct ServiceQueue {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Tells one waiting worker that the state changed.
    changed: Notify,
    jitter: RandomState,
    metrics: QueueMetrics,
}

#[derive(Default)]
struct State {
    entries: HashMap<ServiceKey, Entry>,
    /// What can be taken, in the order in which it is taken.
    ready: BTreeMap<(u32, u64), ServiceKey>,
    /// What becomes ready later.
    delayed: BTreeMap<(Instant, u64), (ServiceKey, Cause)>,
    sequence: u64,
    closed: bool,
}

/// What is known of one Service. An entry without anything of note is removed.
#[derive(Default)]
struct Entry {
    /// Causes that no reconciliation has taken yet.
    causes: Causes,
    /// Place in `ready`.
    place: Option<(u32, u64)>,
    /// Place in `delayed`.
    timer: Option<(Instant, u64)>,
    /// Since when a worker has it.
    working: Option<Instant>,
    /// Since when the causes wait.
    waiting: Option<Instant>,
    /// Failures in a row.
    failures: u32,
}

impl fmt::Debug for ServiceQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceQueue")
            .field("ready", &self.shared.state().ready.len())
            .finish_non_exhaustive()
    }
}

impl Default for ServiceQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl ServiceQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                changed: Notify::new(),
                jitter: RandomState::new(),
                metrics: QueueMetrics::default(),
            }),
        }
    }

    /// What the provider calls when a Service deserves another reconciliation. It works before the controller runs: the wish
    /// waits in the queue. A key that is not a Service of ours costs nothing.
    pub fn waker(&self) -> Arc<dyn Wake> {
        Arc::new(self.clone())
    }

    /// Makes the metrics of the queue visible, under the framework's name of it.
    pub(crate) fn register(&self, queues: &WorkQueues) {
        queues.add("service", &self.shared.metrics, self.shared.metrics_source());
    }

    /// Queues a Service.
    pub(crate) fn add(&self, key: &ServiceKey, cause: Cause) {
        self.shared.state().add(key, Causes::only(cause), &self.shared.metrics);
        self.shared.changed.notify_one();
    }

    /// The next Service to work on; absent when the queue is closed. Waits as long as there is none.
    pub(crate) async fn take(&self) -> Option<Taken> {
        loop {
            let deadline = {
                let mut state = self.shared.state();
                if state.closed {
                    // Other workers wait for the same news.
                    self.shared.changed.notify_one();
                    return None;
                }
                state.mature(Instant::now(), &self.shared.metrics);
                if let Some((key, causes)) = state.pop(&self.shared.metrics) {
                    if !state.ready.is_empty() {
                        self.shared.changed.notify_one();
                    }
                    return Some(Taken { shared: Arc::clone(&self.shared), key, causes, finished: false });
                }
                state.delayed.first_key_value().map(|((deadline, _), _)| *deadline)
            };
            let timer = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.shared.changed.notified() => {}
                () = timer => {}
            }
        }
    }

    /// Takes everything out that is ready, in order.
    pub(super) fn drain(&self) -> Vec<ServiceKey> {
        let mut state = self.shared.state();
        let mut keys = Vec::new();
        while let Some((key, _)) = state.pop(&self.shared.metrics) {
            state.entries.remove(&key);
            keys.push(key);
        }
        keys
    }

    /// Ends the queue: workers get nothing more.
    pub(crate) fn close(&self) {
        self.shared.state().closed = true;
        self.shared.changed.notify_one();
    }
}

impl Wake for ServiceQueue {
    fn wake(&self, key: &ServiceKey) {
        self.add(key, Cause::Woken);
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn metrics_source(self: &Arc<Self>) -> Source {
        let shared = Arc::downgrade(self);
        Arc::new(move || {
            let Some(shared) = shared.upgrade() else { return (0, Vec::new()) };
            let state = shared.state();
            let now = Instant::now();
            let working = state
                .entries
                .values()
                .filter_map(|entry| entry.working)
                .map(|since| now.duration_since(since))
                .collect();
            (state.ready.len(), working)
        })
    }

    fn finish(&self, key: &ServiceKey, next: Requeue) {
        let mut state = self.state();
        state.finish(key, next, &self.jitter, &self.metrics);
        drop(state);
        self.changed.notify_one();
    }
}

impl State {
    fn add(&mut self, key: &ServiceKey, causes: Causes, metrics: &QueueMetrics) {
        metrics.added();
        let entry = self.entries.entry(key.clone()).or_default();
        entry.causes = entry.causes.and(causes);
        entry.waiting.get_or_insert_with(Instant::now);
        if entry.working.is_some() {
            return;
        }
        let rank = entry.causes.rank();
        let sequence = match entry.place {
            Some((placed, _)) if placed <= rank => return,
            Some(place) => {
                self.ready.remove(&place);
                place.1
            }
            None => {
                self.sequence += 1;
                self.sequence
            }
        };
        entry.place = Some((rank, sequence));
        self.ready.insert((rank, sequence), key.clone());
    }

    /// Moves what is due from `delayed` to `ready`.
    fn mature(&mut self, now: Instant, metrics: &QueueMetrics) {
        while let Some(first) = self.delayed.first_entry() {
            if first.key().0 > now {
                return;
            }
            let (key, cause) = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.timer = None;
            }
            self.add(&key, Causes::only(cause), metrics);
        }
    }

    fn pop(&mut self, metrics: &QueueMetrics) -> Option<(ServiceKey, Causes)> {
        let (_, key) = self.ready.pop_first()?;
        let now = Instant::now();
        let entry = self.entries.entry(key.clone()).or_default();
        entry.place = None;
        entry.working = Some(now);
        let causes = std::mem::take(&mut entry.causes);
        metrics.taken(entry.waiting.take().map_or(Duration::ZERO, |since| now.duration_since(since)));
        Some((key, causes))
    }

    fn finish(&mut self, key: &ServiceKey, next: Requeue, jitter: &RandomState, metrics: &QueueMetrics) {
        let now = Instant::now();
        let sequence = self.sequence + 1;
        self.sequence = sequence;
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(since) = entry.working.take() {
            metrics.worked(now.duration_since(since));
        }
        let planned =
            match next {
                Requeue::Unchanged => None,
                Requeue::Done { resync } => {
                    entry.failures = 0;
                    Some(resync.map(|delay| {
                        (delay.saturating_add(spread(jitter, key, sequence, delay)), Cause::Resync)
                    }))
                }
                Requeue::Again(delay) => {
                    entry.failures = 0;
                    Some(Some((delay.saturating_add(spread(jitter, key, sequence, delay)), Cause::Again)))
                }
                Requeue::Wait(delay) => Some(Some((delay, Cause::Retry))),
                Requeue::Backoff(failure) => {
                    metrics.retried();
                    let delay = failure.delay(entry.failures);
                    entry.failures = entry.failures.saturating_add(1);
                    Some(Some((delay.saturating_add(spread(jitter, key, sequence, delay)), Cause::Retry)))
                }
            };
        if let Some(planned) = planned {
            if let Some(timer) = entry.timer.take() {
                self.delayed.remove(&timer);
            }
            if let Some((delay, cause)) = planned {
                let timer = (after(now, delay), sequence);
                entry.timer = Some(timer);
                self.delayed.insert(timer, (key.clone(), cause));
            }
        }
        let causes = std::mem::take(&mut entry.causes);
        if !causes.is_empty() {
            self.add(key, causes, metrics);
        } else if entry.failures == 0 && entry.timer.is_none() {
            self.entries.remove(key);
        }
    }
}

/// A random part of up to a fifth of the delay, so that Services that failed together do not return together.
fn spread(random: &RandomState, key: &ServiceKey, sequence: u64, delay: Duration) -> Duration {
    let permille = u32::try_from(random.hash_one((key, sequence)) % 200).unwrap_or(0);
    delay.checked_mul(permille).unwrap_or(Duration::MAX) / 1000
}

/// A delay that no queue outlives: 100 years.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The moment `delay` after `now`; a delay that the clock cannot express is one that never ends.
fn after(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay.min(NEVER)).unwrap_or(now)
}

/// One Service in the hands of one worker.
///
/// When it is dropped before [`Taken::finish`] is through, because the reconciliation or the planning of the next one panicked or was
/// cancelled, it returns to the queue as a failure.
pub(crate) struct Taken {
    shared: Arc<Shared>,
    /// The Service.
    pub(crate) key: ServiceKey,
    /// Why.
    pub(crate) causes: Causes,
    finished: bool,
}

impl Taken {
    /// Gives the Service back.
    pub(crate) fn finish(mut self, next: Requeue) {
        self.shared.finish(&self.key, next);
        self.finished = true;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.finished {
            let failure = Failure::new(FailureClass::Bug, "the reconciliation was interrupted");
            self.shared.finish(&self.key, Requeue::Backoff(failure));
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;

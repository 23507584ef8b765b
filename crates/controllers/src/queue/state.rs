//! The keys of a queue, and when they are ready.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::metrics::QueueMetrics;
use super::ready::{Place, Ready};
use super::{Key, Reason};

/// A key that has waited longer than this is not passed over for ever: see [`OLDEST_FIRST_INTERVAL`].
const STARVATION_DELAY: Duration = Duration::from_secs(10);
/// Every fourth turn goes to the key that has waited longest, if longer than that delay, whatever its urgency. All other turns go to the
/// most urgent key: keys that change all the time starve no others, and a new Service does not wait for a change of nodes that takes
/// minutes for thousands of Services.
const OLDEST_FIRST_INTERVAL: u64 = 4;
/// The minimum interval at which a key is worked on for its own changes.
pub(super) const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The keys of a queue.
pub(super) struct State<K, R> {
    /// Boxed: a table has room for up to twice as many entries as it holds.
    entries: HashMap<K, Box<Entry<R>>>,
    ready: Ready<K>,
    /// Keys that become ready later.
    delayed: BTreeMap<(Instant, u64), (K, R)>,
    /// When the work on a key ended, for keys that were worked on within [`MIN_INTERVAL`].
    ended: HashMap<K, Instant>,
    sequence: u64,
    /// Number of keys taken.
    turns: u64,
    /// Whether workers get no more keys.
    pub(super) closed: bool,
}

impl<K, R> Default for State<K, R> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            ready: Ready::default(),
            delayed: BTreeMap::new(),
            ended: HashMap::new(),
            sequence: 0,
            turns: 0,
            closed: false,
        }
    }
}

/// The state of one key. An entry with nothing to remember is removed.
struct Entry<R> {
    /// Why the key is queued; `None` while it is not.
    reason: Option<R>,
    /// Place in `ready`.
    place: Option<Place>,
    /// Place in `delayed` of the planned retry.
    timer: Option<(Instant, u64)>,
    /// Place in `delayed` while the key is queued and has to rest.
    rest: Option<(Instant, u64)>,
    /// Since when a worker has the key.
    working: Option<Instant>,
    /// Since when the key waits for a worker.
    waiting: Option<Instant>,
    /// Failures in a row.
    failures: u32,
}

impl<R> Default for Entry<R> {
    fn default() -> Self {
        Self { reason: None, place: None, timer: None, rest: None, working: None, waiting: None, failures: 0 }
    }
}

impl<K: Key, R: Reason> State<K, R> {
    /// Returns the number of keys that can be taken.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Returns how long each worker has been at work.
    pub(super) fn working(&self, now: Instant) -> Vec<Duration> {
        let since = self.entries.values().filter_map(|entry| entry.working);
        since.map(|since| now.duration_since(since)).collect()
    }

    /// Returns when the next delay ends.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((due, _), _)| *due)
    }

    pub(super) fn add(&mut self, key: &K, reason: R, metrics: &QueueMetrics) {
        metrics.added();
        let entry = self.entries.entry(key.clone()).or_default();
        entry.reason = Some(entry.reason.map_or(reason, |others| others.and(reason)));
        if entry.working.is_none() {
            self.enqueue(key);
        }
    }

    /// Gives a key its place, or a better place.
    fn enqueue(&mut self, key: &K) {
        let now = Instant::now();
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(reason) = entry.reason else { return };
        let rested = self.ended.get(key).map(|ended| *ended + MIN_INTERVAL).filter(|until| *until > now);
        if let Some(until) = rested.filter(|_| entry.place.is_none() && reason.is_own_change()) {
            if entry.rest.is_none() {
                self.sequence += 1;
                entry.rest = Some((until, self.sequence));
                self.delayed.insert((until, self.sequence), (key.clone(), reason));
            }
            return;
        }
        if let Some(rest) = entry.rest.take() {
            self.delayed.remove(&rest);
        }
        let sequence = match entry.place {
            Some(place) if place.rank <= reason.rank() => return,
            Some(place) => {
                self.ready.remove(&place);
                place.sequence
            }
            None => {
                self.sequence += 1;
                self.sequence
            }
        };
        entry.waiting.get_or_insert(now);
        entry.place = Some(self.ready.insert(reason.rank(), sequence, key.clone()));
    }

    /// Moves due keys from `delayed` to `ready`.
    pub(super) fn mature(&mut self, now: Instant, metrics: &QueueMetrics) {
        while let Some(first) = self.delayed.first_entry() {
            if first.key().0 > now {
                return;
            }
            let (timer, (key, reason)) = first.remove_entry();
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            if entry.rest == Some(timer) {
                entry.rest = None;
                self.enqueue(&key);
            } else {
                entry.timer = None;
                self.add(&key, reason, metrics);
            }
        }
    }

    pub(super) fn pop(&mut self, metrics: &QueueMetrics) -> Option<(K, R)> {
        let now = Instant::now();
        self.turns += 1;
        let place = self.impatient(now).or_else(|| self.ready.first())?;
        let key = self.ready.remove(&place)?;
        let entry = self.entries.get_mut(&key)?;
        entry.place = None;
        entry.working = Some(now);
        let reason = entry.reason.take()?;
        metrics.taken(entry.waiting.take().map_or(Duration::ZERO, |since| now.duration_since(since)));
        Some((key, reason))
    }

    /// Returns the place of the key that was queued first, if this is its turn.
    fn impatient(&self, now: Instant) -> Option<Place> {
        if !self.turns.is_multiple_of(OLDEST_FIRST_INTERVAL) {
            return None;
        }
        let (place, key) = self.ready.oldest()?;
        let waiting = self.entries.get(key)?.waiting?;
        (now.duration_since(waiting) > STARVATION_DELAY).then_some(place)
    }

    /// Ends the work on a key: returns how often it failed before, and a number that is unique to this end.
    pub(super) fn finished(&mut self, key: &K, metrics: &QueueMetrics) -> (u32, u64) {
        self.sequence += 1;
        let now = Instant::now();
        self.ended.retain(|_, ended| *ended + MIN_INTERVAL > now);
        self.ended.insert(key.clone(), now);
        let Some(entry) = self.entries.get_mut(key) else { return (0, self.sequence) };
        if let Some(since) = entry.working.take() {
            metrics.worked(since.elapsed());
        }
        (entry.failures, self.sequence)
    }

    /// Plans when a key is queued again, in place of an earlier plan.
    pub(super) fn plan(&mut self, key: &K, failures: u32, again: Option<(Duration, R)>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.failures = failures;
        if let Some(timer) = entry.timer.take() {
            self.delayed.remove(&timer);
        }
        if let Some((delay, reason)) = again {
            let timer = (after(Instant::now(), delay), self.sequence);
            entry.timer = Some(timer);
            self.delayed.insert(timer, (key.clone(), reason));
        }
    }

    /// Queues a key that was added while a worker had it, and removes an entry with nothing to remember.
    pub(super) fn release(&mut self, key: &K) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.reason.is_some() {
            self.enqueue(key);
        } else if entry.failures == 0 && entry.timer.is_none() {
            self.entries.remove(key);
        }
    }

    /// Whether no key is remembered.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the failures of a key in a row, if it is known.
    #[cfg(test)]
    pub(super) fn failures(&self, key: &K) -> Option<u32> {
        self.entries.get(key).map(|entry| entry.failures)
    }
}

/// A delay that no queue outlives: 100 years.
const MAX_DELAY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Returns the moment `delay` after `now`, but at most [`MAX_DELAY`] after it.
fn after(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay.min(MAX_DELAY)).unwrap_or(now)
}

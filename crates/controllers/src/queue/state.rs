//! What a queue holds, and when it is ready.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::metrics::QueueMetrics;
use super::ready::{Place, Ready};
use super::{Key, Reason};

/// Who has waited longer than this is not passed over for ever: see [`OLDEST_FIRST_INTERVAL`].
const STARVATION_DELAY: Duration = Duration::from_secs(10);
/// Every fourth turn goes to the longest waiter, if it has waited for longer than that, whatever its urgency. All other turns go to the most
/// urgent: what changes all the time starves nothing, and a new Service does not wait for a change of nodes that takes minutes to reach
/// thousands.
const OLDEST_FIRST_INTERVAL: u64 = 4;
/// A key that changes all the time is worked on for its own changes at most so often.
pub(super) const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// What a queue holds.
pub(super) struct State<K, R> {
    /// Each is on its own: a table has room for up to twice as many as it holds.
    entries: HashMap<K, Box<Entry<R>>>,
    ready: Ready<K>,
    /// What becomes ready later.
    delayed: BTreeMap<(Instant, u64), (K, R)>,
    /// When the work on a key ended, of those that were worked on within [`MIN_INTERVAL`].
    ended: HashMap<K, Instant>,
    sequence: u64,
    /// Keys that were taken.
    turns: u64,
    /// Whether workers get nothing more.
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

/// What is known of one key. An entry without anything of note is removed.
struct Entry<R> {
    /// Why it is queued; absent while it is not.
    reason: Option<R>,
    /// Place in `ready`.
    place: Option<Place>,
    /// Place in `delayed` of what was planned.
    timer: Option<(Instant, u64)>,
    /// Place in `delayed` while it is queued and has to rest.
    rest: Option<(Instant, u64)>,
    /// Since when a worker has it.
    working: Option<Instant>,
    /// Since when it waits for one.
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
    /// How many keys can be taken.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// How long each worker has been at work.
    pub(super) fn working(&self, now: Instant) -> Vec<Duration> {
        let since = self.entries.values().filter_map(|entry| entry.working);
        since.map(|since| now.duration_since(since)).collect()
    }

    /// When the next delay ends.
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

    /// Gives a key its place, or a better one.
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

    /// Moves what is due from `delayed` to `ready`.
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

    /// The place of the one that was queued first, if this is its turn.
    fn impatient(&self, now: Instant) -> Option<Place> {
        if !self.turns.is_multiple_of(OLDEST_FIRST_INTERVAL) {
            return None;
        }
        let (place, key) = self.ready.oldest()?;
        let waiting = self.entries.get(key)?.waiting?;
        (now.duration_since(waiting) > STARVATION_DELAY).then_some(place)
    }

    /// The work on a key ended: answers how often it failed before, and a number that no other end has.
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

    /// Notes when a key comes again, in place of what was planned for it.
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

    /// Queues a key that was asked for while a worker had it, and forgets one of which nothing is known.
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

    /// Failures of a key in a row, if anything is known of it.
    #[cfg(test)]
    pub(super) fn failures(&self, key: &K) -> Option<u32> {
        self.entries.get(key).map(|entry| entry.failures)
    }
}

/// A delay that no queue outlives: 100 years.
const MAX_DELAY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The moment `delay` after `now`; a delay that the clock cannot express is one that never ends.
fn after(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay.min(MAX_DELAY)).unwrap_or(now)
}

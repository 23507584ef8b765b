//! Warnings whose cause lasts: the API server deletes an Event an hour after its last write.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// When the Warnings of one kind were written last. Each is due when its cause begins, and after each interval as long as the cause lasts.
#[derive(Debug)]
pub struct Lasting<K> {
    interval: Option<Duration>,
    written: HashMap<K, Instant>,
}

impl<K: Eq + Hash> Lasting<K> {
    /// Without an interval nothing is due twice.
    pub fn new(interval: Option<Duration>) -> Self {
        Self { interval, written: HashMap::new() }
    }

    /// Of everything that holds now, what has to be written now. What no longer holds is forgotten.
    pub fn due<T>(&mut self, holding: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
        let now = Instant::now();
        let mut before = std::mem::take(&mut self.written);
        let mut due = Vec::new();
        for one in holding {
            let key = key(&one);
            let is_fresh =
                |at: &Instant| self.interval.is_none_or(|interval| now.duration_since(*at) < interval);
            let fresh = before.remove(&key).filter(is_fresh);
            if fresh.is_none() {
                due.push(one);
            }
            self.written.insert(key, fresh.unwrap_or(now));
        }
        due
    }

    /// When the next one is due of what holds.
    pub fn next(&self) -> Option<Instant> {
        Some(*self.written.values().min()? + self.interval?)
    }

    /// Nothing holds any more.
    pub fn clear(&mut self) {
        self.written.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1800);

    #[tokio::test(start_paused = true)]
    async fn a_warning_is_due_when_its_cause_begins_and_once_in_each_interval_while_it_lasts() {
        let mut lasting = Lasting::new(Some(INTERVAL));
        let mut due = |names: &'static [&'static str]| lasting.due(names.iter().copied(), |name| *name);
        assert_eq!(due(&["a"]), ["a"]);
        tokio::time::advance(INTERVAL / 2).await;
        assert_eq!(due(&["a", "b"]), ["b"]);
        tokio::time::advance(INTERVAL / 2).await;
        assert_eq!(due(&["a", "b"]), ["a"]);
        assert_eq!(due(&["a"]), [""; 0]);
        assert_eq!(due(&["a", "b"]), ["b"], "it was over, and began again");
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_interval_a_warning_is_due_once() {
        let mut lasting = Lasting::new(None);
        assert_eq!(lasting.due(["a"], |name| *name), ["a"]);
        tokio::time::advance(INTERVAL * 100).await;
        assert_eq!(lasting.due(["a"], |name| *name), [""; 0]);
        assert_eq!(lasting.next(), None);
    }
}

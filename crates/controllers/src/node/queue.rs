//! The nodes that deserve a look. All that are due are taken together, because one question to the cloud serves them
//! all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use openstack_ccm_core::failure::Failure;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use crate::queue_metrics::{QueueMetrics, Source, WorkQueues};
use openstack_ccm_runtime::lock::lock;

/// What happens with a node after a look.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Requeue {
    /// Nothing is left to do until it changes.
    Done,
    /// It failed: again after the failure's delay, which grows.
    Backoff(Failure),
}

/// The queue. Clones share it.
#[derive(Clone, Default)]
pub(super) struct NodeQueue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    entries: Mutex<HashMap<String, Entry>>,
    changed: Notify,
    metrics: QueueMetrics,
}

/// What is known of one node. An entry without anything of note is removed.
#[derive(Default)]
struct Entry {
    /// When it is due; absent while nothing is to do.
    due: Option<Instant>,
    /// Since when it is being looked at.
    working: Option<Instant>,
    /// Failures in a row.
    failures: u32,
}

impl NodeQueue {
    /// Makes the metrics of the queue visible, under the framework's name of it.
    pub(super) fn register(&self, queues: &WorkQueues) {
        let shared = Arc::downgrade(&self.shared);
        let source: Source = Arc::new(move || {
            let Some(shared) = shared.upgrade() else { return (0, Vec::new()) };
            let (entries, now) = (lock(&shared.entries), Instant::now());
            let ready = entries.values().filter(|entry| entry.is_due(now)).count();
            let working = entries.values().filter_map(|entry| entry.working);
            (ready, working.map(|since| now.duration_since(since)).collect())
        });
        queues.add("Nodes", &self.shared.metrics, source);
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        lock(&self.shared.entries)
    }

    /// Queues a node. One that failed before is looked at now: what changed may have mended it.
    pub(super) fn add(&self, name: &str) {
        self.shared.metrics.added();
        self.entries().entry(name.to_owned()).or_default().due = Some(Instant::now());
        self.shared.changed.notify_one();
    }

    /// Waits for a node that is due, and then a little more for others; takes all that are due.
    pub(super) async fn take(&self, delay: Duration) -> Vec<String> {
        loop {
            let first = self.entries().values().filter_map(|entry| entry.due).min();
            let timer = async {
                match first {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = timer => {
                    sleep(delay).await;
                    let taken = self.take_due();
                    if !taken.is_empty() {
                        return taken;
                    }
                }
                () = self.shared.changed.notified() => {}
            }
        }
    }

    pub(super) fn take_due(&self) -> Vec<String> {
        let now = Instant::now();
        let mut entries = self.entries();
        let mut taken: Vec<String> = entries
            .iter_mut()
            .filter(|(_, entry)| entry.is_due(now))
            .map(|(name, entry)| {
                let due = entry.due.take().unwrap_or(now);
                entry.working = Some(now);
                self.shared.metrics.taken(now.duration_since(due));
                name.clone()
            })
            .collect();
        taken.sort_unstable();
        taken
    }

    /// Gives a node back.
    pub(super) fn finish(&self, name: &str, next: &Requeue) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(name) else { return };
        if let Some(since) = entry.working.take() {
            self.shared.metrics.worked(since.elapsed());
        }
        match next {
            Requeue::Done => entry.failures = 0,
            Requeue::Backoff(failure) => {
                self.shared.metrics.retried();
                // No random part: nodes that failed together are asked about together again.
                let retry = Instant::now() + failure.delay(entry.failures);
                entry.failures = entry.failures.saturating_add(1);
                entry.due.get_or_insert(retry);
            }
        }
        if entry.due.is_none() {
            entries.remove(name);
        }
        drop(entries);
        self.shared.changed.notify_one();
    }
}

impl Entry {
    fn is_due(&self, now: Instant) -> bool {
        self.working.is_none() && self.due.is_some_and(|due| due <= now)
    }
}

#[cfg(test)]
mod tests {
    use openstack_ccm_core::failure::FailureClass;

    use super::*;

    const DELAY: Duration = Duration::from_millis(100);

    #[tokio::test(start_paused = true)]
    async fn nodes_that_come_together_are_taken_together() {
        let queue = NodeQueue::default();
        queue.add("n2");
        let other = queue.clone();
        tokio::spawn(async move {
            sleep(DELAY / 2).await;
            other.add("n1");
            other.add("n2");
        });
        assert_eq!(queue.take(DELAY).await, ["n1", "n2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_waits_longer_each_time_and_a_change_ends_the_wait() {
        let queue = NodeQueue::default();
        queue.add("n1");
        let start = Instant::now();
        for seconds in [5, 10, 20] {
            let before = Instant::now();
            queue.take(Duration::ZERO).await;
            queue.finish("n1", &Requeue::Backoff(Failure::new(FailureClass::Unavailable, "x")));
            assert!(Instant::now() - before < Duration::from_secs(seconds));
        }
        assert_eq!(start.elapsed().as_secs(), 15);
        queue.add("n1");
        assert_eq!(queue.take(Duration::ZERO).await, ["n1"]);
        assert_eq!(start.elapsed().as_secs(), 15);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_changes_during_the_look_is_looked_at_again() {
        let queue = NodeQueue::default();
        queue.add("n1");
        queue.take(Duration::ZERO).await;
        queue.add("n1");
        queue.finish("n1", &Requeue::Done);
        assert_eq!(queue.take(Duration::ZERO).await, ["n1"]);
        queue.finish("n1", &Requeue::Done);
        assert!(queue.entries().is_empty());
    }
}

//! The work queue of Services.

use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_core::provider::Wake;
use openstack_ccm_core::service::ServiceKey;

use super::cause::{Cause, Causes};
use crate::queue::{self, Key, WorkQueue};

impl Key for ServiceKey {
    fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// A Service that one worker has taken.
pub(crate) type TakenService = queue::TakenKey<ServiceKey, Causes>;

/// What happens with a Service after a reconciliation.
pub(crate) type Reschedule = queue::Requeue<Causes>;

impl Reschedule {
    /// Success: the Service is reconciled again after the delay, if there is one, for this cause.
    pub(crate) fn again(delay: Option<Duration>, cause: Cause) -> Self {
        Self::Done(delay.map(|delay| (delay, Causes::only(cause))))
    }
}

/// The queue of Services that one controller works on.
///
/// The queue is created before the controller, so that the provider can hold a [`ServiceQueue::waker`] from the start.
#[derive(Clone)]
pub struct ServiceQueue(pub(super) WorkQueue<ServiceKey, Causes>);

impl Default for ServiceQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl ServiceQueue {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self(WorkQueue::new(Causes::only(Cause::Retry), true))
    }

    /// Returns the waker by which the provider queues a Service. It works before the controller runs: the key waits in the
    /// queue. A key that is not a Service of ours costs nothing.
    pub fn waker(&self) -> Arc<dyn Wake> {
        Arc::new(self.clone())
    }

    pub(crate) fn add(&self, key: &ServiceKey, cause: Cause) {
        self.0.add(key, Causes::only(cause));
    }

    /// Removes all ready Services from the queue, in order.
    pub(super) fn drain(&self) -> Vec<ServiceKey> {
        let take_out = |taken: TakenService| {
            let key = taken.key.clone();
            taken.finish(Reschedule::DONE);
            key
        };
        self.0.take_ready().into_iter().map(take_out).collect()
    }
}

impl Wake for ServiceQueue {
    fn wake(&self, key: &ServiceKey) {
        self.add(key, Cause::Woken);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn key(name: &str) -> ServiceKey {
        ServiceKey::new("default", name)
    }

    #[tokio::test(start_paused = true)]
    async fn changes_go_before_startup_before_nodes_before_retries() {
        let queue = ServiceQueue::new();
        for (name, cause) in [
            ("again", Cause::Again),
            ("retry", Cause::Retry),
            ("nodes", Cause::Nodes),
            ("startup", Cause::Startup),
            ("woken", Cause::Woken),
            ("new", Cause::Changed),
            ("upgraded", Cause::Resync),
        ] {
            queue.add(&key(name), cause);
        }
        queue.add(&key("upgraded"), Cause::Changed);
        let order: Vec<String> = queue.drain().iter().map(|key| key.name.to_string()).collect();
        assert_eq!(order, ["new", "upgraded", "woken", "startup", "nodes", "retry", "again"]);
    }

    /// Six Services with an event ten times a second on four workers, and one that is to follow its nodes. More urgent causes go first for
    /// a while, and Services that change all the time have to wait in between.
    #[rstest]
    #[case::woken(Cause::Woken, 9..15)]
    #[case::changed(Cause::Changed, 0..1)]
    #[tokio::test(start_paused = true)]
    async fn what_happens_all_the_time_starves_nobody(
        #[case] cause: Cause,
        #[case] seconds: std::ops::Range<u64>,
    ) {
        let queue = ServiceQueue::new();
        let start = tokio::time::Instant::now();
        queue.add(&key("quiet"), Cause::Nodes);
        let mut working = std::collections::VecDeque::new();
        loop {
            (0..6).for_each(|number| queue.add(&key(&format!("flapping-{number}")), cause));
            while working.len() < 4 {
                working.push_back(queue.0.take().await.unwrap());
            }
            if working.iter().any(|taken| *taken.key.name == *"quiet") {
                break;
            }
            tokio::time::advance(Duration::from_millis(100)).await;
            working.pop_front().unwrap().finish(Reschedule::DONE);
            assert!(start.elapsed() < Duration::from_secs(60), "it is starved");
        }
        assert!(seconds.contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_service_does_not_wait_for_a_change_of_nodes_to_reach_all() {
        let queue = ServiceQueue::new();
        (0..100).for_each(|number| queue.add(&key(&format!("old-{number}")), Cause::Nodes));
        tokio::time::advance(Duration::from_secs(60)).await;
        queue.add(&key("new"), Cause::Changed);
        let order = queue.drain();
        assert!(order.iter().take(2).any(|key| *key.name == *"new"), "{order:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_before_anybody_works_is_not_lost() {
        let queue = ServiceQueue::new();
        queue.waker().wake(&key("early"));
        let woken = queue.0.take().await.unwrap();
        assert_eq!((woken.key.clone(), woken.reason), (key("early"), Causes::only(Cause::Woken)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_reconciliation_has_a_cause_of_its_own() {
        let queue = ServiceQueue::new();
        queue.add(&key("a"), Cause::Changed);
        queue.0.take().await.unwrap().finish(Reschedule::again(Some(Duration::from_secs(30)), Cause::Again));
        let again = queue.0.take().await.unwrap();
        assert_eq!(again.reason, Causes::only(Cause::Again));
        again.finish(Reschedule::again(Some(Duration::from_secs(60)), Cause::Resync));
        assert_eq!(queue.0.take().await.unwrap().reason, Causes::only(Cause::Resync));
    }
}

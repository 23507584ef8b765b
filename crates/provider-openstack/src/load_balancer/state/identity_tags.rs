//! Schedules when load balancers and floating IPs that OCCM made get the tags that say who owns them.
//!
//! Octavia locks and reloads a load balancer for each change of its tags. After a switch from OCCM that would happen to all load
//! balancers at once, so each waits for its place in a queue, and only one is tagged at a time. The queue is in memory: after a
//! restart the tags themselves show what is left.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::limits::MAX_CHANGE_WAIT;

use openstack_ccm_core::lock::lock;
use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;

/// A load balancer is not tagged for this long after it is first seen: after a start other work comes first.
const FIRST_TAG_DELAY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct IdentityTagQueue {
    /// Pause between two load balancers; with `None`, nothing is tagged.
    pause: Option<Duration>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    places: HashMap<ServiceKey, Instant>,
    last: Option<Instant>,
    /// When the last tagging began.
    begun: Option<Instant>,
    at_work: Option<(ServiceKey, Instant)>,
}

/// When the load balancer of a Service may get its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Now,
    /// After this time the Service has to ask again.
    In(Duration),
    /// Tagging is turned off.
    Never,
}

impl IdentityTagQueue {
    /// Creates a queue that tags this many load balancers per minute; 0 turns tagging off.
    pub(crate) fn new(per_minute: u32) -> Self {
        let pause = Duration::from_secs(60).checked_div(per_minute);
        Self { pause, queue: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Asks whether a Service whose objects lack identity tags may tag them now. The Service keeps its place until `ends`.
    pub(crate) fn ask(&self, service: &ServiceKey) -> Permission {
        let Some(pause) = self.pause else { return Permission::Never };
        let (mut queue, now) = (self.lock(), Instant::now());
        let Queue { places, last, begun, at_work } = &mut *queue;
        let place = *places.entry(service.clone()).or_insert_with(|| {
            let place = last.map_or(now + FIRST_TAG_DELAY, |last| (last + pause).max(now + FIRST_TAG_DELAY));
            *last = Some(place);
            place
        });
        if place > now {
            return Permission::In(place - now);
        }
        match at_work {
            Some((at_work, _)) if at_work == service => Permission::Now,
            Some((_, since)) if since.elapsed() < MAX_CHANGE_WAIT => Permission::In(pause),
            // Services that were held up would otherwise follow each other closely.
            Some(_) | None => match begun.map(|begun| pause.saturating_sub(begun.elapsed())) {
                Some(rest) if !rest.is_zero() => Permission::In(rest),
                Some(_) | None => Permission::Now,
            },
        }
    }

    /// Returns the Services whose objects will get identity tags.
    pub(crate) fn waiting(&self) -> Vec<ServiceKey> {
        self.lock().places.keys().cloned().collect()
    }

    /// Notes that the Service's objects are getting their tags.
    pub(crate) fn begins(&self, service: &ServiceKey) {
        let (mut queue, now) = (self.lock(), Instant::now());
        queue.begun = Some(now);
        queue.at_work = Some((service.clone(), now));
    }

    /// Removes the Service: all its objects are tagged, or tagging failed. After a failure its next request queues at the end.
    pub(crate) fn ends(&self, service: &ServiceKey) {
        let mut queue = self.lock();
        queue.places.remove(service);
        queue.at_work.take_if(|(at_work, _)| at_work == service);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ServiceKey {
        ServiceKey::new("default", name)
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_tagged_after_the_other() {
        let queue = IdentityTagQueue::new(12);
        let places = ["a", "b", "c"].map(|name| queue.ask(&key(name)));
        assert_eq!(places, [60, 65, 70].map(|seconds| Permission::In(Duration::from_secs(seconds))));
        tokio::time::advance(Duration::from_secs(66)).await;
        assert_eq!(queue.ask(&key("a")), Permission::Now);
        queue.begins(&key("a"));
        assert_eq!(queue.ask(&key("a")), Permission::Now, "it may have to begin again");
        assert_eq!(queue.ask(&key("b")), Permission::In(Duration::from_secs(5)), "not beside another");
        queue.ends(&key("a"));
        let mut waiting = queue.waiting();
        waiting.sort();
        assert_eq!(waiting, [key("b"), key("c")]);
        assert_eq!(queue.ask(&key("b")), Permission::In(Duration::from_secs(5)), "nor close to it");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(queue.ask(&key("b")), Permission::Now);
        queue.begins(&key("b"));
        tokio::time::advance(MAX_CHANGE_WAIT).await;
        assert_eq!(queue.ask(&key("c")), Permission::Now, "one that vanished holds nobody up");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_failed_goes_to_the_end() {
        let queue = IdentityTagQueue::new(1);
        assert_eq!(queue.ask(&key("a")), Permission::In(FIRST_TAG_DELAY));
        assert_eq!(queue.ask(&key("b")), Permission::In(FIRST_TAG_DELAY * 2));
        tokio::time::advance(FIRST_TAG_DELAY).await;
        queue.begins(&key("a"));
        queue.ends(&key("a"));
        assert_eq!(queue.ask(&key("a")), Permission::In(FIRST_TAG_DELAY * 2));
        assert_eq!(IdentityTagQueue::new(0).ask(&key("a")), Permission::Never);
    }
}

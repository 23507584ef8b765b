//! How long a change of nodes takes to reach every load balancer.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;

use openstack_ccm_core::lock::lock;

/// Changes of nodes that have not reached every load balancer yet.
#[derive(Debug, Default)]
pub(crate) struct NodeRollouts {
    rollouts: Mutex<Vec<Rollout>>,
}

#[derive(Debug)]
struct Rollout {
    since: Instant,
    waiting: BTreeSet<ServiceKey>,
}

impl NodeRollouts {
    /// Begins a rollout: nodes changed at `since`, and these Services are queued for it.
    pub(crate) fn begin(&self, since: Instant, services: impl IntoIterator<Item = ServiceKey>) {
        let waiting: BTreeSet<ServiceKey> = services.into_iter().collect();
        if !waiting.is_empty() {
            lock(&self.rollouts).push(Rollout { since, waiting });
        }
    }

    /// Records that a Service was reconciled for a change of nodes; returns the durations of completed rollouts.
    pub(crate) fn reached(&self, service: &ServiceKey) -> Vec<Duration> {
        let mut rollouts = lock(&self.rollouts);
        for rollout in rollouts.iter_mut() {
            rollout.waiting.remove(service);
        }
        rollouts
            .extract_if(.., |rollout| rollout.waiting.is_empty())
            .map(|rollout| rollout.since.elapsed())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ServiceKey {
        ServiceKey::new("default", name)
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_service_ends_the_change() {
        let rollouts = NodeRollouts::default();
        rollouts.begin(Instant::now(), [key("a"), key("b")]);
        tokio::time::sleep(Duration::from_secs(2)).await;
        rollouts.begin(Instant::now(), [key("b")]);
        assert!(rollouts.reached(&key("a")).is_empty());
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(rollouts.reached(&key("b")), [Duration::from_secs(5), Duration::from_secs(3)]);
        assert!(rollouts.reached(&key("b")).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_without_load_balancers_is_none() {
        let rollouts = NodeRollouts::default();
        rollouts.begin(Instant::now(), []);
        assert!(lock(&rollouts.rollouts).is_empty());
    }
}

//! How long a change of nodes takes to come to every load balancer.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;

use openstack_ccm_runtime::lock::lock;

/// Changes of nodes that did not come to every load balancer yet.
#[derive(Debug, Default)]
pub(crate) struct NodeWaves {
    waves: Mutex<Vec<Wave>>,
}

#[derive(Debug)]
struct Wave {
    since: Instant,
    waiting: BTreeSet<ServiceKey>,
}

impl NodeWaves {
    /// Nodes changed at `since`, and these Services are about to be looked at.
    pub(crate) fn begin(&self, since: Instant, services: impl IntoIterator<Item = ServiceKey>) {
        let waiting: BTreeSet<ServiceKey> = services.into_iter().collect();
        if !waiting.is_empty() {
            lock(&self.waves).push(Wave { since, waiting });
        }
    }

    /// A Service was looked at because nodes changed; answers how long the changes took of which it was the last.
    pub(crate) fn reached(&self, service: &ServiceKey) -> Vec<Duration> {
        let mut waves = lock(&self.waves);
        for wave in waves.iter_mut() {
            wave.waiting.remove(service);
        }
        waves.extract_if(.., |wave| wave.waiting.is_empty()).map(|wave| wave.since.elapsed()).collect()
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
        let waves = NodeWaves::default();
        waves.begin(Instant::now(), [key("a"), key("b")]);
        tokio::time::sleep(Duration::from_secs(2)).await;
        waves.begin(Instant::now(), [key("b")]);
        assert!(waves.reached(&key("a")).is_empty());
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(waves.reached(&key("b")), [Duration::from_secs(5), Duration::from_secs(3)]);
        assert!(waves.reached(&key("b")).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_without_load_balancers_is_none() {
        let waves = NodeWaves::default();
        waves.begin(Instant::now(), []);
        assert!(lock(&waves.waves).is_empty());
    }
}

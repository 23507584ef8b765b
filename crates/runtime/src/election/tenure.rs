//! Since when the Lease is held, for checks by the clock alone.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack_ccm_core::permit::{Fence, Target};
use tokio::time::Instant;

use openstack_ccm_core::lock::lock;

/// The time of the last renewal of a held Lease. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tenure {
    renewed: Arc<Mutex<Option<Instant>>>,
}

impl Tenure {
    /// Records that a request begun at `since` took or renewed the Lease.
    pub(super) fn renew(&self, since: Instant) {
        *lock(&self.renewed) = Some(since);
    }

    /// Records that the Lease was released or lost.
    pub(super) fn end(&self) {
        *lock(&self.renewed) = None;
    }

    /// Returns the fence: how long after a renewal each target may be written.
    pub(super) fn fence(&self, renew_deadline: Duration, lease_duration: Duration) -> Fence {
        let renewed = Arc::clone(&self.renewed);
        Fence::new(move |target| {
            let lasts = match target {
                Target::Cloud => renew_deadline,
                Target::Cluster => lease_duration,
            };
            lock(&renewed).is_some_and(|renewed| renewed.elapsed() < lasts)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_cloud_is_left_alone_before_others_may_lead_and_the_cluster_by_then() {
        let tenure = Tenure::default();
        let fence = tenure.fence(Duration::from_secs(10), Duration::from_secs(15));
        let holds = || (fence.holds(Target::Cloud), fence.holds(Target::Cluster));
        assert_eq!(holds(), (false, false), "it was never held");
        tenure.renew(Instant::now());
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(holds(), (true, true));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(holds(), (false, true));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(holds(), (false, false));
        tenure.renew(Instant::now());
        assert_eq!(holds(), (true, true));
        tenure.end();
        assert_eq!(holds(), (false, false));
    }
}

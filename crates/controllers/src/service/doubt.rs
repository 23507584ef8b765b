//! Doubt about what the watch shows of a Service, before something is removed: a list may lag behind, and the data of the API server may
//! have been replaced by an older snapshot or by the data of another cluster.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_core::failure::Hold;
use openstack_ccm_core::service::{Service, ServiceKey};

use super::cache::is_older;
use super::context::{STALE_CACHE_DELAY, ServiceSync};
use super::event_texts;
use super::intent::uid;
use super::queue::Reschedule;

impl ServiceSync {
    /// Returns the Service, read anew if a newer state was acted on already, or what to do instead of going on. A list may lag behind;
    /// after a backup was restored, the Service really is in an earlier state.
    pub(super) async fn as_it_is_now(
        &self,
        key: &ServiceKey,
        shown: Arc<k8s::Service>,
    ) -> Result<Arc<k8s::Service>, Reschedule> {
        if !self.is_outdated(key, &shown) {
            return Ok(shown);
        }
        match self.writer.get(key).await {
            Ok(Some(live)) if uid(&live) == uid(&shown) => {
                if is_older(&shown, &live) {
                    self.answered(key, &live);
                }
                Ok(live)
            }
            Ok(_) => Err(Reschedule::Wait(STALE_CACHE_DELAY)),
            Err(error) => Err(self.retry(key, error.to_failure("failed to read the service"))),
        }
    }

    /// Whether a Service needs no load balancer only because it is shown in a state from before it asked for one.
    pub(super) fn is_of_the_past(&self, key: &ServiceKey, shown: &k8s::Service) -> bool {
        !self.ours.needs_cleanup(shown) && self.is_outdated(key, shown)
    }

    /// Whether a newer state than this was acted on already.
    fn is_outdated(&self, key: &ServiceKey, shown: &k8s::Service) -> bool {
        self.memory.with(key, |known| is_older(shown, &known.object)).unwrap_or(false)
    }

    /// Holds the load balancer of a Service that vanished with our finalizer and without an observed deletion: the API server's data were
    /// replaced, by an older snapshot or another cluster's. The load balancer is an orphan if the Service does not return.
    pub(super) fn hold_vanished(&self, key: &ServiceKey, uid: &str) {
        if self.note_hold(key, Some(Hold::ServiceVanished)) {
            let delete = self.names.delete_command;
            tracing::warn!(
                service = %key,
                uid,
                "the service disappeared without having been deleted: its load balancer is kept and used again if the service returns \
                 with this uid; if the service no longer exists, the load balancer is orphaned, so delete it: {delete} ID"
            );
        }
    }

    /// Asks the API server for the Service: a cache that lacks it is not proof enough to remove a load balancer.
    pub(super) async fn still_there(&self, known: &Service) -> Option<Reschedule> {
        match self.writer.get(&known.key).await {
            Ok(Some(live)) if uid(&live) == known.uid => Some(Reschedule::Wait(STALE_CACHE_DELAY)),
            Ok(_) => None,
            Err(error) => {
                let failure = error.to_failure("failed to check whether the service still exists");
                self.record_event(&known.key, &known.uid, event_texts::delete_failed(&failure));
                Some(self.retry(&known.key, failure))
            }
        }
    }
}

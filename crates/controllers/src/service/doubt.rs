//! What the watch shows of a Service is doubted where something is taken away by it: a list may lag behind, and the data of the API
//! server may have been replaced by an older snapshot or by those of another cluster.

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
    /// The Service, asked for by itself if a newer state than what is shown was acted on already, or what to do instead of going
    /// on. A list may lag behind; after the restoration of a backup, the Service itself is what it was.
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

    /// Whether a Service asks for the end of its load balancer only because it is shown as it was before it asked for one.
    pub(super) fn is_of_the_past(&self, key: &ServiceKey, shown: &k8s::Service) -> bool {
        !self.ours.needs_cleanup(shown) && self.is_outdated(key, shown)
    }

    /// Whether a newer state than this was acted on already.
    fn is_outdated(&self, key: &ServiceKey, shown: &k8s::Service) -> bool {
        self.memory.with(key, |known| is_older(shown, &known.object)).unwrap_or(false)
    }

    /// A Service is gone, although it had our finalizer and nobody was seen to delete it: the data of the API server were replaced, by
    /// an older snapshot or those of another cluster. Its load balancer stays, and is an orphan once the Service does not come back.
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

    /// A cache that lacks a Service is not proof enough to remove a load balancer: asks the API server.
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

//! The end of a load balancer: with its Service, after a change of type, or when the Service vanished.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::Outcome;
use openstack_ccm_core::service::{Goal, Service, ServiceKey};

use super::context::{STALE_CACHE_DELAY, ServiceSync};
use super::event_texts;
use super::finalizer::{self, Edited};
use super::intent::{self, facts, uid};
use super::queue::Reschedule;
use super::written::{Written, clearing};
use crate::metrics::Operation;

impl ServiceSync {
    /// Removes the load balancer of an existing Service, then our finalizer.
    pub(super) async fn release(&self, service: Arc<k8s::Service>) -> Reschedule {
        let key = intent::key(&service);
        let facts = facts(&service);
        self.memory.remember(&key, &service);
        self.memory.with(&key, |known| known.asked_to_go = true);
        self.announce_deletion(&facts);
        let reconciliation = self.reconcile_cloud(&Goal::Release(facts), Operation::Release).await;
        let failed = |failure| self.failed(&key, uid(&service), Operation::Release, failure, &[]);
        match reconciliation.result {
            Ok(Outcome::Released) => {
                self.released(&key, Arc::clone(&service), &reconciliation.annotations).await
            }
            Ok(Outcome::Waiting(waiting)) => {
                tracing::debug!(service = %key, on = %waiting.on, "waiting for removal");
                match self.write_annotations(&service, &reconciliation.annotations).await {
                    Ok(()) => self.wait(&key, uid(&service), waiting.on, waiting.at_most),
                    Err(error) => failed(error.to_failure("failed to update annotations of the service")),
                }
            }
            Ok(Outcome::Ready(_)) => failed(not_released()),
            Err(failure) => {
                self.write_annotations_anyway(&service, &reconciliation.annotations).await;
                failed(in_removal(&failure))
            }
        }
    }

    /// Removes our finalizer, status and annotations, since the cloud holds nothing of the Service any more.
    async fn released(
        &self,
        key: &ServiceKey,
        service: Arc<k8s::Service>,
        annotations: &Written,
    ) -> Reschedule {
        let uid = uid(&service).to_owned();
        let before = self.memory.with(key, |known| {
            known.published = None;
            known.writes(annotations);
            known.ready.take()
        });
        self.notify_neighbours(key, before.flatten().as_ref(), None);
        let rest = |service: &k8s::Service| clearing(service, annotations);
        match finalizer::remove(&self.writer, &self.ours, service, rest).await {
            Ok(Edited::Done(_) | Edited::Gone) => {
                self.forget(key);
                tracing::info!(service = %key, "the Service no longer has a load balancer");
                self.record_event(key, &uid, event_texts::deleted());
                Reschedule::DONE
            }
            Ok(Edited::Stale) => {
                self.forget(key);
                Reschedule::Wait(STALE_CACHE_DELAY)
            }
            Err(error) => {
                let failure = error.to_failure("failed to remove load balancer cleanup finalizer");
                self.failed(key, &uid, Operation::Release, failure, &[])
            }
        }
    }

    /// Removes the load balancer of a served Service that is gone, or was replaced by another object of the same name, if its
    /// removal was seen to be asked for. Returns `None` if there is no such Service, nothing is left of it, or it is held and another
    /// object has taken its place.
    pub(super) async fn release_predecessor(
        &self,
        key: &ServiceKey,
        cached: Option<&k8s::Service>,
    ) -> Option<Reschedule> {
        let (known, asked_to_go) =
            self.memory.with(key, |known| (Arc::clone(&known.object), known.asked_to_go))?;
        if cached.is_some_and(|cached| uid(cached) == uid(&known)) {
            return None;
        }
        if !asked_to_go {
            self.hold_vanished(key, uid(&known));
            return match cached {
                None => Some(Reschedule::DONE),
                Some(_) => {
                    self.forget(key);
                    None
                }
            };
        }
        let known = facts(&known);
        if cached.is_none()
            && let Some(next) = self.still_there(&known).await
        {
            return Some(next);
        }
        self.release_vanished(known).await
    }

    async fn release_vanished(&self, known: Service) -> Option<Reschedule> {
        let (key, uid) = (known.key.clone(), known.uid.clone());
        tracing::warn!(service = %key, uid, "the service was deleted without cleanup; removing its load balancer");
        self.announce_deletion(&known);
        let reconciliation = self.reconcile_cloud(&Goal::Release(known), Operation::Release).await;
        let failure = match reconciliation.result {
            Ok(Outcome::Released) => {
                self.forget(&key);
                self.record_event(&key, &uid, event_texts::deleted());
                return None;
            }
            Ok(Outcome::Waiting(waiting)) => return Some(Reschedule::Wait(waiting.at_most)),
            Ok(Outcome::Ready(_)) => not_released(),
            Err(failure) => failure,
        };
        self.record_event(&key, &uid, event_texts::delete_failed(&failure));
        Some(self.retry(&key, failure))
    }

    /// Reports once that the removal begins.
    fn announce_deletion(&self, service: &Service) {
        let before = self.memory.with(&service.key, |known| known.activity.replace(Operation::Release));
        if before != Some(Some(Operation::Release)) {
            self.record_event(&service.key, &service.uid, event_texts::deleting());
        }
    }

    fn forget(&self, key: &ServiceKey) {
        self.note_without_nodes(key, false);
        if let Some(known) = self.memory.forget(key) {
            self.advertise_metrics.publication_changed(known.announced.published(), None);
            self.metrics.hold_changed(known.held.map(|(hold, _)| hold), None);
            self.notify_neighbours(key, known.ready.as_ref(), None);
        }
    }
}

fn in_removal(failure: &Failure) -> Failure {
    Failure { message: format!("failed to delete load balancer: {failure}"), ..failure.clone() }
}

fn not_released() -> Failure {
    Failure::new(
        FailureClass::Bug,
        "the provider was asked to remove a load balancer, but reported it as in use",
    )
}

//! The reconciliation of one Service: the straight line from its object to the cloud and back.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as k8s;
use openstack_ccm_advertise::entry::entries;
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::permit::NotPermitted;
use openstack_ccm_core::provider::{Outcome, Ready, Reconciliation, WaitsOn};
use openstack_ccm_core::service::{Goal, Intent, ServiceKey};

use super::backends::{Backends, same_backends};
use super::cache::newer;
use super::cause::{Cause, Causes};
use super::context::{STALE_CACHE_DELAY, ServiceSync};
use super::drift;
use super::event_texts;
use super::finalizer::{self, Edited};
use super::intent::{self, Wanted, checked_facts, uid};
use super::memory::Restorations;
use super::publish::Published;
use super::queue::Reschedule;
use super::written::Written;
use crate::metrics::Operation;
use crate::names::FIELD_MANAGER;

impl ServiceSync {
    /// Reconciles one Service, and returns when it is to be reconciled again.
    pub(crate) async fn reconcile(&self, key: &ServiceKey, causes: Causes) -> Reschedule {
        match self.gate.closed() {
            None => {}
            Some(NotPermitted::AnotherCluster(_)) => return Reschedule::Unchanged,
            // This instance ends, unless the Lease is renewed after all.
            Some(_) => return Reschedule::Wait(STALE_CACHE_DELAY),
        }
        let cached = self.cache.get(key);
        if let Some(next) = self.release_predecessor(key, cached.as_deref()).await {
            return next;
        }
        let Some(cached) = cached else { return Reschedule::DONE };
        if causes == Causes::only(Cause::Waited) {
            return self.go_on_waiting(key, uid(&cached));
        }
        let service = newer(cached, self.memory.with(key, |known| known.latest.clone()).flatten());
        let service = match self.as_it_is_now(key, service).await {
            Ok(service) => service,
            Err(next) => return next,
        };
        match self.ours.wanted(&service, self.memory.serves(key)) {
            Wanted::Nothing => Reschedule::DONE,
            // Neither nodes nor ipMode matter to a release.
            Wanted::Release if !causes.asks_for_more_than(&[Cause::Nodes, Cause::Readvertise]) => {
                Reschedule::Unchanged
            }
            Wanted::Release if self.is_of_the_past(key, &service) => {
                self.hold_vanished(key, uid(&service));
                Reschedule::DONE
            }
            Wanted::Release => self.release(service).await,
            Wanted::Serve => self.serve(service, causes).await,
        }
    }

    async fn serve(&self, service: Arc<k8s::Service>, causes: Causes) -> Reschedule {
        let key = intent::key(&service);
        let nodes = self.nodes.borrow().clone();
        let backends = Arc::clone(&nodes.backends);
        let only_nodes = !causes.asks_for_more_than(&[Cause::Nodes, Cause::Readvertise]);
        if only_nodes && (!causes.has(Cause::Nodes) || self.has_converged(&key, &service, &backends)) {
            return if causes.has(Cause::Readvertise) {
                self.readvertise(service).await
            } else {
                Reschedule::Unchanged
            };
        }
        let served = self.memory.with(&key, |known| known.backends.is_some()).unwrap_or(false);
        let operation = if only_nodes && served { Operation::UpdateNodes } else { Operation::Ensure };
        let facts = match checked_facts(&service) {
            Ok(facts) => facts,
            Err(failure) => return self.failed(&key, uid(&service), operation, failure, &backends),
        };
        let before = Arc::clone(&service);
        let service = match self.with_finalizer(service, operation, &backends).await {
            Ok(service) => service,
            Err(next) => return next,
        };
        self.memory.remember(&key, &before);
        self.memory.with(&key, |known| known.asked_to_go = false);
        if !Arc::ptr_eq(&before, &service) {
            self.answered(&key, &service);
        }
        if entries(&service).is_empty() {
            // The first reconciliation: no client uses the address yet.
            self.under_way(&key, &facts.uid, operation);
        }
        let is_news = causes.asks_for_more_than(&[Cause::Again]);
        let why_none = self.selectors.why_none(&facts.annotations, &nodes);
        self.note_without_nodes(&key, why_none.is_some());
        if let Some(why) = why_none.as_ref().filter(|_| is_news) {
            tracing::warn!(service = %key, why, "no node can take traffic; existing members are kept");
            self.record_event(&key, &facts.uid, event_texts::no_nodes(why));
        }
        self.memory.with(&key, |known| {
            // What nodes changed is no drift.
            let are_same = known.backends.as_ref().is_some_and(|last| same_backends(last, &backends, &[]));
            known.drift = drift::after(known.drift.take(), causes).filter(|_| are_same);
        });
        if causes.has(Cause::Resync) {
            self.provider.expect_drift(&key);
            self.memory.with(&key, |known| {
                known.announced.warn_again();
                known.bypassed = None;
            });
        }
        let left_out = Arc::clone(&nodes.left_out);
        let intent = Intent { service: facts, nodes: Arc::clone(&backends), left_out };
        let reconciliation = self.reconcile_cloud(&Goal::Serve(intent), operation).await;
        self.conclude(&service, reconciliation, operation, &backends).await
    }

    /// Whether the last successful reconciliation already had these backends, as far as they matter to this Service.
    fn has_converged(&self, key: &ServiceKey, service: &k8s::Service, backends: &Backends) -> bool {
        let empty = std::collections::BTreeMap::new();
        let annotations = service.metadata.annotations.as_ref().unwrap_or(&empty);
        let selector = self.selectors.of(annotations).unwrap_or_default();
        let selected_by: Vec<&str> = selector.keys().collect();
        self.memory
            .with(key, |known| {
                uid(&known.object) == uid(service)
                    && known.activity.is_none()
                    && known.backends.as_ref().is_some_and(|last| same_backends(last, backends, &selected_by))
            })
            .unwrap_or(false)
    }

    /// Returns the Service with our finalizer, or what to do instead of going on.
    async fn with_finalizer(
        &self,
        service: Arc<k8s::Service>,
        operation: Operation,
        backends: &Backends,
    ) -> Result<Arc<k8s::Service>, Reschedule> {
        let (key, uid) = (intent::key(&service), uid(&service).to_owned());
        match finalizer::add(&self.writer, &self.ours, service).await {
            Ok(Edited::Done(service)) => Ok(service),
            Ok(Edited::Gone | Edited::Stale) => Err(Reschedule::Wait(STALE_CACHE_DELAY)),
            Err(error) => {
                let failure = error.to_failure("failed to add load balancer cleanup finalizer");
                Err(self.failed(&key, &uid, operation, failure, backends))
            }
        }
    }

    /// Publishes the provider's last report again, without asking the cloud.
    async fn readvertise(&self, service: Arc<k8s::Service>) -> Reschedule {
        let key = intent::key(&service);
        let ready = self.memory.with(&key, |known| {
            // The first publication writes annotations with the status, and is tried again by itself.
            let is_again = known.announced.published().is_some() && uid(&known.object) == uid(&service);
            known.ready.clone().filter(|_| is_again)
        });
        let Some(ready) = ready.flatten() else { return Reschedule::Unchanged };
        let uid = uid(&service).to_owned();
        if self.memory.with(&key, |known| known.restorations.announce()) == Some(true) {
            self.announce_contest(&key, &uid).await;
        }
        match self.publish(service, &ready, &Written::new()).await {
            Ok(Published::Done) => Reschedule::Unchanged,
            Ok(Published::Stale) => Reschedule::Wait(STALE_CACHE_DELAY),
            Ok(Published::Unsettled) => {
                self.failed(&key, &uid, Operation::Ensure, Published::unsettled(), &[])
            }
            Err(error) => {
                let failure = error.to_failure("failed to update load balancer status");
                self.failed(&key, &uid, Operation::Ensure, failure, &[])
            }
        }
    }

    /// Reports which other controller writes the status.
    async fn announce_contest(&self, key: &ServiceKey, uid: &str) {
        let writer = self.writer.last_status_writer(key, |manager| manager != FIELD_MANAGER).await;
        let writer = writer.unwrap_or_else(|error| {
            tracing::warn!(service = %key, error = error.message(), "could not determine which other controller writes the status");
            None
        });
        let writer = writer.unwrap_or_else(|| "another controller".to_owned());
        tracing::warn!(service = %key, writer, "another controller keeps writing the status");
        self.record_event(
            key,
            uid,
            event_texts::contested(&writer, Restorations::MAX_PER_WINDOW, Restorations::WINDOW),
        );
    }

    /// Turns the result of a reconciliation that serves into writes, events, and the next step.
    async fn conclude(
        &self,
        service: &Arc<k8s::Service>,
        reconciliation: Reconciliation,
        operation: Operation,
        backends: &Backends,
    ) -> Reschedule {
        let key = intent::key(service);
        let failed = |failure| self.failed(&key, uid(service), operation, failure, backends);
        if let Err(error) = self.withdraw(service, &reconciliation.foreign_addresses).await {
            return failed(error.to_failure("failed to update load balancer status"));
        }
        match reconciliation.result {
            Ok(Outcome::Ready(ready)) if ready.addresses.is_empty() => failed(Failure::new(
                FailureClass::Bug,
                "the provider reported a load balancer without an address",
            )),
            Ok(Outcome::Ready(ready)) => {
                self.ready(service, &ready, &reconciliation.annotations, operation, backends).await
            }
            Ok(Outcome::Waiting(waiting)) => {
                tracing::debug!(service = %key, on = %waiting.on, "waiting");
                if let WaitsOn::OwnStep(step) = &waiting.on {
                    self.memory.with(&key, |known| known.drift.iter_mut().for_each(|drift| drift.note(step)));
                }
                if waiting.on != WaitsOn::Turn {
                    self.under_way(&key, uid(service), operation);
                }
                if let Some(failure) = &waiting.unfinished {
                    self.record_event(&key, uid(service), event_texts::failed(operation, failure, backends));
                }
                match self.write_annotations(service, &reconciliation.annotations).await {
                    Ok(()) => self.wait(&key, uid(service), waiting.on, waiting.at_most),
                    Err(error) => failed(error.to_failure("failed to update annotations of the service")),
                }
            }
            Ok(Outcome::Released) => failed(Failure::new(
                FailureClass::Bug,
                "the provider removed the load balancer, although it was asked to create or update it",
            )),
            Err(failure) => {
                self.write_annotations_anyway(service, &reconciliation.annotations).await;
                failed(failure)
            }
        }
    }

    async fn ready(
        &self,
        service: &Arc<k8s::Service>,
        ready: &Ready,
        annotations: &Written,
        operation: Operation,
        backends: &Backends,
    ) -> Reschedule {
        let key = intent::key(service);
        if ready.changed {
            self.under_way_silently(&key, operation);
        }
        let published = entries(service);
        let before = self.memory.with(&key, |known| {
            known.published.get_or_insert(published);
            known.ready.replace(ready.clone())
        });
        let before = before.flatten();
        self.notify_neighbours(&key, before.as_ref(), Some(ready));
        match self.publish(Arc::clone(service), ready, annotations).await {
            Ok(Published::Done) => {}
            Ok(Published::Stale) => return Reschedule::Wait(STALE_CACHE_DELAY),
            Ok(Published::Unsettled) => {
                return self.failed(&key, uid(service), Operation::Ensure, Published::unsettled(), backends);
            }
            Err(error) => {
                let failure = error.to_failure("failed to update load balancer status");
                return self.failed(&key, uid(service), Operation::Ensure, failure, backends);
            }
        }
        let held =
            ready.unfinished.as_ref().is_some_and(|failure| matches!(failure.class, FailureClass::Held(_)));
        if !held {
            self.note_hold(&key, None);
        }
        if let Some(failure) = ready.unfinished.clone() {
            return self.failed(&key, uid(service), operation, failure, backends);
        }
        let activity = self.memory.with(&key, |known| {
            known.backends = Some(Arc::clone(backends));
            known.activity.take()
        });
        if let Some(notice) = event_texts::concluded(activity.flatten(), backends.len()) {
            tracing::info!(service = %key, reason = notice.reason, "load balancer is up to date");
            self.record_event(&key, uid(service), notice);
        }
        self.report_drift(&key, uid(service), ready.changed, &ready.done);
        // The check for drift covers this, too.
        match ready.requeue_after.filter(|again| self.resync.is_none_or(|resync| *again < resync)) {
            Some(again) => Reschedule::again(Some(again), Cause::Again),
            None => Reschedule::again(self.resync, Cause::Resync),
        }
    }

    /// Reports what a check for drift has repaired, if anything.
    fn report_drift(&self, key: &ServiceKey, uid: &str, changed: bool, done: &[String]) {
        let drift = self.memory.with(key, |known| known.drift.take()).flatten();
        if let Some(notice) = drift.and_then(|drift| drift.report(changed, done)) {
            self.metrics.drift_repairs.inc();
            tracing::warn!(service = %key, message = notice.message, "drift repaired");
            self.record_event(key, uid, notice);
        }
    }

    /// Notes that work in the cloud is under way, and reports that once.
    fn under_way(&self, key: &ServiceKey, uid: &str, operation: Operation) {
        if self.under_way_silently(key, operation) && operation == Operation::Ensure {
            self.record_event(key, uid, event_texts::ensuring());
        }
    }

    /// Notes the operation under way; returns whether it is new.
    fn under_way_silently(&self, key: &ServiceKey, operation: Operation) -> bool {
        let before = self.memory.with(key, |known| {
            let before = known.activity;
            known.activity = before.or(Some(operation));
            before
        });
        before == Some(None)
    }
}

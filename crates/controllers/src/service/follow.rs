//! The watch of Services: keeps the cache, and queues Services that need a reconciliation.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1 as k8s;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use openstack_ccm_advertise::cluster::ServerSupport;
use openstack_ccm_core::provider::AnnotationUse;
use openstack_ccm_core::service::ServiceKey;
use tokio::sync::watch;
use tokio::time::Instant;

use super::cache::{is_echo, newer};
use super::cause::Cause;
use super::change::{Annotations, needs_reconciliation, status_edited};
use super::context::ServiceSync;
use super::intent::{key, uid};
use super::queue::ServiceQueue;
use super::trim::trim;
use openstack_ccm_runtime::listed;
use openstack_ccm_runtime::watch::events;

/// Follows the Services of the cluster for ever. `listed` becomes true with the first complete list.
pub(super) async fn follow(
    client: Client,
    sync: Arc<ServiceSync>,
    queue: ServiceQueue,
    listed: watch::Sender<bool>,
) {
    let stream = events::<listed::Service, k8s::Service>(Api::all(client), sync.reading());
    pin_mut!(stream);
    let mut follower = Follower { sync, queue, listed, listing: HashMap::new() };
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                // The event may be of another cluster; a list needs a check that began after it.
                if matches!(event, Event::InitDone) {
                    follower.sync.cluster.begun();
                }
                follower.sync.cluster.confirmed().await;
                follower.apply(event);
            }
            Err(error) => {
                tracing::warn!(%error, "watch of services interrupted");
                follower.sync.server.suspect();
            }
        }
    }
}

struct Follower {
    sync: Arc<ServiceSync>,
    queue: ServiceQueue,
    listed: watch::Sender<bool>,
    /// The list in progress.
    listing: HashMap<ServiceKey, Arc<k8s::Service>>,
}

impl Follower {
    fn apply(&mut self, event: Event<k8s::Service>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(service) => {
                let (key, cached) = self.cached(service);
                self.listing.insert(key, cached);
            }
            Event::InitDone => self.list_complete(),
            Event::Apply(service) => {
                let (key, new) = self.cached(service);
                if let Some(gone) = self.sync.cache.get(&key).filter(|old| uid(old) != uid(&new)) {
                    self.ended(&key, &gone, false);
                }
                let old = self.sync.cache.put(key.clone(), Arc::clone(&new));
                self.changed(&key, old.as_deref(), &new, Cause::Changed);
            }
            Event::Delete(service) => {
                let (key, last) = self.cached(service);
                self.ended(&key, &last, true);
                self.sync.cache.remove(&key);
                self.vanished(&key);
            }
        }
    }

    /// Returns key and cached form of an object.
    fn cached(&self, mut service: k8s::Service) -> (ServiceKey, Arc<k8s::Service>) {
        let key = key(&service);
        trim(&mut service, &self.sync.ours, self.sync.memory.serves(&key));
        (key, Arc::new(service))
    }

    /// Compares the new list with what was known, because changes may have been missed.
    fn list_complete(&mut self) {
        let new: Vec<_> =
            self.listing.iter().map(|(key, cached)| (key.clone(), Arc::clone(cached))).collect();
        for (key, gone) in self.sync.cache.lacking(&self.listing) {
            self.ended(&key, &gone, false);
        }
        let answered = self.sync.memory.listed_anew();
        let mut old = self.sync.cache.replace(std::mem::take(&mut self.listing));
        let first = !*self.listed.borrow();
        for (key, new) in &new {
            // At the start, Services that are not published yet go first.
            let cause = if first && self.sync.cache.is_in_use(new) { Cause::Startup } else { Cause::Changed };
            // If we wrote more than the watch showed, a list with the state that the watch showed is older than our write: from a
            // restored backup. Released Services are not remembered.
            let old = old.remove(key).filter(|_| self.sync.memory.serves(key) && !answered.contains(key));
            self.changed(key, old.as_deref(), new, cause);
        }
        old.keys().for_each(|gone| self.vanished(gone));
        self.listed.send_replace(true);
        if !first {
            self.sync.server.suspect();
        }
    }

    fn changed(&self, key: &ServiceKey, old: Option<&k8s::Service>, new: &Arc<k8s::Service>, cause: Cause) {
        let known = self.sync.memory.with(key, |known| {
            // An echo of our write is no edit by others: what we are about to write now may differ from it.
            let echo = known.latest.as_ref().is_some_and(|answered| is_echo(new, answered));
            let newest = newer(Arc::clone(new), known.latest.take());
            known.latest = (!Arc::ptr_eq(&newest, new)).then_some(newest);
            (known.written(), known.published.clone().filter(|_| !echo))
        });
        let (written, published) = known.unwrap_or_default();
        let ours = &self.sync.ours;
        let means_something = |key: &str| self.sync.provider.use_of_annotation(key) != AnnotationUse::None;
        let annotations = Annotations { written: &written, means_something: &means_something };
        if needs_reconciliation(ours, old, new, &annotations) {
            return self.queue.add(key, cause);
        }
        self.sync.memory.follow(key, old, new);
        if let Some(published) = published {
            let compare_mode = self.sync.server.known() != ServerSupport::Drops;
            if status_edited(ours, new, &published, compare_mode) {
                self.restore(key, new);
            } else if self.sync.memory.with(key, |known| known.announced.is_left_to_others()) == Some(true) {
                // It is as it should be again, and the metric has to say so.
                self.queue.add(key, Cause::Readvertise);
            }
        }
    }

    /// Publishes again after an edit by another client, unless both keep overwriting each other.
    fn restore(&self, key: &ServiceKey, edited: &k8s::Service) {
        self.sync.metrics.status_edits.inc();
        match self.sync.memory.with(key, |known| known.restorations.allow(Instant::now())) {
            Some(true) => self.queue.add(key, Cause::Readvertise),
            Some(false) | None => {
                tracing::warn!(service = %key, "another controller keeps changing the published status; this controller stops writing the \
                                                status for a while");
                self.sync.left_to_others(key, edited);
            }
        }
    }

    /// Notes of an object that is gone, or replaced by another of the same name, whether it was seen to ask for its end. Comes before the
    /// cache lacks the object, so that no worker decides without it.
    fn ended(&self, key: &ServiceKey, last: &Arc<k8s::Service>, deleted: bool) {
        self.sync.memory.with(key, |known| {
            if uid(&known.object) == uid(last) {
                let last = newer(Arc::clone(last), known.latest.take());
                known.asked_to_go |= self.sync.ours.lets_go(&last, deleted);
            }
        });
    }

    /// Queues a Service that vanished without a release by us: its load balancer is still there.
    fn vanished(&self, key: &ServiceKey) {
        if self.sync.memory.serves(key) {
            self.queue.add(key, Cause::Changed);
        }
    }
}

//! The watch of Services: keeps the cache and queues what deserves a pass.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1 as k8s;
use kube::runtime::reflector::{ObjectRef, store::Writer};
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use openstack_ccm_core::advertise::capability::ServerSupport;
use openstack_ccm_core::service::ServiceKey;
use tokio::sync::watch;
use tokio::time::Instant;

use super::change::{needs_pass, status_edited};
use super::intent::key;
use super::memory::{is_echo, newer};
use super::publish::entries;
use super::queue::{Cause, ServiceQueue};
use super::sync::ServiceSync;
use super::trim::trim;
use crate::watch::events;

/// Follows the Services of the cluster for ever. `listed` becomes true with the first complete list.
pub(super) async fn follow(
    client: Client,
    writer: Writer<k8s::Service>,
    sync: Arc<ServiceSync>,
    queue: ServiceQueue,
    listed: watch::Sender<bool>,
) {
    let stream = events::<k8s::Service>(Api::all(client));
    pin_mut!(stream);
    let mut follower = Follower { writer, sync, queue, listed };
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                let event = event.modify(|service| follower.trim(service));
                follower.apply(&event);
            }
            Err(error) => {
                tracing::warn!(%error, "watch of services interrupted");
                follower.sync.capability.suspect();
            }
        }
    }
}

struct Follower {
    writer: Writer<k8s::Service>,
    sync: Arc<ServiceSync>,
    queue: ServiceQueue,
    listed: watch::Sender<bool>,
}

impl Follower {
    fn trim(&self, service: &mut k8s::Service) {
        trim(service, &self.sync.ours, self.sync.memory.serves(&key(service)));
    }

    fn apply(&mut self, event: &Event<k8s::Service>) {
        match event {
            Event::Init | Event::InitApply(_) => self.writer.apply_watcher_event(event),
            Event::InitDone => self.list_complete(event),
            Event::Apply(service) => {
                let reference = ObjectRef::from_obj(service);
                let old = self.sync.cache.get(&reference);
                self.writer.apply_watcher_event(event);
                if let Some(new) = self.sync.cache.get(&reference) {
                    self.changed(old.as_deref(), &new, Cause::Changed);
                }
            }
            Event::Delete(service) => {
                self.writer.apply_watcher_event(event);
                self.vanished(service);
            }
        }
    }

    /// Compares the new list with what was known, because changes may have been missed.
    fn list_complete(&mut self, event: &Event<k8s::Service>) {
        let mut old: HashMap<_, _> =
            self.sync.cache.state().into_iter().map(|service| (key(&service), service)).collect();
        self.writer.apply_watcher_event(event);
        let first = !*self.listed.borrow();
        for new in self.sync.cache.state() {
            let known = old.remove(&key(&new));
            // At the start those that somebody waits for go first.
            let served = first && !entries(&new).is_empty() && !self.sync.ours.needs_cleanup(&new);
            self.changed(known.as_deref(), &new, if served { Cause::Startup } else { Cause::Changed });
        }
        for gone in old.values() {
            self.vanished(gone);
        }
        self.listed.send_replace(true);
        if !first {
            self.sync.capability.suspect();
        }
    }

    fn changed(&self, old: Option<&k8s::Service>, new: &Arc<k8s::Service>, cause: Cause) {
        let key = key(new);
        let known = self.sync.memory.with(&key, |known| {
            // An echo tells nothing about others: what we are about to write now may differ from it.
            let echo = known.latest.as_ref().is_some_and(|answered| is_echo(new, answered));
            let newest = newer(Arc::clone(new), known.latest.take());
            known.latest = (!Arc::ptr_eq(&newest, new)).then_some(newest);
            (known.written.clone(), known.published.clone().filter(|_| !echo))
        });
        let (written, published) = known.unwrap_or_default();
        if needs_pass(&self.sync.ours, old, new, &written) {
            self.queue.add(&key, cause);
        } else if let Some(published) = published {
            let compare_mode = self.sync.capability.known() != ServerSupport::Drops;
            if status_edited(&self.sync.ours, new, &published, compare_mode) {
                self.restore(&key);
            }
        }
    }

    /// Somebody edited the status: publishes again, unless that has become a quarrel.
    fn restore(&self, key: &ServiceKey) {
        match self.sync.memory.with(key, |known| known.restorations.allow(Instant::now())) {
            Some(true) => self.queue.add(key, Cause::Readvertise),
            Some(false) | None => {
                tracing::warn!(service = %key, "another writer keeps changing the published status; it is left alone for a while");
            }
        }
    }

    /// An object is gone. Usually we let it go ourselves; if not, its load balancer is still there.
    fn vanished(&self, service: &k8s::Service) {
        let key = key(service);
        if self.sync.memory.serves(&key) {
            self.queue.add(&key, Cause::Changed);
        }
    }
}

//! Which load balancers are being created, and which Services wait to create theirs. Pure.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::limits::MAX_CHANGE_WAIT;

use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;

use super::window::Window;

/// An admission that is not used within this time goes to the next Service: its holder may be gone. A waiting Service is reconciled
/// this often even without being woken, so that it uses its admission in time.
pub(super) const ADMISSION_LIFETIME: Duration = Duration::from_secs(60);

/// Numbers of creations and of waiting Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load_balancer) struct Counts {
    /// Services that wait to create their load balancer.
    pub waiting: usize,
    /// Load balancers that are being created.
    pub under_way: usize,
    /// How many load balancers may be created at once.
    pub limit: usize,
}

/// The answer to a Service that asks whether it may create its load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load_balancer) enum Admission {
    /// The Service may create its load balancer.
    Granted,
    /// The Service waits for others.
    Queued {
        /// How many load balancers are created before it, as things stand.
        before: usize,
    },
}

/// The load balancers that are being created, and the Services that wait to create theirs.
#[derive(Debug, Default)]
pub(in crate::load_balancer) struct CreationQueue {
    window: Window,
    under_way: HashMap<ServiceKey, Creation>,
    waiting: HashSet<ServiceKey>,
    /// Waiting Services by namespace, in order. No namespace has an empty queue.
    queues: BTreeMap<Arc<str>, VecDeque<ServiceKey>>,
    /// The namespace of the Service that was admitted last from the queue.
    last: Arc<str>,
}

#[derive(Debug)]
struct Creation {
    began: Instant,
    /// Whether Octavia has accepted the creation.
    sent: bool,
    /// Whether as many creations as allowed were under way at some time during this one: only then may the maximum grow.
    was_full: bool,
    /// Whether no other creation was under way during this one.
    was_alone: bool,
}

impl CreationQueue {
    pub(in crate::load_balancer) fn counts(&self) -> Counts {
        Counts { waiting: self.waiting.len(), under_way: self.under_way.len(), limit: self.window.size() }
    }

    /// Returns whether the Service creates its load balancer, or waits to create it.
    pub(in crate::load_balancer) fn includes(&self, service: &ServiceKey) -> bool {
        self.under_way.contains_key(service) || self.waiting.contains(service)
    }

    /// Asks whether the Service may create its load balancer now.
    pub(in crate::load_balancer) fn ask(&mut self, service: &ServiceKey, now: Instant) -> Admission {
        self.expire(now);
        if let Some(creation) = self.under_way.get_mut(service) {
            // The Service was admitted before, or its load balancer is gone and has to be created again. A creation that Octavia
            // accepted keeps its place: if its id was never recorded, the load balancer is found by its name.
            if !creation.sent {
                creation.began = now;
            }
            return Admission::Granted;
        }
        if self.waiting.contains(service) {
            return Admission::Queued { before: self.before(service) };
        }
        if self.waiting.is_empty() {
            if self.under_way.is_empty() {
                self.window.begins_anew();
            }
            if self.has_room() {
                self.begin(service.clone(), now);
                return Admission::Granted;
            }
        }
        self.waiting.insert(service.clone());
        self.queues.entry(service.namespace.clone()).or_default().push_back(service.clone());
        Admission::Queued { before: self.before(service) }
    }

    /// Returns how many load balancers are created before that of a waiting Service; namespaces take turns.
    fn before(&self, service: &ServiceKey) -> usize {
        let own = self.queues.get(&service.namespace);
        let place = own.and_then(|own| own.iter().position(|waiting| waiting == service)).unwrap_or_default();
        let others = self.queues.iter().filter(|(namespace, _)| **namespace != service.namespace);
        self.under_way.len() + place + others.map(|(_, queue)| queue.len().min(place + 1)).sum::<usize>()
    }

    /// Notes that Octavia accepted the creation.
    pub(in crate::load_balancer) fn sent(&mut self, service: &ServiceKey) {
        if let Some(creation) = self.under_way.get_mut(service) {
            creation.sent = true;
        }
    }

    /// Notes that Octavia finished a Service's load balancer. A failed creation says nothing about how long others take.
    pub(in crate::load_balancer) fn ended(&mut self, service: &ServiceKey, is_active: bool, now: Instant) {
        let Some(creation) = self.under_way.remove(service) else { return };
        self.window.is_not_quiet();
        if creation.sent && is_active {
            let took = now.saturating_duration_since(creation.began);
            self.window.ended(took, creation.was_full, creation.was_alone);
        }
    }

    /// Notes the end of a reconciliation.
    pub(in crate::load_balancer) fn reconciled(
        &mut self,
        service: &ServiceKey,
        is_ready: bool,
        now: Instant,
    ) {
        if is_ready {
            self.ended(service, true, now);
            self.remove_waiter(service);
        } else if self.under_way.get(service).is_some_and(|creation| !creation.sent) {
            self.under_way.remove(service);
        }
    }

    /// Removes a Service that is being deleted. Octavia's work on its load balancer is no creation that others should wait for.
    pub(in crate::load_balancer) fn forget(&mut self, service: &ServiceKey, now: Instant) {
        self.expire(now);
        self.under_way.remove(service);
        self.remove_waiter(service);
    }

    /// Admits as many waiting Services as there is room for, one of each namespace in turn, and returns them.
    pub(in crate::load_balancer) fn take_next(&mut self, now: Instant) -> Vec<ServiceKey> {
        self.window.passes(!self.waiting.is_empty(), now);
        let mut next = Vec::new();
        while self.has_room()
            && let Some(service) = self.first()
        {
            self.remove_waiter(&service);
            self.last.clone_from(&service.namespace);
            self.begin(service.clone(), now);
            next.push(service);
        }
        next
    }

    fn first(&self) -> Option<ServiceKey> {
        let after = self.queues.iter().find(|(namespace, _)| **namespace > self.last);
        after.or_else(|| self.queues.iter().next())?.1.front().cloned()
    }

    fn has_room(&self) -> bool {
        self.under_way.len() < self.window.size()
    }

    fn begin(&mut self, service: ServiceKey, now: Instant) {
        let was_alone = self.under_way.is_empty();
        self.under_way.values_mut().for_each(|creation| creation.was_alone = false);
        self.under_way.insert(service, Creation { began: now, sent: false, was_full: false, was_alone });
        if !self.has_room() {
            self.under_way.values_mut().for_each(|creation| creation.was_full = true);
        }
    }

    fn remove_waiter(&mut self, service: &ServiceKey) {
        if !self.waiting.remove(service) {
            return;
        }
        if let Some(queue) = self.queues.get_mut(&service.namespace) {
            queue.retain(|waiting| waiting != service);
            if queue.is_empty() {
                self.queues.remove(&service.namespace);
            }
        }
    }

    fn expire(&mut self, now: Instant) {
        self.under_way.retain(|_, creation| {
            let longest = if creation.sent { MAX_CHANGE_WAIT } else { ADMISSION_LIFETIME };
            now.saturating_duration_since(creation.began) < longest
        });
    }
}

//! Whose load balancers are being created, and who waits for that. Pure.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use openstack_ccm_core::service::ServiceKey;
use tokio::time::Instant;

use super::window::{Measured, Window};

/// A turn that nobody takes within this time is somebody else's: the Service may be gone.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);
/// A creation whose end nobody sees holds others up no longer than this.
const LONGEST: Duration = Duration::from_secs(600);

/// How many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Services that wait.
    pub waiting: usize,
    /// Load balancers that are being created.
    pub under_way: usize,
    /// How many of these there may be.
    pub limit: usize,
}

/// What is said to a Service that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is its turn.
    Now,
    /// It is not, since it asked first.
    Later {
        /// When that was.
        since: Instant,
    },
}

/// The creations and those who wait.
#[derive(Debug, Default)]
pub(super) struct Turns {
    window: Window,
    under_way: HashMap<ServiceKey, Turn>,
    waiting: HashMap<ServiceKey, Place>,
    /// Those who wait, in order, by namespace. None is empty.
    queues: BTreeMap<Arc<str>, VecDeque<ServiceKey>>,
    /// The namespace whose turn it was last.
    last: Arc<str>,
}

#[derive(Debug)]
struct Turn {
    began: Instant,
    /// Whether Octavia has taken the creation.
    sent: bool,
    /// As [`Measured::company`].
    company: usize,
}

#[derive(Debug)]
struct Place {
    since: Instant,
    told: bool,
}

impl Turns {
    pub(super) fn counts(&self) -> Counts {
        Counts { waiting: self.waiting.len(), under_way: self.under_way.len(), limit: self.window.size() }
    }

    /// A Service asks whether its load balancer may be created now.
    pub(super) fn ask(&mut self, service: &ServiceKey, now: Instant) -> Answer {
        self.expire(now);
        if let Some(turn) = self.under_way.get_mut(service) {
            // One that was sent before is gone, or its turn has come.
            *turn = Turn { began: now, sent: false, company: turn.company };
            return Answer::Now;
        }
        if let Some(place) = self.waiting.get(service) {
            return Answer::Later { since: place.since };
        }
        if self.waiting.is_empty() && self.has_room() {
            self.begin(service.clone(), now);
            return Answer::Now;
        }
        self.waiting.insert(service.clone(), Place { since: now, told: false });
        self.queues.entry(service.namespace.clone()).or_default().push_back(service.clone());
        Answer::Later { since: now }
    }

    /// Whether a Service that waits is yet to be told so; it is now.
    pub(super) fn tell(&mut self, service: &ServiceKey) -> bool {
        self.waiting.get_mut(service).is_some_and(|place| !std::mem::replace(&mut place.told, true))
    }

    /// Octavia took the creation and answered after this time.
    pub(super) fn sent(&mut self, service: &ServiceKey, answered_after: Duration, now: Instant) {
        let Some(turn) = self.under_way.get_mut(service) else { return };
        turn.sent = true;
        let began = now.checked_sub(answered_after).unwrap_or(now);
        turn.began = began;
        self.window.answered(Measured { took: answered_after, began, company: turn.company });
    }

    /// Octavia has ended its work on the load balancer of a Service.
    pub(super) fn ended(&mut self, service: &ServiceKey, now: Instant) {
        let Some(turn) = self.under_way.remove(service) else { return };
        if turn.sent {
            let took = now.saturating_duration_since(turn.began);
            self.window.ended(Measured { took, began: turn.began, company: turn.company }, now);
        }
    }

    /// A reconciliation came to its end.
    pub(super) fn reconciled(&mut self, service: &ServiceKey, is_ready: bool, now: Instant) {
        if is_ready {
            self.ended(service, now);
            self.leave(service);
        } else if self.under_way.get(service).is_some_and(|turn| !turn.sent) {
            self.under_way.remove(service);
        }
    }

    /// The Service goes. If Octavia is at work on its load balancer, that is no creation that others should wait for.
    pub(super) fn forget(&mut self, service: &ServiceKey, now: Instant) {
        self.expire(now);
        self.under_way.remove(service);
        self.leave(service);
    }

    /// Gives turns to those who wait, as many as there is room for, and answers to whom: to one of each namespace in turn.
    pub(super) fn take_next(&mut self, now: Instant) -> Vec<ServiceKey> {
        let mut next = Vec::new();
        while self.has_room()
            && let Some(service) = self.first()
        {
            self.leave(&service);
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
        self.window.begins(now);
        self.under_way.insert(service, Turn { began: now, sent: false, company: 0 });
        let company = self.under_way.len();
        for turn in self.under_way.values_mut() {
            turn.company = turn.company.max(company);
        }
    }

    fn leave(&mut self, service: &ServiceKey) {
        if self.waiting.remove(service).is_none() {
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
        self.under_way.retain(|_, turn| {
            let longest = if turn.sent { LONGEST } else { TAKEN_WITHIN };
            now.saturating_duration_since(turn.began) < longest
        });
    }
}

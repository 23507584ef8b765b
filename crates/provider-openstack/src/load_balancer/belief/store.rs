//! The one map of beliefs, by Service.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use openstack_ccm_core::service::{Service, ServiceKey};
use openstack_ccm_openstack_api::octavia::LoadBalancer;
use tokio::time::Instant;

use super::attempts::Attempts;
use super::digest::Digest;
use super::event::Event;
use super::packed::Packed;
use super::stall::Stall;
use super::state::Belief;
use crate::load_balancer::apply::Applied;
use crate::load_balancer::model::observed::Ownership;
use crate::load_balancer::poller::Afterwards;

/// Beliefs by Service.
#[derive(Debug, Default)]
pub(crate) struct Beliefs {
    services: Mutex<HashMap<ServiceKey, BeliefEntry>>,
}

#[derive(Debug, Default)]
struct BeliefEntry {
    /// The Service as it looked last.
    service: Option<Digest>,
    belief: Belief,
    /// In place of `belief`, between two reconciliations.
    packed: Option<Box<Packed>>,
    /// Absent where there were none: a table has room for up to twice as many Services as there are.
    attempts: Option<Box<Attempts>>,
}

impl BeliefEntry {
    /// What is believed. What cannot be unpacked is not known.
    fn belief(&mut self) -> &mut Belief {
        if let Some(packed) = self.packed.take() {
            self.belief = packed.unpack().unwrap_or_default();
        }
        &mut self.belief
    }

    fn note(&mut self, event: &Event<'_>, now: Instant) {
        let belief = self.belief();
        *belief = std::mem::take(belief).after(event, now);
        let before = self.attempts.take().map(|attempts| *attempts).unwrap_or_default();
        let after = before.after(event, now);
        self.attempts = (after != Attempts::default()).then(|| Box::new(after));
    }
}

impl Beliefs {
    fn with<T>(&self, service: &ServiceKey, act: impl FnOnce(&mut BeliefEntry) -> T) -> T {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        act(services.entry(service.clone()).or_default())
    }

    fn read<T: Default>(&self, service: &ServiceKey, read: impl FnOnce(&mut BeliefEntry) -> T) -> T {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.get_mut(service).map(read).unwrap_or_default()
    }

    /// A reconciliation begins, and the Service looks like this.
    pub(crate) fn saw(&self, service: &Service) {
        let seen = Digest::of_service(service);
        self.with(&service.key, |entry| match entry.service.replace(seen) {
            Some(before) if before == seen => {}
            Some(_) => entry.note(&Event::ServiceChanged, Instant::now()),
            None => entry.note(&Event::FirstSeen, Instant::now()),
        });
    }

    /// Something happened.
    pub(crate) fn note(&self, service: &ServiceKey, event: &Event<'_>) {
        self.with(service, |entry| entry.note(event, Instant::now()));
    }

    /// Takes what is believed into the hands of a reconciliation. It is put back with [`Beliefs::put_back`] once it is known
    /// what became of the plan: one that is dropped on the way leaves nothing behind.
    pub(crate) fn take(&self, service: &ServiceKey) -> Belief {
        self.with(service, |entry| std::mem::take(entry.belief()))
    }

    /// Puts back what was taken, or what was read in its place.
    pub(crate) fn put_back(&self, service: &ServiceKey, belief: Belief) {
        self.with(service, |entry| {
            // Only the check for drift becomes due while somebody holds it.
            let drift_due = matches!(entry.belief(), Belief::DigestOnly);
            *entry.belief() = belief;
            if drift_due {
                entry.note(&Event::DriftDue, Instant::now());
            }
        });
    }

    /// A reconciliation has ended.
    pub(crate) fn rest(&self, service: &ServiceKey) {
        self.read(service, |entry| {
            if let Some(packed) = Packed::of(&entry.belief) {
                entry.packed = Some(Box::new(packed));
                entry.belief = Belief::Unknown;
            }
        });
    }

    /// What was tried, and with what result.
    pub(crate) fn attempts(&self, service: &ServiceKey) -> Attempts {
        self.read(service, |entry| entry.attempts.as_deref().cloned()).unwrap_or_default()
    }

    /// Nothing could be done with a load balancer of the Service although it is not PENDING. Answers for how long that is so.
    pub(crate) fn stalled(&self, service: &ServiceKey, gives_up: bool) -> Stall {
        let now = Instant::now();
        self.with(service, |entry| {
            entry.note(&Event::Stalled { gives_up }, now);
            let noted = entry.attempts.as_ref().and_then(|attempts| attempts.stall);
            noted.unwrap_or_else(|| Stall::again(None, gives_up, now))
        })
    }

    /// Id and ownership of the load balancer that the Service is believed to have.
    pub(crate) fn load_balancer(&self, service: &ServiceKey) -> Option<(String, Ownership)> {
        self.read(service, |entry| {
            let there = entry.belief().cached()?.load_balancer()?;
            Some((there.id.clone(), there.ownership))
        })
    }

    /// The same, if a step of this process has locked it and nothing has happened since that ends the belief.
    pub(crate) fn locked_by_own_step(&self, service: &ServiceKey) -> Option<(String, Ownership)> {
        self.read(service, |entry| {
            let there = entry.belief().locked_by_own_step()?.load_balancer()?;
            Some((there.id.clone(), there.ownership))
        })
    }

    /// What follows the step of the Service that has locked its load balancer just now.
    pub(crate) fn afterwards(&self, service: &ServiceKey, applied: &Applied) -> Afterwards {
        self.with(service, |entry| entry.belief().afterwards(applied))
    }

    /// The others of the load balancer's name, where that was listed when Octavia ended its last work. Told once.
    pub(crate) fn take_namesakes(&self, service: &ServiceKey) -> Option<Vec<LoadBalancer>> {
        self.with(service, |entry| entry.belief().take_namesakes())
    }

    /// The time until batches of members are to be read whose result nobody has seen.
    pub(crate) fn confirm_in(&self, service: &ServiceKey) -> Option<Duration> {
        self.read(service, |entry| entry.belief().cached()?.confirm_in())
    }

    /// The Service is gone.
    pub(crate) fn forget(&self, service: &ServiceKey) {
        self.services.lock().unwrap_or_else(PoisonError::into_inner).remove(service);
    }
}

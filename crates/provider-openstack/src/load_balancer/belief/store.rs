//! What is remembered of a Service from pass to pass. All of it may be lost: a restart only tries sooner again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use openstack_ccm_core::backoff::Backoff;
use openstack_ccm_core::service::{Service, ServiceKey};
use openstack_ccm_openstack_api::octavia::LbAlgorithm;
use tokio::time::Instant;

use crate::load_balancer::apply::Applied;
use crate::load_balancer::belief::cached::Cached;
use crate::load_balancer::model::observed::Ownership;
use crate::load_balancer::model::recovery::Failover;
use crate::load_balancer::model::tree::Desired;
use crate::load_balancer::outputs;
use crate::load_balancer::step::Touched;

/// Pause after the first repair, and the longest one; it duplicates in between.
const REPAIR_PAUSES: Backoff = Backoff::doubling(Duration::from_secs(10), Duration::from_secs(600));

/// Recollections by Service.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    services: Mutex<HashMap<ServiceKey, Recollection>>,
}

#[derive(Clone, Debug, Default)]
struct Recollection {
    /// Fingerprint of the Service, without what passes write into it.
    service: Option<u64>,
    /// Many Services have none.
    known: Option<Box<Cached>>,
    lists_may_do: bool,
    repairs: u32,
    no_repair_before: Option<Instant>,
    waiting_since: Option<Instant>,
    previous_vips: PreviousVips,
    refused_algorithms: Vec<(String, LbAlgorithm)>,
    /// What became of the last request to fail a load balancer over, with its id.
    failover: Option<(String, Failover)>,
}

/// The VIPs of a load balancer that broke and was deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PreviousVips {
    /// Nothing is known.
    #[default]
    Unknown,
    /// They were these, the primary one first.
    Addresses(Vec<IpAddr>),
    /// They could not be had again.
    Lost,
}

impl Memory {
    fn with<T>(&self, service: &ServiceKey, act: impl FnOnce(&mut Recollection) -> T) -> T {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        act(services.entry(service.clone()).or_default())
    }

    fn read<T: Default>(&self, service: &ServiceKey, read: impl FnOnce(&Recollection) -> T) -> T {
        let services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.get(service).map(read).unwrap_or_default()
    }

    /// Notes what the Service looks like. A change of it may mend what failed, so that it is tried at once.
    pub(crate) fn saw(&self, service: &Service) {
        let seen = outputs::fingerprint(service);
        self.with(&service.key, |recollection| {
            if recollection.service != Some(seen) {
                // Whoever changes the Service expects the cloud to be looked at.
                *recollection = Recollection {
                    lists_may_do: recollection.service.is_none(),
                    service: Some(seen),
                    waiting_since: recollection.waiting_since,
                    previous_vips: std::mem::take(&mut recollection.previous_vips),
                    failover: recollection.failover.take(),
                    ..Recollection::default()
                };
            }
        });
    }

    /// Takes what is known of the Service's load balancer. It is put back with [`Memory::know`] when it is still true:
    /// a pass that is dropped on the way leaves nothing behind.
    pub(crate) fn take_known(&self, service: &ServiceKey) -> Option<Cached> {
        self.with(service, |recollection| recollection.known.take_if(|known| !known.doubted))
            .map(|known| *known)
    }

    /// Notes what is known.
    pub(crate) fn know(&self, service: &ServiceKey, known: Cached) {
        self.with(service, |recollection| recollection.known = Some(Box::new(known)));
    }

    /// Has the next pass ask the cloud whether what is known is still so.
    pub(crate) fn look_again(&self, service: &ServiceKey) {
        self.with(service, |recollection| {
            recollection.lists_may_do = true;
            if let Some(known) = &mut recollection.known {
                known.doubted = true;
            }
        });
    }

    /// Whether lists may show that nothing has changed: nobody has looked yet, or only drift is looked for, and there are
    /// no members that were sent and not seen. Told once.
    pub(crate) fn lists_may_do(&self, service: &ServiceKey) -> bool {
        self.with(service, |recollection| {
            let known = recollection.known.as_ref();
            let unconfirmed = known.is_some_and(|known| known.verified_in().is_some());
            std::mem::take(&mut recollection.lists_may_do) && !unconfirmed
        })
    }

    /// What is known is still so.
    pub(crate) fn confirmed(&self, service: &ServiceKey) {
        self.with(service, |recollection| {
            if let Some(known) = &mut recollection.known {
                known.doubted = false;
            }
        });
    }

    /// Id and ownership of the load balancer that is known.
    pub(crate) fn load_balancer(&self, service: &ServiceKey) -> Option<(String, Ownership)> {
        self.read(service, |recollection| {
            let known = recollection.known.as_ref()?.load_balancer()?;
            Some((known.id.clone(), known.ownership))
        })
    }

    /// Has the next pass look at the cloud.
    pub(crate) fn forget_known(&self, service: &ServiceKey) {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recollection) = services.get_mut(service) {
            recollection.known = None;
        }
    }

    /// Notes what a pass changed.
    pub(crate) fn changed(&self, service: &ServiceKey, applied: &Applied) {
        self.with(service, |recollection| {
            recollection.refused_algorithms.extend_from_slice(&applied.refused_algorithms);
            if applied.failover.is_some() {
                recollection.failover.clone_from(&applied.failover);
            }
            if applied.touched.contains(&Touched::Everything) {
                recollection.known = None;
            } else if let Some(known) = &mut recollection.known {
                known.touched.extend_from_slice(&applied.touched);
                known.observed.floating_ips.extend_from_slice(&applied.floating_ips);
            }
        });
    }

    /// How long something that failed inside Octavia has to rest before it is sent again.
    pub(crate) fn repair_pause(&self, service: &ServiceKey) -> Option<Duration> {
        let left = self
            .read(service, |recollection| recollection.no_repair_before)?
            .saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Notes that something was sent again; the next time has to wait longer.
    pub(crate) fn repaired(&self, service: &ServiceKey) {
        self.with(service, |recollection| {
            let pause = REPAIR_PAUSES.delay(recollection.repairs);
            recollection.repairs = recollection.repairs.saturating_add(1);
            recollection.no_repair_before = Some(Instant::now() + pause);
        });
    }

    /// How long the Service has been waiting for Octavia.
    pub(crate) fn waits(&self, service: &ServiceKey) -> Duration {
        self.with(service, |recollection| {
            recollection.waiting_since.get_or_insert_with(Instant::now).elapsed()
        })
    }

    /// Octavia has got something new to do.
    pub(crate) fn begins_to_wait(&self, service: &ServiceKey) {
        self.with(service, |recollection| recollection.waiting_since = Some(Instant::now()));
    }

    /// The VIPs of the load balancer that was deleted.
    pub(crate) fn previous_vips(&self, service: &ServiceKey) -> PreviousVips {
        self.read(service, |recollection| recollection.previous_vips.clone())
    }

    /// Notes the VIPs of the load balancer that is deleted, or that they could not be had again.
    pub(crate) fn set_previous_vips(&self, service: &ServiceKey, vips: PreviousVips) {
        self.with(service, |recollection| recollection.previous_vips = vips);
    }

    /// What became of the request to fail this load balancer over, since it was whole the last time.
    pub(crate) fn failover(&self, service: &ServiceKey, load_balancer_id: &str) -> Failover {
        let asked = self.read(service, |recollection| recollection.failover.clone());
        asked.filter(|(id, _)| id == load_balancer_id).map(|(_, answer)| answer).unwrap_or_default()
    }

    /// The algorithms that Octavia refused since the Service looks as it does, each with the id of its pool.
    pub(crate) fn refused_algorithms(&self, service: &ServiceKey) -> Vec<(String, LbAlgorithm)> {
        self.read(service, |recollection| recollection.refused_algorithms.clone())
    }

    /// Everything is well: what is left is what is known of the load balancer, and what need not be tried again. Answers
    /// after which time members are to be read that were only sent. `seals` as in [`Cached::settle`].
    pub(crate) fn settled(&self, service: &ServiceKey, desired: &Desired, seals: bool) -> Option<Duration> {
        self.with(service, |recollection| {
            let mut known = recollection.known.take();
            let verified_in = known.as_mut().and_then(|known| {
                known.settle(desired, seals);
                known.verified_in()
            });
            *recollection = Recollection {
                service: recollection.service,
                known,
                refused_algorithms: std::mem::take(&mut recollection.refused_algorithms),
                ..Recollection::default()
            };
            verified_in
        })
    }

    /// The Service is gone.
    pub(crate) fn forget(&self, service: &ServiceKey) {
        self.services.lock().unwrap_or_else(PoisonError::into_inner).remove(service);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_repair_waits_longer_until_all_is_well() {
        let memory = Memory::default();
        let service = ServiceKey::new("default", "web");
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert_eq!(memory.repair_pause(&service), None);
            memory.repaired(&service);
            let pause = memory.repair_pause(&service).expect("a pause");
            pauses.push(pause.as_secs());
            tokio::time::advance(pause).await;
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600]);
        memory.forget(&service);
        memory.repaired(&service);
        assert_eq!(memory.repair_pause(&service), Some(Duration::from_secs(10)));
    }
}

//! What is remembered of a Service from pass to pass. All of it may be lost: a restart only tries sooner again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use openstack_ccm_core::service::{Service, ServiceKey};
use tokio::time::Instant;

use super::report;

/// Pause after the first repair, and the longest one; it doubles in between.
const REPAIR_PAUSES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));

/// Recollections by Service.
#[derive(Debug, Default)]
pub(super) struct Memory {
    services: Mutex<HashMap<ServiceKey, Recollection>>,
}

#[derive(Clone, Debug, Default)]
struct Recollection {
    service: Option<Service>,
    repairs: u32,
    no_repair_before: Option<Instant>,
    waiting_since: Option<Instant>,
    former_vip: FormerVip,
}

/// The VIP of a load balancer that broke and was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FormerVip {
    /// Nothing is known.
    #[default]
    Unknown,
    /// It was this.
    Address(IpAddr),
    /// It could not be had again.
    Lost,
}

impl Memory {
    fn with<T>(&self, service: &ServiceKey, act: impl FnOnce(&mut Recollection) -> T) -> T {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        act(services.entry(service.clone()).or_default())
    }

    fn read(&self, service: &ServiceKey) -> Recollection {
        let services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        services.get(service).cloned().unwrap_or_default()
    }

    /// Notes what the Service looks like. A change of it may mend what failed, so that it is tried at once.
    pub(super) fn saw(&self, service: &Service) {
        let mut seen = service.clone();
        report::remove_output(&mut seen);
        self.with(&service.key, |recollection| {
            if recollection.service.as_ref() != Some(&seen) {
                recollection.service = Some(seen);
                recollection.repairs = 0;
                recollection.no_repair_before = None;
            }
        });
    }

    /// How long something that failed inside Octavia has to rest before it is sent again.
    pub(super) fn repair_pause(&self, service: &ServiceKey) -> Option<Duration> {
        let left = self.read(service).no_repair_before?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Notes that something was sent again; the next time has to wait longer.
    pub(super) fn repaired(&self, service: &ServiceKey) {
        let (first, longest) = REPAIR_PAUSES;
        self.with(service, |recollection| {
            let pause = first.saturating_mul(2_u32.saturating_pow(recollection.repairs.min(16))).min(longest);
            recollection.repairs = recollection.repairs.saturating_add(1);
            recollection.no_repair_before = Some(Instant::now() + pause);
        });
    }

    /// How long the Service has been waiting for Octavia.
    pub(super) fn waits(&self, service: &ServiceKey) -> Duration {
        self.with(service, |recollection| {
            recollection.waiting_since.get_or_insert_with(Instant::now).elapsed()
        })
    }

    /// Octavia has got something new to do.
    pub(super) fn begins_to_wait(&self, service: &ServiceKey) {
        self.with(service, |recollection| recollection.waiting_since = Some(Instant::now()));
    }

    /// The VIP of the load balancer that was deleted.
    pub(super) fn former_vip(&self, service: &ServiceKey) -> FormerVip {
        self.read(service).former_vip
    }

    /// Notes the VIP of the load balancer that is deleted, or that it could not be had again.
    pub(super) fn set_former_vip(&self, service: &ServiceKey, vip: FormerVip) {
        self.with(service, |recollection| recollection.former_vip = vip);
    }

    /// Everything is well, or the Service is gone.
    pub(super) fn forget(&self, service: &ServiceKey) {
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

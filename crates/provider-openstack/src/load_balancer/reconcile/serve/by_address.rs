//! Finds another Service of the cluster that has, or will have, the address that a Service asks for.

use std::net::IpAddr;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::provider::Neighbours;
use openstack_ccm_core::service::{Intent, Service, ServiceKey};
use tracing::info;

use crate::limits::{LOST_WORK_TIMEOUT, MAX_CHANGE_WAIT};
use crate::load_balancer::annotations::{LOAD_BALANCER_ID, SHARE_BY_ADDRESS};
use crate::load_balancer::identity::ids::{PublishedId, WrittenId};
use crate::load_balancer::identity::{outputs, ownership};
use crate::load_balancer::objects::Ownership;
use crate::load_balancer::reconcile::Reconciler;
use crate::load_balancer::settings::{Aspect, Fault, Reading, Settings};

impl Reconciler {
    /// Lets a Service without a load balancer join that of the Service with the address, if both allow it. Otherwise the address of
    /// a VIP is refused before anything is created; the owner of a floating IP is known only later.
    ///
    /// # Errors
    /// The Service has to wait for another one that asks for the same address and gets its load balancer first.
    pub(super) fn share_by_address(
        &self,
        intent: &Intent,
        asked: &[IpAddr],
        settings: &mut Settings,
    ) -> Result<Option<Fault>, Failure> {
        let service = &intent.service;
        let published = &service.published;
        let may_join = !service.is_published || asked.iter().any(|asked| published.contains(asked));
        if settings.load_balancer_id.is_some() || asked.is_empty() || !may_join {
            return Ok(None);
        }
        let mut others = self.observer.neighbours().map(Neighbours::served).unwrap_or_default();
        others.retain(|other| other.key != service.key);
        if let Some(other) = with_address(&others, asked) {
            let id = other.annotations.get(LOAD_BALANCER_ID.key);
            if let Some(id) = id.filter(|_| settings.shares_by_address && shares(other)) {
                settings.load_balancer_id = Some(WrittenId::new(id));
                return Ok(None);
            }
            let taken = settings.vip.addresses().find(|asked| other.published.contains(asked));
            return Ok(taken.filter(|_| !service.is_published).map(|address| {
                // The Event does not name a Service of another namespace.
                let (service, other_key) = (&service.key, &other.key);
                info!(%service, %address, other = %other_key, "the requested address belongs to another Service");
                let (asked_by, user) = (settings.vip.asked_by, ownership::user(service, other));
                Fault::new([Aspect::Creation], format!("{asked_by} {address} is the address of {user}"))
            }));
        }
        if !settings.shares_by_address || service.is_published || self.has_begun(&service.key) {
            return Ok(None);
        }
        let mut waits_for = others.iter().filter(|other| shares(other) && !other.is_published);
        match waits_for.find(|other| self.goes_first(other, intent, asked)) {
            None => Ok(None),
            Some(other) => Err(Failure::new(
                FailureClass::Busy,
                format!(
                    "Service {} asks for the same address and shares its load balancer: this Service waits until that Service is \
                     published, and then uses the same load balancer",
                    other.key
                ),
            )),
        }
    }

    /// Returns whether another Service gets one of the addresses before this one does: its load balancer is there or is being created;
    /// or nothing is known to be in the way of that, and it is older. The cloud may know better, so this counts for a while only.
    fn goes_first(&self, other: &Service, intent: &Intent, asked: &[IpAddr]) -> bool {
        let Reading { settings, faults, .. } = Reading::of(other, &self.config);
        if !settings.asked_addresses().any(|address| asked.contains(&address)) {
            return false;
        }
        let is_older = (other.created, &other.key) < (intent.service.created, &intent.service.key);
        let has_written_id = outputs::is_written_by_us(other);
        let may_begin = faults.failure().is_none() && (settings.load_balancer_id.is_none() || has_written_id);
        let may_be_first = may_begin && (is_older || has_written_id);
        let longest = match self.has_begun(&other.key) {
            true => LOST_WORK_TIMEOUT,
            false if may_be_first => MAX_CHANGE_WAIT,
            false => return false,
        };
        self.records.yields(intent) < longest
    }

    /// Returns whether a Service has a load balancer of its own, or one is being created for it.
    fn has_begun(&self, key: &ServiceKey) -> bool {
        let owns = |(_, ownership): (_, Ownership)| ownership != Ownership::Guest;
        self.creations.includes(key) || self.records.load_balancer(key).is_some_and(owns)
    }
}

/// Returns the Service that is published with one of the addresses: the one that the load balancer was made for, else one that
/// shares it.
fn with_address<'a>(others: &'a [Service], asked: &[IpAddr]) -> Option<&'a Service> {
    let has = |other: &&Service| other.published.iter().any(|address| asked.contains(address));
    let owner = others.iter().filter(has).find(|other| PublishedId::of(other).is_some());
    owner.or_else(|| others.iter().filter(has).min_by_key(|other| &other.key))
}

fn shares(service: &Service) -> bool {
    service.annotations.get(SHARE_BY_ADDRESS.key).is_some_and(|value| value == "true")
}

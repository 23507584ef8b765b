//! Sparing the look at the cloud: what earlier passes know, brought up to date with what they changed.

use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use crate::load_balancer::belief::cached::Cached;
use crate::load_balancer::model::observed::{Children, ObservedLoadBalancer, Ownership};
use crate::load_balancer::observe::read::{self, VipOwner};
use crate::load_balancer::reconcile::serve::{Basis, Serving};
use crate::load_balancer::step::{Child, Touched};

impl Serving<'_> {
    /// What is known, where it may be all that a plan needs, and whether it was verified for that. `None` asks for a look
    /// at the cloud.
    ///
    /// # Errors
    /// Any failed call.
    pub(crate) async fn recall(&self) -> Result<Option<(Cached, Basis)>, Failure> {
        let Some(mut known) = self.provider.memory.take_known(&self.service.key) else { return Ok(None) };
        let Some(id) =
            known.load_balancer().filter(|known| self.is_usable(known)).map(|known| known.id.clone())
        else {
            return Ok(None);
        };
        let touched = std::mem::take(&mut known.touched);
        let changed = touched.iter().any(|touched| *touched != Touched::FloatingIps);
        if changed && !self.is_released(&id, &mut known) {
            return Ok(None);
        }
        if !changed && self.provider.watchlist.is_watched(&id) {
            return Ok(None);
        }
        if touched.contains(&Touched::FloatingIps) {
            self.read_floating_ips(&mut known).await?;
        }
        for child in children(&touched) {
            if !known.presumes(child) {
                self.refresh(&mut known, child).await?;
            }
        }
        let due = known.take_due();
        let basis = if due.is_empty() { Basis::Memory } else { Basis::Verification };
        for pool_id in due {
            self.refresh(&mut known, &Child::Members(pool_id)).await?;
        }
        let pending = known.load_balancer().and_then(|known| known.children.as_ref()).is_none_or(has_pending);
        Ok((!pending).then_some((known, basis)))
    }

    fn is_usable(&self, known: &ObservedLoadBalancer) -> bool {
        let meant = match &self.settings.load_balancer_id {
            Some(id) => *id == known.id,
            None => known.ownership != Ownership::Guest,
        };
        meant && known.status == ProvisioningStatus::Active && known.children.is_some()
    }

    /// Whether the poller saw that Octavia ended its work well; what it saw is noted.
    fn is_released(&self, id: &str, known: &mut Cached) -> bool {
        let Some(seen) = self.provider.watchlist.take_seen(id) else { return false };
        known.ended(seen.updated_at.as_ref());
        if let Some(known) = &mut known.observed.load_balancer {
            known.previous_name = self.claim.previous_name_on(&seen);
            known.name = seen.name;
            known.description = seen.description;
            known.tags = seen.tags.into_iter().collect();
        }
        seen.provisioning_status == ProvisioningStatus::Active
    }

    async fn read_floating_ips(&self, known: &mut Cached) -> Result<(), Failure> {
        let Some(load_balancer) = known.load_balancer() else { return Ok(()) };
        let vips: Vec<IpAddr> = load_balancer.vip_addresses().collect();
        let question = self.floating_ip_question(Some(load_balancer.ownership), &vips);
        let neutron = &self.provider.openstack.neutron;
        let claim = self.claim.on(load_balancer.previous_name.clone(), &load_balancer.tags);
        let vip = load_balancer.vip_port_id.clone().map(|port_id| VipOwner {
            port_id,
            load_balancer_name: load_balancer.name.clone(),
            ownership: load_balancer.ownership,
        });
        known.observed.floating_ips =
            read::read_floating_ips(neutron, &claim, &question, vip.as_ref()).await?;
        Ok(())
    }

    async fn refresh(&self, known: &mut Cached, child: &Child) -> Result<(), Failure> {
        if let Child::Members(pool_id) = child {
            known.unseal(pool_id);
        }
        let load_balancer = known.observed.load_balancer.as_mut();
        let Some(below) = load_balancer.and_then(|known| known.children.as_mut()) else { return Ok(()) };
        read::refresh(&self.provider.openstack.octavia, below, child).await
    }
}

fn children(touched: &[Touched]) -> impl Iterator<Item = &Child> {
    touched.iter().filter_map(|touched| match touched {
        Touched::Child(child) => Some(child),
        Touched::LoadBalancer | Touched::FloatingIps | Touched::Everything => None,
    })
}

/// Whether Octavia is at work on a child after all: somebody else has begun something.
fn has_pending(children: &Children) -> bool {
    children.listeners.iter().any(|listener| listener.status.is_pending())
        || children.pools.iter().any(|pool| {
            pool.status.is_pending() || pool.members.iter().any(|member| member.status.is_pending())
        })
}

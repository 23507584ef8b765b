//! What earlier reconciliations know, brought up to date with what they changed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::octavia::ProvisioningStatus;
use tokio::time::Instant;

use super::observation::Source;
use super::read::{self, VipOwner};
use super::status_trees::Statuses;
use super::{Observation, Observing};
use crate::load_balancer::belief::{Belief, Cached, Digest, Event, LockEnd, not_as_sent};
use crate::load_balancer::model::observed::{Children, ObservedLoadBalancer, Ownership};
use crate::load_balancer::outputs;
use crate::load_balancer::poller::End;
use crate::load_balancer::report::Report;
use crate::load_balancer::settings::Aspect;
use crate::load_balancer::step::{Child, Touched};

impl Observing<'_> {
    /// What is believed, where that can be brought up to date. `None` asks for a reading.
    ///
    /// # Errors
    /// Any failed call.
    pub(super) async fn cached(
        &self,
        believed: Belief,
        report: &mut Report,
    ) -> Result<Option<Observation>, Failure> {
        let (mut cached, converged) = match self.still_believed(believed) {
            Belief::Changing(cached) => (cached, false),
            Belief::Converged(cached) => (cached, true),
            Belief::Unknown | Belief::DigestOnly | Belief::Recheck(_) | Belief::DriftDue(_) => {
                return Ok(None);
            }
        };
        let touched = std::mem::take(&mut cached.touched);
        if touched.contains(&Touched::FloatingIps) {
            self.read_floating_ips(&mut cached).await?;
        }
        for child in touched.iter().filter_map(Touched::child) {
            if !cached.counts_as_sent(child) {
                self.refresh(&mut cached, child).await?;
            }
        }
        if cached.is_to_be_confirmed() && !self.confirm(&mut cached).await? {
            return Ok(None);
        }
        for child in cached.take_answered_of_next_pool() {
            self.refresh(&mut cached, &child).await?;
        }
        let due = cached.take_due();
        let source =
            if converged { Source::Converged { confirmed: !due.is_empty() } } else { Source::Changing };
        if !due.is_empty() && !self.confirm_batches(&mut cached, due).await? {
            return Ok(None);
        }
        let below = cached.load_balancer().and_then(|there| there.children.as_ref());
        // Somebody else has begun something.
        if below.is_none_or(has_pending) {
            return Ok(None);
        }
        // It was read or made by this process, whose credentials are right therefore.
        if let Some(there) = cached.load_balancer().filter(|_| outputs::is_own_output(self.service)) {
            self.observer.missing.found(&there.name, &there.tags);
        }
        self.name_again(&cached, report);
        Ok(Some(Observation::new(source, cached)))
    }

    /// Names the load balancer in the annotations of the Service: an earlier write of its id may have failed. What the user
    /// wrote wrongly stays, so that it can be corrected.
    fn name_again(&self, cached: &Cached, report: &mut Report) {
        let named_wrongly = self.settings.is_unreadable(Aspect::LoadBalancer);
        if let Some(there) = cached.load_balancer().filter(|_| !named_wrongly) {
            report.load_balancer(self.service, &there.id, there.ownership);
        }
    }

    /// What is left of a belief after what happened since the last reconciliation.
    fn still_believed(&self, believed: Belief) -> Belief {
        let now = Instant::now();
        let Some(there) = believed.cached().and_then(Cached::load_balancer) else { return Belief::Unknown };
        if !self.is_meant(there) {
            return believed.after(&Event::Moved, now);
        }
        let id = there.id.clone();
        let touched = believed.cached().into_iter().flat_map(|cached| &cached.touched);
        if touched.filter(|touched| **touched != Touched::FloatingIps).count() == 0 {
            let watched = self.observer.watchlist.is_watched(&id);
            return if watched { believed.after(&Event::ChangedByOthers, now) } else { believed };
        }
        if self.observer.watchlist.is_presumed_ended(&id) {
            return believed.after(&Event::LockPresumedEnded, now);
        }
        let end = self.observer.watchlist.take_end(&id);
        let end = end.as_ref().and_then(|End { load_balancer, namesakes, .. }| {
            let listed = load_balancer.as_ref()?;
            let previous_name = self.claim.previous_name_on(listed);
            Some(LockEnd { listed, previous_name, namesakes: namesakes.as_deref() })
        });
        believed.after(&Event::LockEnded(end), now)
    }

    /// Whether the Service still uses this load balancer, and could.
    fn is_meant(&self, there: &ObservedLoadBalancer) -> bool {
        let meant = match &self.settings.load_balancer_id {
            Some(id) => *id == there.id,
            None => there.ownership != Ownership::Guest,
        };
        meant && there.status == ProvisioningStatus::Active && there.children.is_some()
    }

    async fn read_floating_ips(&self, cached: &mut Cached) -> Result<(), Failure> {
        let Some(there) = cached.load_balancer() else { return Ok(()) };
        let vips: Vec<IpAddr> = there.vip_addresses().collect();
        let question = self.floating_ip_question(Some(there.ownership), &vips);
        let claim = self.claim.on(there.previous_name.clone(), &there.tags);
        let vip = there.vip_port_id.clone().map(|port_id| VipOwner {
            port_id,
            load_balancer_name: there.name.clone(),
            ownership: there.ownership,
        });
        let reader = &self.observer.reader;
        cached.observed.floating_ips = read::floating_ips(reader, &claim, &question, vip.as_ref()).await?;
        Ok(())
    }

    /// Compares what counts as answered with the statuses that Octavia shows: all in one answer, or one by one where that is
    /// not to be had. Answers whether that is what is believed.
    async fn confirm(&self, cached: &mut Cached) -> Result<bool, Failure> {
        let Some(id) = cached.load_balancer().map(|there| there.id.clone()) else { return Ok(false) };
        let octavia = &self.observer.openstack.octavia;
        let unseen = if cached.is_shown_by_status_tree() {
            match self.observer.status_trees.read(octavia, &id).await? {
                Statuses::Shown(tree) => match cached.confirm(&tree) {
                    Some(unseen) => unseen,
                    None => return Ok(false),
                },
                Statuses::NotShown => cached.take_answered(true),
                Statuses::Gone => return Ok(false),
            }
        } else {
            cached.take_answered(false)
        };
        for child in &unseen {
            self.refresh(cached, child).await?;
        }
        Ok(true)
    }

    /// Reads the members of batches that nobody has seen, unless the status tree shows that they are there. Answers whether
    /// that could be told.
    async fn confirm_batches(
        &self,
        cached: &mut Cached,
        sent: BTreeMap<String, Digest>,
    ) -> Result<bool, Failure> {
        let Some(id) = cached.load_balancer().map(|there| there.id.clone()) else { return Ok(false) };
        let octavia = &self.observer.openstack.octavia;
        let unclear = match self.observer.status_trees.read(octavia, &id).await? {
            Statuses::Shown(tree) => match not_as_sent(&sent, &tree) {
                Some(unclear) => unclear,
                None => return Ok(false),
            },
            Statuses::NotShown => sent.into_keys().collect(),
            Statuses::Gone => return Ok(false),
        };
        for pool_id in unclear {
            self.refresh(cached, &Child::Members(pool_id)).await?;
        }
        Ok(true)
    }

    async fn refresh(&self, cached: &mut Cached, child: &Child) -> Result<(), Failure> {
        if let Child::Members(pool_id) = child {
            cached.drop_digest(pool_id);
        }
        let there = cached.observed.load_balancer.as_mut();
        let Some(below) = there.and_then(|there| there.children.as_mut()) else { return Ok(()) };
        read::refresh(&self.observer.openstack.octavia, below, child).await
    }
}

/// Whether Octavia is at work on a child after all.
fn has_pending(children: &Children) -> bool {
    children.listeners.iter().any(|listener| listener.status.is_pending())
        || children.pools.iter().any(|pool| {
            pool.status.is_pending() || pool.members.iter().any(|member| member.status.is_pending())
        })
}

//! The check: reads statuses, and compares them with what is expected.

use std::collections::BTreeSet;

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::{ApiError, ErrorKind};
use openstack_ccm_openstack_api::octavia::{ChildFilter, LoadBalancer, Octavia, ProvisioningStatus};
use openstack_ccm_openstack_api::optional::OptionalPart;

use super::floating_ip::{self, VipOwner};
use super::{Observing, reading};
use crate::load_balancer::failure::present;
use crate::load_balancer::known::Observation;
use crate::load_balancer::known::check::{self, Members};
use crate::load_balancer::objects::convert::{self, MemberList};
use crate::load_balancer::objects::digest::Agreement;
use crate::load_balancer::objects::{MemberKey, ObservedFloatingIp, ObservedMember, ObservedPool, Ownership};
use crate::load_balancer::read::lists::Reader;

impl Observing<'_> {
    /// Returns whether everything exists as the steps so far made it, and nothing has failed. Otherwise, or where Octavia does not
    /// show it, everything has to be read.
    pub(crate) async fn check(&self, observation: &mut Observation) -> Result<bool, Failure> {
        let Some(there) = observation.seen().load_balancer.as_ref() else { return Ok(false) };
        let (id, has_removed) = (there.id.clone(), observation.has_removed());
        let pools = there.children.iter().flat_map(|children| &children.pools);
        let changed: BTreeSet<String> =
            pools.map(|pool| pool.id.clone()).filter(|id| observation.has_changed_pool(id)).collect();
        if !self.statuses_agree(observation, Members::Compare).await? {
            return Ok(false);
        }
        let octavia = &self.observer.lists.openstack().octavia;
        let Some(children) = observation.load_balancer_mut().and_then(|there| there.children.as_mut()) else {
            return Ok(false);
        };
        let is_unused = |pool: &&mut ObservedPool| pool.used_by.is_empty() && changed.contains(&pool.id);
        for pool in children.pools.iter_mut().filter(is_unused) {
            if !unused_pool_agrees(octavia, pool).await? {
                return Ok(false);
            }
        }
        if has_removed {
            let listed = octavia.list_pools(&ChildFilter::load_balancer(&id)).await;
            let listed = listed.map_err(|error| reading(&error))?;
            if listed.len() != children.pools.len() {
                return Ok(false);
            }
        }
        observation.looked_mut().at_statuses();
        Ok(true)
    }

    /// Checks in the same way when only nodes changed since the plan was last empty: takes over the members that are shown. The
    /// status tree does not show the load balancer's owner, so that is read as well.
    pub(crate) async fn look_at_members(
        &self,
        observation: &mut Observation,
        agreement: Option<&Agreement>,
    ) -> Result<bool, Failure> {
        let Some(there) = observation.seen().load_balancer.as_ref() else { return Ok(false) };
        let mut pools = there.children.iter().flat_map(|children| &children.pools);
        if pools.any(|pool| pool.ours && pool.used_by.is_empty()) {
            // The status tree lacks it.
            return Ok(false);
        }
        let id = there.id.clone();
        let (shown, agrees) = tokio::join!(
            load_balancer(self.reader(), &id),
            self.statuses_agree(observation, Members::TakeOver)
        );
        let (agrees, shown) = (agrees?, shown?);
        let Some(shown) = shown.filter(|shown| agrees && observation.belongs_as_shown(shown)) else {
            return Ok(false);
        };
        observation.looked_mut().at_statuses();
        if let Some(agreement) = agreement {
            observation.is_as_agreed(agreement, shown);
        }
        Ok(true)
    }

    /// Returns whether the load balancer has the known owner and is ACTIVE: another Service may have sent a step meanwhile.
    pub(crate) async fn belongs_as_known(&self, known: &Observation) -> Result<bool, Failure> {
        let Some(there) = known.seen().load_balancer.as_ref() else { return Ok(false) };
        let shown = load_balancer(self.reader(), &there.id).await?;
        let takes_step = |shown: &LoadBalancer| shown.provisioning_status == ProvisioningStatus::Active;
        Ok(shown.is_some_and(|shown| takes_step(&shown) && known.belongs_as_shown(&shown)))
    }

    async fn statuses_agree(&self, observation: &mut Observation, members: Members) -> Result<bool, Failure> {
        let Some(there) = observation.load_balancer_mut() else { return Ok(false) };
        let openstack = self.observer.lists.openstack();
        // Requested for each load balancer even so: a policy or a provider may refuse it for a single one.
        let is_lacking = || openstack.client.lacks(OptionalPart::StatusTree);
        let tree = match openstack.octavia.load_balancer_statuses(&there.id).await {
            Ok(tree) => tree,
            Err(error) if is_not_shown(&error) || is_lacking() => return Ok(false),
            Err(error) => return Err(reading(&error)),
        };
        Ok(check::agrees(there, &tree, members))
    }

    /// Lists the members of one pool, with what administrators set on them. Returns whether the pool exists.
    pub(crate) async fn list_members(
        &self,
        observation: &mut Observation,
        pool_id: &str,
    ) -> Result<bool, Failure> {
        let octavia = &self.observer.lists.openstack().octavia;
        let listed = present(octavia.list_members(pool_id, MemberList::default()).await);
        let Some(listed) = listed.map_err(|error| reading(&error))? else { return Ok(false) };
        let listed = listed.into_members()?;
        let children = observation.load_balancer_mut().and_then(|there| there.children.as_mut());
        let pool = children.and_then(|children| children.pools.iter_mut().find(|pool| pool.id == pool_id));
        let Some(pool) = pool else { return Ok(false) };
        pool.members = listed;
        pool.members_from_status = false;
        observation.looked_mut().members.insert(pool_id.to_owned());
        Ok(true)
    }

    /// Returns whether the load balancer and its floating IPs are as they were when everything was read and agreed.
    pub(crate) async fn is_unchanged(
        &self,
        known: &Observation,
        agreement: &Agreement,
    ) -> Result<bool, Failure> {
        let Some(there) = &known.seen().load_balancer else { return Ok(false) };
        // Others decide about the load balancer of a guest.
        let is_guest = there.ownership == Ownership::Guest;
        let reader = if is_guest { self.reader() } else { self.observer.reader_for_drift() };
        let Some(shown) = load_balancer(reader, &there.id).await? else { return Ok(false) };
        let same = agreement.is_unchanged(&shown.id, shown.updated_at.as_deref());
        let usable = shown.provisioning_status == ProvisioningStatus::Active;
        if !same || !usable || self.claim.previous_name_on(&shown) != there.previous_name {
            return Ok(false);
        }
        // If they cannot be read, everything else is read too.
        let floating_ips = self.floating_ips_of(known, reader).await;
        Ok(floating_ips.is_ok_and(|floating_ips| floating_ips == known.seen().floating_ips))
    }

    async fn floating_ips_of(
        &self,
        known: &Observation,
        reader: Reader<'_>,
    ) -> Result<Vec<ObservedFloatingIp>, Failure> {
        let Some(there) = &known.seen().load_balancer else { return Ok(Vec::new()) };
        let vips: Vec<_> = there.vip_addresses().collect();
        let question = self.floating_ip_query(Some(there.ownership), &vips);
        let claim = self.claim.on(there.previous_name.clone(), &there.tags);
        let vip = there.vip_port_id.clone().map(|port_id| VipOwner {
            port_id,
            address: there.vip_address,
            load_balancer_name: there.name.clone(),
            ownership: there.ownership,
        });
        floating_ip::read(reader, &claim, &question, vip.as_ref()).await
    }
}

/// Returns the load balancer as Octavia shows it; `None` where it is gone.
async fn load_balancer(reader: Reader<'_>, id: &str) -> Result<Option<LoadBalancer>, Failure> {
    match reader.load_balancer(id).await {
        Ok(shown) => Ok(Some(shown)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(reading(&error)),
    }
}

/// Returns whether Octavia does not show the status tree at all, to this user, or for this load balancer.
fn is_not_shown(error: &ApiError) -> bool {
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::Policy
        | ErrorKind::BadRequest
        | ErrorKind::Decode
        | ErrorKind::ServerFault => true,
        ErrorKind::Conflict(_)
        | ErrorKind::Quota
        | ErrorKind::Unauthorized
        | ErrorKind::RateLimited
        | ErrorKind::Unavailable
        | ErrorKind::LostAnswer
        | ErrorKind::NoEndpoint => false,
    }
}

/// Checks a pool that no listener uses, which the status tree lacks.
async fn unused_pool_agrees(octavia: &Octavia, pool: &mut ObservedPool) -> Result<bool, Failure> {
    let read = |error: ApiError| reading(&error);
    let Some(seen) = present(octavia.get_pool(&pool.id).await).map_err(read)? else { return Ok(false) };
    let members =
        octavia.list_members(&pool.id, MemberList::default()).await.map_err(read)?.into_members()?;
    let monitor = match &seen.healthmonitor_id {
        Some(id) => present(octavia.get_health_monitor(id).await).map_err(read)?.map(convert::monitor),
        None => None,
    };
    let keys =
        |pool: &ObservedPool| pool.members.iter().map(ObservedMember::key).collect::<BTreeSet<MemberKey>>();
    let expected = (keys(pool), pool.monitor.as_ref().map(|monitor| monitor.id.clone()));
    let used_by = seen.listeners.iter().map(|listener| listener.id.clone()).collect();
    let shown = ObservedPool { members, monitor, ..convert::pool(seen, pool.ours, used_by) };
    let failed = std::iter::once(&shown.status)
        .chain(shown.members.iter().map(|member| &member.status))
        .chain(shown.monitor.iter().map(|monitor| &monitor.status))
        .any(|status| *status != ProvisioningStatus::Active);
    let agrees = (keys(&shown), shown.monitor.as_ref().map(|monitor| monitor.id.clone())) == expected;
    *pool = shown;
    Ok(agrees && !failed && pool.used_by.is_empty())
}

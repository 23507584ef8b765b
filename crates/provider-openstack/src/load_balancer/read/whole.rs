//! Reads the load balancer, its children, and the floating IPs that matter to a Service.
//!
//! Reads only, nothing twice, and independent objects concurrently.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::octavia::{Listener, Octavia, Pool};

use super::find::Found;
use super::floating_ip::{self, FloatingIpQuery};
use super::reading;
use crate::limits::MAX_CONCURRENT_CALLS;
use crate::load_balancer::failure::present;
use crate::load_balancer::identity::ownership::Claim;
use crate::load_balancer::objects::convert::{self, MemberList};
use crate::load_balancer::objects::observed::{Children, Observed, ObservedLoadBalancer, ObservedPool};
use crate::load_balancer::read::lists::Reader;

/// How much of a load balancer's children is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Listeners, pools, members and monitors.
    Whole,
    /// Listeners and pools: enough to delete them.
    Outline,
}

/// What was read.
pub(crate) struct Tree {
    pub(crate) observed: Observed,
    /// Why the floating IPs could not be read; then `observed` lacks them.
    pub(crate) unread: Option<Failure>,
}

impl Tree {
    /// Returns everything that was read.
    ///
    /// # Errors
    /// The floating IPs could not be read.
    pub(crate) fn complete(self) -> Result<Observed, Failure> {
        self.unread.map_or(Ok(self.observed), Err)
    }
}

/// Reads everything that the plan needs.
pub(crate) async fn tree(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    found: Option<Found>,
    depth: Depth,
    floating_ips: &FloatingIpQuery,
) -> Result<Tree, Failure> {
    let claim = match &found {
        Some(found) => &claim.on(found.previous_name.clone(), &found.load_balancer.tags),
        None => claim,
    };
    let vip = found.as_ref().and_then(Found::vip_owner);
    let (floating_ips, load_balancer) = tokio::join!(
        floating_ip::read(reader, claim, floating_ips, vip.as_ref()),
        load_balancer(reader, claim, found, depth),
    );
    let load_balancer = load_balancer?;
    let (floating_ips, unread) = match floating_ips {
        Ok(floating_ips) => (floating_ips, None),
        Err(failure) => (Vec::new(), Some(failure)),
    };
    Ok(Tree { observed: Observed { load_balancer, floating_ips }, unread })
}

async fn load_balancer(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    found: Option<Found>,
    depth: Depth,
) -> Result<Option<ObservedLoadBalancer>, Failure> {
    let Some(found) = found else { return Ok(None) };
    // While the load balancer is PENDING nothing can be changed, and what Octavia shows is not final.
    let children = match depth {
        _ if found.load_balancer.provisioning_status.is_pending() => None,
        Depth::Whole => Some(children(reader, claim, &found, true).await?),
        Depth::Outline => Some(children(reader, claim, &found, false).await?),
    };
    without_children(found).map(|seen| Some(ObservedLoadBalancer { children, ..seen }))
}

fn without_children(found: Found) -> Result<ObservedLoadBalancer, Failure> {
    let Found { load_balancer, ownership, previous_name, adopted: _ } = found;
    convert::load_balancer(load_balancer, ownership, previous_name)
}

async fn children(
    reader: Reader<'_>,
    claim: &Claim<'_>,
    found: &Found,
    whole: bool,
) -> Result<Children, Failure> {
    let (there, ownership) = (&found.load_balancer, found.ownership);
    let (listeners, pools) =
        tokio::try_join!(reader.listeners(there), reader.pools(there)).map_err(|error| reading(&error))?;
    let is_own = |listener: &&Listener| claim.owns_listener(listener, ownership);
    let own: Vec<&Listener> = listeners.iter().filter(is_own).collect();
    let pools: Vec<_> = stream::iter(pools)
        .map(|seen| {
            let ours = claim.owns_pool(&seen, &own, ownership);
            pool(&reader.openstack().octavia, seen, ours, whole)
        })
        .buffered(MAX_CONCURRENT_CALLS)
        .try_collect()
        .await?;
    let own: BTreeSet<String> = own.into_iter().map(|listener| listener.id.clone()).collect();
    let listeners = listeners.into_iter().map(|listener| {
        let ours = own.contains(&listener.id);
        convert::listener(listener, ours)
    });
    Ok(Children { listeners: listeners.collect::<Result<_, _>>()?, pools })
}

/// Reads a pool, and its members and monitor only if the pool is the Service's.
async fn pool(octavia: &Octavia, seen: Pool, ours: bool, whole: bool) -> Result<ObservedPool, Failure> {
    let used_by = seen.listeners.iter().map(|listener| listener.id.clone()).collect();
    let monitor_id = seen.healthmonitor_id.clone();
    let mut pool = convert::pool(seen, ours, used_by);
    if !ours || !whole {
        return Ok(pool);
    }
    let monitor = async {
        match monitor_id {
            Some(id) => present(octavia.get_health_monitor(&id).await),
            None => Ok(None),
        }
    };
    let (members, monitor) = tokio::try_join!(octavia.list_members(&pool.id, MemberList::default()), monitor)
        .map_err(|error| reading(&error))?;
    pool.members = members.into_members()?;
    pool.monitor = monitor.map(convert::monitor);
    Ok(pool)
}

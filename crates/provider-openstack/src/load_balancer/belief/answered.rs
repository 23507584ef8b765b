//! Children that count as Octavia's answers showed them.
//!
//! An answer says what Octavia is about to do, and a load balancer that is ACTIVE again does not mean that it was done: a
//! listener or member batch that failed leaves it ACTIVE, and the child in ERROR. So what was answered is compared with the
//! statuses before anything is taken away for it, and before the Service counts as served.

use std::collections::{BTreeMap, BTreeSet};

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::octavia::{CreatedTree, LoadBalancer, ProvisioningStatus};

use crate::load_balancer::apply::Answer;
use crate::load_balancer::model::convert;
use crate::load_balancer::model::observed::{Children, ObservedLoadBalancer, ObservedMember, Ownership};
use crate::load_balancer::step::Child;

/// A load balancer as the answer to its creation shows it. `None` where that does not show all of it.
pub(super) fn created(
    made: &LoadBalancer,
    tree: &CreatedTree,
) -> Result<Option<ObservedLoadBalancer>, Failure> {
    if made.vip_address.is_none() || made.vip_port_id.is_none() {
        return Ok(None);
    }
    let load_balancer = convert::load_balancer(made.clone(), Ownership::Sole, None)?;
    let listeners = tree.listeners.iter().map(|listener| convert::listener(listener.clone(), true));
    let pools = tree.pools.iter().map(|pool| convert::created_pool(pool.clone()));
    let mut children =
        Children { listeners: listeners.collect::<Result<_, _>>()?, pools: pools.collect::<Result<_, _>>()? };
    count_as_done(&mut children);
    let status = ProvisioningStatus::Active;
    Ok(Some(ObservedLoadBalancer { status, children: Some(children), ..load_balancer }))
}

/// All children, to be confirmed.
pub(super) fn all(children: &Children) -> BTreeSet<Child> {
    let listeners = children.listeners.iter().map(|listener| Child::Listener(listener.id.clone()));
    let pools = children.pools.iter().flat_map(|pool| {
        let monitor = pool
            .monitor
            .as_ref()
            .map(|monitor| Child::Monitor { id: monitor.id.clone(), pool_id: pool.id.clone() });
        [Child::Pool(pool.id.clone()), Child::Members(pool.id.clone())].into_iter().chain(monitor)
    });
    listeners.chain(pools).collect()
}

/// Brings the children up to date with an answer, and tells which one it shows.
///
/// # Errors
/// An answer that makes no sense.
pub(super) fn put(children: &mut Children, answer: &Answer) -> Result<Option<Child>, Failure> {
    let child = match answer {
        Answer::Listener(listener) => {
            children.put_listener(&listener.id, Some((**listener).clone()))?;
            Child::Listener(listener.id.clone())
        }
        Answer::Pool(pool) => {
            children.put_pool(&pool.id, Some((**pool).clone()));
            Child::Pool(pool.id.clone())
        }
        Answer::Monitor { monitor, pool_id } => {
            let Some(pool) = children.pools.iter_mut().find(|pool| pool.id == *pool_id) else {
                return Ok(None);
            };
            pool.monitor = Some(convert::monitor((**monitor).clone()));
            Child::Monitor { id: monitor.id.clone(), pool_id: pool_id.clone() }
        }
        Answer::Members { pool_id, members } => {
            let Some(pool) = children.pools.iter_mut().find(|pool| pool.id == *pool_id) else {
                return Ok(None);
            };
            pool.members = members.iter().map(ObservedMember::as_wanted).collect();
            Child::Members(pool_id.clone())
        }
        Answer::Gone(child) => {
            remove(children, child)?;
            child.clone()
        }
        Answer::LoadBalancer(_) | Answer::Nothing => return Ok(None),
    };
    count_as_done(children);
    Ok(Some(child))
}

/// Whether a child is among these, or the pool that it is in: no list of load balancers shows what is in a pool.
pub(super) fn is_there(children: &Children, child: &Child) -> bool {
    match child {
        Child::Listener(id) => children.listeners.iter().any(|listener| listener.id == *id),
        Child::Pool(id) | Child::Members(id) | Child::Monitor { pool_id: id, .. } => {
            children.pools.iter().any(|pool| pool.id == *id)
        }
    }
}

fn remove(children: &mut Children, child: &Child) -> Result<(), Failure> {
    match child {
        Child::Listener(id) => children.put_listener(id, None)?,
        Child::Pool(id) => {
            children.put_pool(id, None);
            for listener in
                children.listeners.iter_mut().filter(|one| one.default_pool_id.as_ref() == Some(id))
            {
                listener.default_pool_id = None;
            }
        }
        Child::Monitor { id, .. } => {
            for pool in &mut children.pools {
                pool.monitor.take_if(|monitor| monitor.id == *id);
            }
        }
        Child::Members(_) => {}
    }
    Ok(())
}

/// What Octavia is at work on counts as done: nobody looks at it before the lock has ended.
fn count_as_done(children: &mut Children) {
    let done = |status: &mut ProvisioningStatus| {
        if status.is_pending() {
            *status = ProvisioningStatus::Active;
        }
    };
    children.listeners.iter_mut().for_each(|listener| done(&mut listener.status));
    for pool in &mut children.pools {
        done(&mut pool.status);
        pool.members.iter_mut().for_each(|member| done(&mut member.status));
        pool.monitor.iter_mut().for_each(|monitor| done(&mut monitor.status));
    }
}

/// Whether a load balancer that Octavia is done with has the children that it is believed to have: all of the Service's, and
/// none of those that were deleted. On one that nobody else uses, also no others.
pub(super) fn has_the_children(
    listed: &LoadBalancer,
    there: &ObservedLoadBalancer,
    answered: &BTreeSet<Child>,
) -> bool {
    let Some(children) = &there.children else { return true };
    let shown: BTreeSet<&str> =
        listed.listeners.iter().chain(&listed.pools).map(|child| child.id.as_str()).collect();
    let listeners = children.listeners.iter().map(|listener| (listener.ours, listener.id.as_str()));
    let pools = children.pools.iter().map(|pool| (pool.ours, pool.id.as_str()));
    let known: BTreeMap<&str, bool> = listeners.chain(pools).map(|(ours, id)| (id, ours)).collect();
    let lost = known.iter().any(|(id, ours)| *ours && !shown.contains(id));
    let unknown = |id: &&&str| !known.contains_key(**id);
    let surprising = match there.ownership {
        Ownership::Sole => shown.iter().any(|id| unknown(&id)),
        Ownership::Shared | Ownership::Guest => {
            shown.iter().filter(unknown).any(|id| answered.iter().any(|child| child.id() == *id))
        }
    };
    !lost && !surprising
}

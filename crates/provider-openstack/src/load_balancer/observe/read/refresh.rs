//! Reads again what a change touched, and nothing else.
//!
//! A load balancer that is ACTIVE again does not mean that the change was made: a listener or member batch that failed
//! leaves it ACTIVE, and the child in ERROR. So the child is asked, at once or, after a change of nodes, a while later.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::error::ApiError;
use openstack_ccm_openstack_api::octavia::Octavia;

use super::answers::{present, reading};
use crate::load_balancer::model::convert::{self, MemberList};
use crate::load_balancer::model::observed::Children;
use crate::load_balancer::step::Child;

/// Brings the children up to date with what is there now of one of them.
///
/// # Errors
/// Any failed call.
pub(crate) async fn refresh(
    octavia: &Octavia,
    children: &mut Children,
    child: &Child,
) -> Result<(), Failure> {
    match child {
        Child::Listener(id) => children.put_listener(id, read(octavia.get_listener(id).await)?),
        Child::Pool(id) => {
            children.put_pool(id, read(octavia.get_pool(id).await)?);
            Ok(())
        }
        Child::Members(pool_id) => members(octavia, children, pool_id).await,
        Child::Monitor { id, pool_id } => monitor(octavia, children, id, pool_id).await,
    }
}

fn read<T>(answer: Result<T, ApiError>) -> Result<Option<T>, Failure> {
    present(answer).map_err(|error| reading(&error))
}

async fn members(octavia: &Octavia, children: &mut Children, pool_id: &str) -> Result<(), Failure> {
    let Some(seen) = read(octavia.list_members(pool_id, MemberList::default()).await)? else {
        children.pools.retain(|pool| pool.id != pool_id);
        return Ok(());
    };
    let seen = seen.into_members()?;
    if let Some(pool) = children.pools.iter_mut().find(|pool| pool.id == pool_id) {
        pool.members = seen;
    }
    Ok(())
}

async fn monitor(octavia: &Octavia, children: &mut Children, id: &str, pool_id: &str) -> Result<(), Failure> {
    let seen = read(octavia.get_health_monitor(id).await)?;
    if let Some(pool) = children.pools.iter_mut().find(|pool| pool.id == pool_id) {
        match seen {
            Some(seen) => pool.monitor = Some(convert::monitor(seen)),
            // The pool may have another one by now.
            None => drop(pool.monitor.take_if(|monitor| monitor.id == id)),
        }
    }
    Ok(())
}

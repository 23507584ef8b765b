//! One change at a time: a load balancer's tree is locked from the moment a change is accepted until the worker is done.

use super::capacity::Threads;
use super::fault::OctaviaFault;
use super::kind::ObjectKind;
use crate::world::World;
use crate::world::load_balancing::Provisioning;
use crate::world::operation::{Operation, OperationKind};

/// Locks the tree for a change of a child; only an ACTIVE load balancer can be locked.
///
/// # Errors
/// `reported` is immutable: the load balancer, or the pool when members or monitors are written.
pub(crate) fn lock_tree(
    world: &mut World,
    load_balancer_id: &str,
    reported: (ObjectKind, &str),
) -> Result<(), OctaviaFault> {
    let now = world.plain_time();
    match world.load_balancing.load_balancers.get_mut(load_balancer_id) {
        Some(lb) if lb.entity.provisioning == Provisioning::Active => {
            lb.entity.set_provisioning(Provisioning::PendingUpdate, &now);
            Ok(())
        }
        _ => Err(OctaviaFault::Immutable { kind: reported.0, id: reported.1.to_owned() }),
    }
}

/// Locks a load balancer for a change of itself, where its status allows that.
///
/// # Errors
/// The load balancer's status is none of `allowed`.
pub(crate) fn lock_load_balancer(
    world: &mut World,
    id: &str,
    to: Provisioning,
    allowed: &[Provisioning],
) -> Result<(), OctaviaFault> {
    let now = world.plain_time();
    let lb = world
        .load_balancing
        .load_balancers
        .get_mut(id)
        .ok_or_else(|| OctaviaFault::not_found(ObjectKind::LoadBalancer, id))?;
    if !allowed.contains(&lb.entity.provisioning) {
        return Err(OctaviaFault::InvalidState { status: lb.entity.provisioning, id: id.to_owned() });
    }
    lb.entity.set_provisioning(to, &now);
    Ok(())
}

/// Marks a pool and the listeners that use it as changing.
pub(crate) fn mark_pool_and_listeners(world: &mut World, pool_id: &str) {
    let now = world.plain_time();
    if let Some(pool) = world.load_balancing.pools.get_mut(pool_id) {
        pool.entity.set_provisioning(Provisioning::PendingUpdate, &now);
    }
    mark_listeners(world, pool_id);
}

/// Marks the listeners that use a pool as changing.
pub(crate) fn mark_listeners(world: &mut World, pool_id: &str) {
    let now = world.plain_time();
    for listener in world.load_balancing.listeners.values_mut() {
        if listener.default_pool_id.as_deref() == Some(pool_id) {
            listener.entity.set_provisioning(Provisioning::PendingUpdate, &now);
        }
    }
}

/// Hands the accepted change to the worker.
pub(crate) fn begin(world: &mut World, kind: OperationKind, load_balancer_id: &str, target_id: &str) {
    let delay = world.load_balancing.delays.get(&kind).copied().unwrap_or_default();
    let workload = world.load_balancing.workload.as_mut();
    let job = workload.map(|workload| workload.begin(Threads::Worker, delay));
    let due = world.now() + delay;
    world.load_balancing.operations.push(Operation {
        kind,
        load_balancer_id: load_balancer_id.to_owned(),
        target_id: target_id.to_owned(),
        due,
        job,
    });
}

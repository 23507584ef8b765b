//! `operating_status`: what the health manager would have heard.

use crate::world::load_balancing::{LoadBalancing, Member, Operating, Provisioning};

/// Derives the operating statuses of a load balancer's tree.
///
/// An object that is not ACTIVE keeps what it had: a listener whose creation failed stays OFFLINE, one that a failed update
/// of its load balancer put into ERROR stays ONLINE.
pub(crate) fn refresh(state: &mut LoadBalancing, load_balancer_id: &str) {
    let Some(lb) = state.load_balancers.get(load_balancer_id) else { return };
    if !lb.built {
        return;
    }
    refresh_listeners(state, load_balancer_id);
    let pools: Vec<String> =
        state.pools_of(load_balancer_id).iter().map(|pool| pool.entity.id.clone()).collect();
    for pool in &pools {
        refresh_members(state, pool);
        refresh_pool(state, pool);
    }
    let worst = worst_pool(state, load_balancer_id);
    if let Some(lb) = state.load_balancers.get_mut(load_balancer_id) {
        lb.entity.operating = if lb.entity.is_up() { worst } else { Operating::Offline };
    }
}

/// Derives the operating statuses of everything.
pub(crate) fn refresh_all(state: &mut LoadBalancing) {
    let ids: Vec<String> = state.load_balancers.keys().cloned().collect();
    for id in ids {
        refresh(state, &id);
    }
}

fn refresh_listeners(state: &mut LoadBalancing, load_balancer_id: &str) {
    for listener in state.listeners.values_mut() {
        if listener.load_balancer_id == load_balancer_id
            && listener.entity.provisioning == Provisioning::Active
        {
            listener.entity.operating = up_or_down(listener.entity.is_up());
        }
    }
    let pools: Vec<String> =
        state.pools_of(load_balancer_id).iter().map(|pool| pool.entity.id.clone()).collect();
    for monitor in state.health_monitors.values_mut() {
        if pools.contains(&monitor.pool_id) && monitor.entity.provisioning == Provisioning::Active {
            monitor.entity.operating = up_or_down(monitor.entity.is_up());
        }
    }
}

fn up_or_down(up: bool) -> Operating {
    if up { Operating::Online } else { Operating::Offline }
}

fn refresh_members(state: &mut LoadBalancing, pool_id: &str) {
    let monitored = state.monitor_of(pool_id).map(|monitor| monitor.entity.provisioning);
    let statuses: Vec<(String, Operating)> = state
        .members_of(pool_id)
        .into_iter()
        .map(|member| (member.entity.id.clone(), member_status(state, member, monitored)))
        .collect();
    for (id, status) in statuses {
        if let Some(member) = state.members.get_mut(&id) {
            member.entity.operating = status;
        }
    }
}

fn member_status(state: &LoadBalancing, member: &Member, monitor: Option<Provisioning>) -> Operating {
    match monitor {
        None => Operating::NoMonitor,
        Some(Provisioning::PendingCreate) => Operating::Offline,
        Some(_) if !member.entity.is_up() || member.entity.provisioning == Provisioning::PendingCreate => {
            Operating::Offline
        }
        Some(_)
            if member.entity.provisioning == Provisioning::Error
                && member.entity.operating == Operating::Offline =>
        {
            Operating::Offline
        }
        Some(_) => checked_status(state, member),
    }
}

fn checked_status(state: &LoadBalancing, member: &Member) -> Operating {
    if !state.real_health_checks {
        return Operating::Online;
    }
    match state.check_results.get(&member.entity.id) {
        None => Operating::Offline,
        Some(true) => Operating::Online,
        Some(false) => Operating::Error,
    }
}

fn refresh_pool(state: &mut LoadBalancing, pool_id: &str) {
    let statuses: Vec<Operating> =
        state.members_of(pool_id).into_iter().map(|member| member.entity.operating).collect();
    let failed = statuses.iter().filter(|status| **status == Operating::Error).count();
    let status = match failed {
        0 => Operating::Online,
        failed if failed == statuses.len() => Operating::Error,
        _ => Operating::Degraded,
    };
    if let Some(pool) = state.pools.get_mut(pool_id)
        && matches!(pool.entity.provisioning, Provisioning::Active | Provisioning::PendingUpdate)
    {
        pool.entity.operating = if pool.entity.is_up() { status } else { Operating::Offline };
    }
}

/// The worst among the pools that hang on a listener: others are not in a heartbeat.
fn worst_pool(state: &LoadBalancing, load_balancer_id: &str) -> Operating {
    let statuses: Vec<Operating> = state
        .listeners_of(load_balancer_id)
        .into_iter()
        .filter_map(|listener| state.pools.get(listener.default_pool_id.as_ref()?))
        .map(|pool| pool.entity.operating)
        .collect();
    [Operating::Error, Operating::Degraded]
        .into_iter()
        .find(|status| statuses.contains(status))
        .unwrap_or(Operating::Online)
}

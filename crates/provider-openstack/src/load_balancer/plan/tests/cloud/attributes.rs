//! What Octavia does to single objects, and what it refuses.

use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::octavia::{
    ListenerProtocol, PoolProtocol, ProvisioningStatus, UpdateHealthMonitor, UpdateListener,
    UpdateLoadBalancer, UpdatePool,
};

use crate::load_balancer::model::{
    HttpCheck, ObservedListener, ObservedLoadBalancer, ObservedMonitor, ObservedPool, Persistence,
};

/// The pairs that Octavia allows.
pub(super) fn fits(listener: &ListenerProtocol, pool: &PoolProtocol) -> bool {
    use PoolProtocol::{Http, Https, Proxy, ProxyV2, Sctp, Tcp, Udp};
    match listener {
        ListenerProtocol::Tcp => matches!(pool, Tcp | Http | Https | Proxy | ProxyV2),
        ListenerProtocol::Http | ListenerProtocol::TerminatedHttps => matches!(pool, Http | Proxy | ProxyV2),
        ListenerProtocol::Https => matches!(pool, Https | Tcp | Proxy | ProxyV2),
        ListenerProtocol::Udp => *pool == Udp,
        ListenerProtocol::Sctp => *pool == Sctp,
        ListenerProtocol::Prometheus | ListenerProtocol::Other(_) => false,
    }
}

fn set<T: Clone>(target: &mut T, change: Option<&T>) {
    if let Some(value) = change {
        target.clone_from(value);
    }
}

pub(super) fn update_load_balancer(load_balancer: &mut ObservedLoadBalancer, changes: &UpdateLoadBalancer) {
    if changes.name.is_some() {
        load_balancer.previous_name = None;
    }
    set(&mut load_balancer.name, changes.name.as_ref());
    set(&mut load_balancer.description, changes.description.as_ref());
    set(&mut load_balancer.tags, changes.tags.as_ref());
}

pub(super) fn update_listener(listener: &mut ObservedListener, changes: &UpdateListener) {
    let attributes = &mut listener.attributes;
    changes.limits.iter().for_each(|(limit, value)| attributes.limits.set(limit, value));
    set(&mut attributes.insert_headers, changes.insert_headers.as_ref());
    if let Change::Set(cidrs) = &changes.allowed_cidrs {
        attributes.allowed_cidrs = Some(cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect());
    }
    if let Change::Set(reference) = &changes.default_tls_container_ref {
        attributes.tls_container_ref = Some(reference.clone());
    }
    set(&mut listener.tags, changes.tags.as_ref());
    listener.status = ProvisioningStatus::Active;
}

pub(super) fn update_pool(pool: &mut ObservedPool, changes: &UpdatePool) {
    set(&mut pool.attributes.lb_algorithm, changes.lb_algorithm.as_ref());
    match &changes.session_persistence {
        Change::Keep => {}
        Change::Set(wanted) => pool.attributes.session_persistence = Some(Persistence::of(wanted)),
        Change::Clear => pool.attributes.session_persistence = None,
    }
    set(&mut pool.tags, changes.tags.as_ref());
    pool.status = ProvisioningStatus::Active;
}

pub(super) fn update_monitor(monitor: &mut ObservedMonitor, changes: &UpdateHealthMonitor) {
    let attributes = &mut monitor.attributes;
    set(&mut attributes.delay, changes.delay.as_ref());
    set(&mut attributes.timeout, changes.timeout.as_ref());
    set(&mut attributes.max_retries, changes.max_retries.as_ref());
    set(&mut attributes.max_retries_down, changes.max_retries_down.as_ref());
    if let (Some(path), Some(method), Some(codes)) =
        (&changes.url_path, &changes.http_method, &changes.expected_codes)
    {
        attributes.http =
            Some(HttpCheck { path: path.clone(), method: method.clone(), codes: codes.clone() });
    }
    set(&mut monitor.tags, changes.tags.as_ref());
    monitor.status = ProvisioningStatus::Active;
}

//! The changes that updates make to single objects.

use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::octavia::{
    ProvisioningStatus, UpdateHealthMonitor, UpdateListener, UpdateLoadBalancer, UpdatePool,
};

use crate::load_balancer::objects::{
    HttpCheck, ObservedListener, ObservedLoadBalancer, ObservedMonitor, ObservedPool, Persistence,
};

fn set<T: Clone>(target: &mut T, change: Option<&T>) {
    if let Some(value) = change {
        target.clone_from(value);
    }
}

fn change<T: Clone>(target: &mut Option<T>, change: &Change<T>) {
    match change {
        Change::Keep => {}
        Change::Set(value) => *target = Some(value.clone()),
        Change::Clear => *target = None,
    }
}

pub(in crate::load_balancer) fn update_load_balancer(
    load_balancer: &mut ObservedLoadBalancer,
    changes: &UpdateLoadBalancer,
) {
    if changes.name.is_some() {
        load_balancer.previous_name = None;
    }
    set(&mut load_balancer.name, changes.name.as_ref());
    set(&mut load_balancer.description, changes.description.as_ref());
    set(&mut load_balancer.tags, changes.tags.as_ref());
}

/// Applies an update. `None` where the request contains something that cannot be parsed back.
pub(in crate::load_balancer) fn update_listener(
    listener: &mut ObservedListener,
    changes: &UpdateListener,
) -> Option<()> {
    let attributes = &mut listener.attributes;
    changes.limits.iter().for_each(|(limit, value)| attributes.limits.set(limit, value));
    set(&mut attributes.insert_headers, changes.insert_headers.as_ref());
    match &changes.allowed_cidrs {
        Change::Keep => {}
        Change::Set(cidrs) => {
            let cidrs = cidrs.iter().map(|cidr| cidr.parse().ok()).collect::<Option<_>>()?;
            attributes.allowed_cidrs = Some(cidrs);
        }
        Change::Clear => attributes.allowed_cidrs = None,
    }
    change(&mut attributes.tls_container_ref, &changes.default_tls_container_ref);
    let tls = &mut attributes.tls;
    if let Some(references) = &changes.sni_container_refs {
        tls.sni_container_refs = (!references.is_empty()).then(|| references.clone());
    }
    change(&mut tls.versions, &changes.tls_versions);
    change(&mut tls.ciphers, &changes.tls_ciphers);
    change(&mut tls.alpn_protocols, &changes.alpn_protocols);
    set(&mut listener.name, changes.name.as_ref());
    set(&mut listener.tags, changes.tags.as_ref());
    listener.status = ProvisioningStatus::Active;
    Some(())
}

pub(in crate::load_balancer) fn update_pool(pool: &mut ObservedPool, changes: &UpdatePool) {
    set(&mut pool.attributes.lb_algorithm, changes.lb_algorithm.as_ref());
    match &changes.session_persistence {
        Change::Keep => {}
        Change::Set(wanted) => pool.attributes.session_persistence = Some(Persistence::of(wanted)),
        Change::Clear => pool.attributes.session_persistence = None,
    }
    set(&mut pool.name, changes.name.as_ref());
    set(&mut pool.tags, changes.tags.as_ref());
    pool.status = ProvisioningStatus::Active;
}

pub(in crate::load_balancer) fn update_monitor(monitor: &mut ObservedMonitor, changes: &UpdateHealthMonitor) {
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
    set(&mut monitor.name, changes.name.as_ref());
    set(&mut monitor.tags, changes.tags.as_ref());
    monitor.status = ProvisioningStatus::Active;
}

//! The changes that updates make to single objects.

use openstack_ccm_openstack_api::octavia::{
    Fields as _, ProvisioningStatus, UpdateChild, UpdateLoadBalancer,
};

use crate::load_balancer::objects::{
    ObservedListener, ObservedLoadBalancer, ObservedMonitor, ObservedPool, Tags,
};

fn set<T: Clone>(target: &mut T, change: Option<&T>) {
    if let Some(value) = change {
        target.clone_from(value);
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

pub(in crate::load_balancer) fn update_listener(listener: &mut ObservedListener, changes: &UpdateChild) {
    listener.attributes.apply(&changes.attributes);
    update(&mut listener.name, &mut listener.tags, &mut listener.status, changes);
}

pub(in crate::load_balancer) fn update_pool(pool: &mut ObservedPool, changes: &UpdateChild) {
    pool.attributes.apply(&changes.attributes);
    update(&mut pool.name, &mut pool.tags, &mut pool.status, changes);
}

pub(in crate::load_balancer) fn update_monitor(monitor: &mut ObservedMonitor, changes: &UpdateChild) {
    monitor.attributes.apply(&changes.attributes);
    update(&mut monitor.name, &mut monitor.tags, &mut monitor.status, changes);
}

fn update(name: &mut String, tags: &mut Tags, status: &mut ProvisioningStatus, changes: &UpdateChild) {
    set(name, changes.name.as_ref());
    set(tags, changes.tags.as_ref());
    *status = ProvisioningStatus::Active;
}

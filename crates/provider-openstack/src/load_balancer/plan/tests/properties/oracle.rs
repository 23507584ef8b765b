//! Says without any plan whether a cloud is as it should be.

use std::collections::BTreeSet;

use openstack_ccm_openstack_api::octavia::ProvisioningStatus;

use crate::load_balancer::objects::{
    Children, Desired, DesiredListener, FloatingIpGoal, Observed, ObservedFloatingIp, ObservedListener,
    ObservedPool,
};

/// All that is not the Service's: it must look the same at the end.
pub(super) fn foreign(observed: &Observed) -> (Vec<ObservedListener>, Vec<ObservedPool>, Vec<String>) {
    let children =
        observed.load_balancer.as_ref().and_then(|there| there.children.clone()).unwrap_or_default();
    let foreign_ip = |floating_ip: &ObservedFloatingIp| (!floating_ip.ours).then(|| floating_ip.id.clone());
    let pools = children.pools.into_iter().filter(|pool| !pool.ours).map(|pool| {
        // Which own listener uses a foreign pool is a matter of the own listener.
        ObservedPool { used_by: BTreeSet::new(), ..pool }
    });
    (
        children.listeners.into_iter().filter(|listener| !listener.ours).collect(),
        pools.collect(),
        observed.floating_ips.iter().filter_map(foreign_ip).collect(),
    )
}

/// Says by itself, without any plan, whether a Service is served.
pub(super) fn assert_served(desired: &Desired, observed: &Observed) {
    let load_balancer = observed.load_balancer.as_ref().expect("there is a load balancer");
    assert!(desired.load_balancer.tags.is_subset(&load_balancer.tags));
    let children = load_balancer.children.as_ref().unwrap();
    let own: Vec<_> = children.listeners.iter().filter(|listener| listener.ours).collect();
    assert_eq!(own.len(), desired.listeners.len(), "listeners: {own:#?}");
    for (key, wanted) in &desired.listeners {
        let listener = own.iter().find(|listener| listener.key() == *key).expect("the port is served");
        assert_port_served(wanted, listener, children);
    }
    let used: BTreeSet<_> = own.iter().filter_map(|listener| listener.default_pool_id.as_ref()).collect();
    let own_pools = children.pools.iter().filter(|pool| pool.ours);
    for leftover in own_pools.filter(|pool| !used.contains(&pool.id)) {
        let kept_for_others = !leftover.used_by.is_empty();
        assert!(kept_for_others, "a pool is left over: {leftover:#?}");
    }
    let on_vip = observed.floating_ips.iter().filter(|one| one.port_id == load_balancer.vip_port_id).count();
    match desired.floating_ip {
        FloatingIpGoal::External(_) => assert_eq!(on_vip, 1),
        FloatingIpGoal::Internal { .. } => assert_eq!(on_vip, 0),
        FloatingIpGoal::NotNeeded | FloatingIpGoal::Unknown { .. } => {}
    }
}

fn assert_port_served(wanted: &DesiredListener, listener: &ObservedListener, children: &Children) {
    assert_eq!(listener.status, ProvisioningStatus::Active);
    assert_eq!(listener.protocol, wanted.listener.protocol);
    assert_eq!(listener.attributes, wanted.listener.attributes);
    let id = listener.default_pool_id.as_ref().expect("it has a pool");
    let pool = children.pools.iter().find(|pool| pool.id == *id).expect("its pool exists");
    assert!(pool.ours);
    assert_eq!((&pool.status, &pool.protocol), (&ProvisioningStatus::Active, &wanted.pool.pool.protocol));
    assert_eq!(pool.attributes, wanted.pool.pool.attributes);
    let mut members: Vec<_> = pool.members.iter().map(|member| member.member.clone()).collect();
    members.sort_by_key(|member| member.key());
    // Without nodes those that are there stay.
    if !wanted.pool.members.is_empty() {
        assert_eq!(members, wanted.pool.members);
        assert!(pool.members.iter().all(|member| member.status == ProvisioningStatus::Active));
    }
    match (&pool.monitor, &wanted.pool.monitor) {
        (Some(seen), Some(wanted)) => {
            assert_eq!((&seen.kind, &seen.attributes), (&wanted.kind, &wanted.attributes));
            assert_eq!(seen.status, ProvisioningStatus::Active);
        }
        (None, None) => {}
        (seen, wanted) => panic!("monitor is {seen:?} instead of {wanted:?}"),
    }
}

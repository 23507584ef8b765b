//! Converts the parts of steps to request bodies.

use std::net::IpAddr;

use openstack_ccm_openstack_api::octavia::{
    AdditionalVip, CreateHealthMonitor, CreateListener, CreateLoadBalancer, CreatePool, Fields as _,
    MemberSpec, UpdateChild,
};

use crate::load_balancer::objects::{
    DesiredListener, DesiredPool, ListenerSpec, LoadBalancerSpec, Member, MonitorSpec, PoolSpec, Tags, tree,
};

fn list(tags: &Tags) -> Vec<String> {
    tags.iter().cloned().collect()
}

pub(super) fn load_balancer(spec: &LoadBalancerSpec, listeners: &[DesiredListener]) -> CreateLoadBalancer {
    let LoadBalancerSpec { name, description, provider, vip, flavor_id, availability_zone, tags } = spec;
    CreateLoadBalancer {
        name: name.clone(),
        description: Some(description.clone()),
        provider: provider.clone(),
        tags: list(tags),
        flavor_id: flavor_id.clone(),
        availability_zone: availability_zone.clone(),
        vip_port_id: vip.port_id.clone(),
        vip_subnet_id: vip.subnet_id.clone(),
        vip_network_id: vip.network_id.clone(),
        vip_address: vip.address.map(|address| address.to_string()),
        additional_vips: vip.additional.iter().map(additional_vip).collect(),
        listeners: listeners.iter().map(listener_with_pool).collect(),
    }
}

fn additional_vip(vip: &tree::AdditionalVip) -> AdditionalVip {
    let tree::AdditionalVip { subnet_id, address } = vip;
    AdditionalVip { subnet_id: subnet_id.clone(), ip_address: address.map(|address| address.to_string()) }
}

fn listener_with_pool(desired: &DesiredListener) -> CreateListener {
    let DesiredListener { listener: spec, pool: default_pool } = desired;
    let mut body = listener(spec);
    body.default_pool = Some(Box::new(pool_with_members(default_pool)));
    body
}

fn pool_with_members(desired: &DesiredPool) -> CreatePool {
    let mut body = pool(&desired.pool);
    body.members = desired.members.iter().map(|one| member(one)).collect();
    body.health_monitor = desired.monitor.as_ref().map(monitor);
    body
}

pub(super) fn listener(spec: &ListenerSpec) -> CreateListener {
    let ListenerSpec { name, protocol, port, attributes, tags } = spec;
    let mut body = CreateListener::new(name, protocol.clone(), *port);
    body.attributes = attributes.to_create();
    body.tags = list(tags);
    body
}

pub(super) fn default_pool(pool_id: &str) -> UpdateChild {
    UpdateChild::of("default_pool_id", pool_id)
}

pub(super) fn pool(spec: &PoolSpec) -> CreatePool {
    let PoolSpec { name, protocol, attributes, tags } = spec;
    let mut body = CreatePool::new(name, protocol.clone(), attributes);
    body.tags = list(tags);
    body
}

/// Returns a member with every attribute that a batch would otherwise reset to its default. Default values are omitted, as earlier
/// controllers did.
pub(super) fn member(member: &Member) -> MemberSpec {
    let Member {
        name,
        address,
        port,
        subnet_id,
        monitor_port,
        monitor_address,
        weight,
        backup,
        admin_state_up,
    } = member;
    MemberSpec {
        address: address.to_string(),
        protocol_port: *port,
        name: Some(name.clone()),
        subnet_id: subnet_id.as_deref().map(str::to_owned),
        monitor_port: *monitor_port,
        monitor_address: monitor_address.as_ref().map(IpAddr::to_string),
        weight: (*weight != 1).then_some(*weight),
        backup: backup.then_some(true),
        admin_state_up: (!admin_state_up).then_some(false),
    }
}

pub(super) fn monitor(spec: &MonitorSpec) -> CreateHealthMonitor {
    let MonitorSpec { name, kind, attributes, tags } = spec;
    CreateHealthMonitor {
        name: name.clone(),
        kind: kind.clone(),
        attributes: attributes.to_create(),
        pool_id: None,
        tags: list(tags),
    }
}

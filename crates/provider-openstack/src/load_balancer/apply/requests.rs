//! Converts the parts of steps to request bodies.

use std::net::IpAddr;

use openstack_ccm_openstack_api::change::Change;
use openstack_ccm_openstack_api::octavia::{
    AdditionalVip, CreateHealthMonitor, CreateListener, CreateLoadBalancer, CreatePool, MemberSpec,
    UpdateListener,
};

use crate::load_balancer::objects::{
    DesiredListener, DesiredPool, ListenerAttributes, ListenerSpec, LoadBalancerSpec, Member,
    MonitorAttributes, MonitorSpec, Persistence, PoolAttributes, PoolSpec, Tags, tree,
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
    let ListenerAttributes { limits, insert_headers, allowed_cidrs, tls_container_ref, tls } = attributes;
    let mut body = CreateListener::new(name, protocol.clone(), *port);
    body.limits = *limits;
    body.insert_headers.clone_from(insert_headers);
    body.allowed_cidrs = allowed_cidrs.iter().flatten().map(ToString::to_string).collect();
    body.default_tls_container_ref.clone_from(tls_container_ref);
    body.sni_container_refs = tls.sni_container_refs.iter().flatten().cloned().collect();
    body.tls_versions = tls.versions.iter().flatten().cloned().collect();
    body.tls_ciphers.clone_from(&tls.ciphers);
    body.alpn_protocols = tls.alpn_protocols.clone().unwrap_or_default();
    body.tags = list(tags);
    body
}

pub(super) fn default_pool(pool_id: &str) -> UpdateListener {
    UpdateListener { default_pool_id: Change::Set(pool_id.to_owned()), ..UpdateListener::default() }
}

pub(super) fn pool(spec: &PoolSpec) -> CreatePool {
    let PoolSpec { name, protocol, attributes, tags } = spec;
    let PoolAttributes { lb_algorithm, session_persistence } = attributes;
    let mut body = CreatePool::new(name, protocol.clone(), lb_algorithm.clone());
    body.session_persistence = session_persistence.as_ref().map(Persistence::request);
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
    let MonitorAttributes { delay, timeout, max_retries, max_retries_down, http } = attributes;
    CreateHealthMonitor {
        name: name.clone(),
        kind: kind.clone(),
        delay: *delay,
        timeout: *timeout,
        max_retries: *max_retries,
        max_retries_down: Some(*max_retries_down),
        pool_id: None,
        url_path: http.as_ref().map(|http| http.path.clone()),
        http_method: http.as_ref().map(|http| http.method.clone()),
        expected_codes: http.as_ref().map(|http| http.codes.clone()),
        tags: list(tags),
    }
}

//! Checks a tree as Octavia does, before it is sent.
//!
//! Mistakes of the user are reported where settings are read, in the user's terms. This is the safety net: a tree that fails here
//! is a bug of this controller, and is not sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::service::IpFamily;
use openstack_ccm_openstack_api::octavia::{Fields as _, HealthMonitorType, ListenerProtocol, PoolProtocol};

use crate::load_balancer::annotations::{Annotation, Kind};
use crate::load_balancer::objects::{Desired, DesiredListener, ListenerSpec, Member, MemberKey, MonitorSpec};
use crate::load_balancer::settings::node_address::family_of;
use crate::user_tag::MAX_OCTAVIA_LENGTH;

/// Most retries of a health monitor.
const MAX_RETRIES: u32 = 10;

pub(super) fn tree(desired: &Desired, vip_families: &[IpFamily]) -> Result<(), Failure> {
    let load_balancer = &desired.load_balancer;
    text("load balancer name", &load_balancer.name)?;
    ensure(load_balancer.description.chars().count() <= MAX_OCTAVIA_LENGTH, || {
        format!("the description of {} is too long", load_balancer.name)
    })?;
    for (key, listener) in &desired.listeners {
        ensure(listener.listener.key() == *key, || {
            format!("the listener for {key} has another port or protocol")
        })?;
        self::listener(listener, vip_families)?;
    }
    let Some(metrics) = &desired.metrics else { return Ok(()) };
    text("listener name", &metrics.name)?;
    ensure(metrics.attributes.allowed_cidrs.is_some(), || {
        format!("listener {} is open to everybody", metrics.name)
    })?;
    attributes(metrics, vip_families)
}

fn listener(wanted: &DesiredListener, vip_families: &[IpFamily]) -> Result<(), Failure> {
    let DesiredListener { listener, pool } = wanted;
    text("listener name", &listener.name)?;
    text("pool name", &pool.pool.name)?;
    let (from, to) = (&listener.protocol, &pool.pool.protocol);
    ensure(listener.port != 0, || format!("listener {} has port 0", listener.name))?;
    ensure(fits(from, to), || format!("pool protocol {to} is not compatible with listener protocol {from}"))?;
    attributes(listener, vip_families)?;
    members(&pool.members)?;
    pool.monitor.as_ref().map_or(Ok(()), |spec| monitor(spec, to))
}

/// Returns whether Octavia accepts this pair.
fn fits(listener: &ListenerProtocol, pool: &PoolProtocol) -> bool {
    let proxied = matches!(pool, PoolProtocol::Proxy | PoolProtocol::ProxyV2);
    match listener {
        ListenerProtocol::Tcp => {
            proxied || matches!(pool, PoolProtocol::Tcp | PoolProtocol::Http | PoolProtocol::Https)
        }
        ListenerProtocol::Http | ListenerProtocol::TerminatedHttps => proxied || *pool == PoolProtocol::Http,
        ListenerProtocol::Https => proxied || matches!(pool, PoolProtocol::Https | PoolProtocol::Tcp),
        ListenerProtocol::Udp => *pool == PoolProtocol::Udp,
        ListenerProtocol::Sctp => *pool == PoolProtocol::Sctp,
        ListenerProtocol::Prometheus | ListenerProtocol::Other(_) => false,
    }
}

fn attributes(listener: &ListenerSpec, vip_families: &[IpFamily]) -> Result<(), Failure> {
    let ListenerSpec { name, protocol, attributes, .. } = listener;
    let http = matches!(protocol, ListenerProtocol::Http | ListenerProtocol::TerminatedHttps);
    ensure(http || attributes.insert_headers.is_empty(), || {
        format!("listener {name} inserts headers into {protocol}")
    })?;
    let terminates_tls = *protocol == ListenerProtocol::TerminatedHttps;
    ensure(terminates_tls == attributes.tls_container_ref.is_some(), || {
        format!("listener {name} of protocol {protocol} must have a certificate exactly if it terminates TLS")
    })?;
    for (limit, value) in attributes.limits.values().iter() {
        let annotation = Annotation::of(Kind::Limit, limit);
        ensure(
            annotation.zip(value.as_i64()).is_some_and(|(annotation, value)| annotation.admits(value)),
            || format!("listener {name} has the {limit} {value}"),
        )?;
    }
    ensure(attributes.allowed_cidrs.as_ref().is_none_or(|cidrs| !cidrs.is_empty()), || {
        format!(
            "listener {name} has an empty list of source ranges, with which Octavia would allow all clients"
        )
    })?;
    let mut cidrs = attributes.allowed_cidrs.iter().flatten();
    ensure(cidrs.all(|cidr| vip_families.contains(&family_of(cidr.addr()))), || {
        format!("listener {name} allows networks of an IP family that no VIP has")
    })
}

fn members(members: &[Arc<Member>]) -> Result<(), Failure> {
    let keys: BTreeSet<MemberKey> = members.iter().map(|member| member.key()).collect();
    ensure(keys.len() == members.len(), || "a pool has one member twice".to_owned())?;
    for member in members {
        text("member name", &member.name)?;
        ensure(member.port != 0 && member.monitor_port != Some(0), || {
            format!("member {} has port 0", member.name)
        })?;
    }
    Ok(())
}

fn monitor(spec: &MonitorSpec, pool: &PoolProtocol) -> Result<(), Failure> {
    text("health monitor name", &spec.name)?;
    ensure(checks(&spec.kind, pool), || {
        format!("health monitor type {} is not compatible with pool protocol {pool}", spec.kind)
    })?;
    let attributes = &spec.attributes;
    ensure(attributes.timeout >= 1 && attributes.delay >= 1, || {
        format!(
            "health monitor {} has timeout {} and delay {}",
            spec.name, attributes.timeout, attributes.delay
        )
    })?;
    let retries = 1..=MAX_RETRIES;
    ensure(
        retries.contains(&attributes.max_retries) && retries.contains(&attributes.max_retries_down),
        || format!("health monitor {} has a number of retries outside 1 to {MAX_RETRIES}", spec.name),
    )?;
    let asks = matches!(spec.kind, HealthMonitorType::Http | HealthMonitorType::Https);
    ensure(attributes.http.is_some() == asks, || {
        format!(
            "health monitor {} of type {} lacks its HTTP request, or has one that this type does not send",
            spec.name, spec.kind
        )
    })
}

/// Returns whether Octavia accepts this pair.
fn checks(kind: &HealthMonitorType, pool: &PoolProtocol) -> bool {
    let packets = matches!(pool, PoolProtocol::Udp | PoolProtocol::Sctp);
    match kind {
        HealthMonitorType::Http | HealthMonitorType::Tcp => true,
        HealthMonitorType::UdpConnect | HealthMonitorType::Sctp => packets,
        _ => !packets,
    }
}

fn text(what: &str, text: &str) -> Result<(), Failure> {
    let length = text.chars().count();
    ensure((1..=MAX_OCTAVIA_LENGTH).contains(&length), || format!("{what} {text:?} has {length} characters"))
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::new(FailureClass::Bug, otherwise())) }
}

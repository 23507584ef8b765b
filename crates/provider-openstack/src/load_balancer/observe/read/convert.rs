//! What Octavia and Neutron show, in the types that plans compare.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_openstack_api::octavia::{
    HealthMonitor, HealthMonitorType, Listener, ListenerLimit, ListenerLimits, Member as OctaviaMember, Pool,
};

use crate::load_balancer::model::listener::{ListenerAttributes, TlsAttributes};
use crate::load_balancer::model::member::Member;
use crate::load_balancer::model::monitor::{HttpCheck, MonitorAttributes};
use crate::load_balancer::model::observed::{
    ObservedListener, ObservedMember, ObservedMonitor, ObservedPool,
};
use crate::load_balancer::model::pool::{Persistence, PoolAttributes};

pub(super) fn listener(seen: Listener, ours: bool) -> Result<ObservedListener, Failure> {
    let attributes = listener_attributes(&seen)?;
    Ok(ObservedListener {
        id: seen.id,
        name: seen.name,
        ours,
        status: seen.provisioning_status,
        protocol: seen.protocol,
        port: seen.protocol_port,
        default_pool_id: seen.default_pool_id,
        attributes,
        tags: seen.tags.into_iter().collect(),
    })
}

fn listener_attributes(seen: &Listener) -> Result<ListenerAttributes, Failure> {
    let cidrs = seen.allowed_cidrs.iter().map(|cidr| parse("listener", &seen.id, "network", cidr));
    let cidrs: BTreeSet<_> = cidrs.collect::<Result<_, _>>()?;
    Ok(ListenerAttributes {
        limits: limits(seen.limits),
        insert_headers: seen.insert_headers.clone(),
        allowed_cidrs: (!cidrs.is_empty()).then_some(cidrs),
        tls_container_ref: seen.default_tls_container_ref.clone().filter(|reference| !reference.is_empty()),
        tls: TlsAttributes {
            sni_container_refs: some_set(&seen.sni_container_refs),
            versions: some_set(&seen.tls_versions),
            ciphers: seen.tls_ciphers.clone(),
            alpn_protocols: (!seen.alpn_protocols.is_empty()).then(|| seen.alpn_protocols.clone()),
        },
    })
}

/// What Octavia shows as an empty list is not there.
fn some_set(list: &[String]) -> Option<BTreeSet<String>> {
    (!list.is_empty()).then(|| list.iter().cloned().collect())
}

/// Octavia shows "no limit" as -1, and where nobody ever set one as null.
fn limits(mut seen: ListenerLimits) -> ListenerLimits {
    if seen.get(ListenerLimit::Connections).is_none() {
        seen.set(ListenerLimit::Connections, -1);
    }
    seen
}

/// Members and monitor are added where the pool is the Service's own.
pub(super) fn pool(seen: Pool, ours: bool, used_by: BTreeSet<String>) -> ObservedPool {
    let session_persistence = seen
        .session_persistence
        .map(|seen| Persistence { kind: seen.kind, timeout: seen.persistence_timeout });
    ObservedPool {
        id: seen.id,
        name: seen.name,
        ours,
        status: seen.provisioning_status,
        protocol: seen.protocol,
        attributes: PoolAttributes { lb_algorithm: seen.lb_algorithm, session_persistence },
        tags: seen.tags.into_iter().collect(),
        used_by,
        members: Vec::new(),
        monitor: None,
    }
}

pub(super) fn member(seen: OctaviaMember) -> Result<ObservedMember, Failure> {
    let monitor_address = seen.monitor_address.filter(|address| !address.is_empty());
    let member = Member {
        address: address("member", &seen.id, &seen.address)?,
        monitor_address: monitor_address.map(|text| address("member", &seen.id, &text)).transpose()?,
        name: seen.name,
        port: seen.protocol_port,
        subnet_id: seen.subnet_id,
        monitor_port: seen.monitor_port,
        weight: seen.weight,
        backup: seen.backup,
        admin_state_up: seen.admin_state_up,
    };
    Ok(ObservedMember { id: seen.id, status: seen.provisioning_status, member })
}

pub(super) fn monitor(seen: HealthMonitor) -> ObservedMonitor {
    let asks_http = matches!(seen.kind, HealthMonitorType::Http | HealthMonitorType::Https);
    let http = asks_http.then(|| HttpCheck {
        // What Octavia takes when nothing is said.
        path: seen.url_path.unwrap_or_else(|| "/".to_owned()),
        method: seen.http_method.unwrap_or_else(|| "GET".to_owned()),
        codes: seen.expected_codes.unwrap_or_else(|| "200".to_owned()),
    });
    ObservedMonitor {
        id: seen.id,
        name: seen.name,
        status: seen.provisioning_status,
        kind: seen.kind,
        attributes: MonitorAttributes {
            delay: seen.delay,
            timeout: seen.timeout,
            max_retries: seen.max_retries,
            max_retries_down: seen.max_retries_down,
            http,
        },
        tags: seen.tags.into_iter().collect(),
    }
}

/// An address that OpenStack shows for an object.
pub(super) fn address(kind: &str, id: &str, text: &str) -> Result<IpAddr, Failure> {
    parse(kind, id, "address", text)
}

fn parse<T: FromStr>(kind: &str, id: &str, what: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| {
        Failure::new(
            FailureClass::Bug,
            format!("OpenStack shows {text:?} as {what} of {kind} {id}, which is none"),
        )
    })
}

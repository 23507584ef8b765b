//! Settings that contradict each other, or that this cloud does not support.

use std::net::IpAddr;

use openstack_ccm_core::service::{IpFamily, Protocol, ServicePort};
use openstack_ccm_openstack_api::octavia::{HealthMonitorType, LbAlgorithm, ListenerProtocol, PoolProtocol};

use super::health_monitor::{self, MIN_UDP_DELAY};
use super::source_ranges;
use super::sources::Sources;
use crate::load_balancer::annotations::{ENABLE_HEALTH_MONITOR, HEALTH_MONITOR_TYPE, PROXY_PROTOCOL};
use crate::load_balancer::objects::Facts;
use crate::load_balancer::settings::node_address::family_of;
use crate::load_balancer::settings::{Aspect, Fault, Kind, Settings};

/// Returns everything that Octavia would refuse while keeping port and address of the tree. If the load balancer `exists`, faults
/// that matter only at creation are omitted.
pub(crate) fn faults(sources: Sources<'_>, exists: bool) -> Vec<Fault> {
    let ports = &sources.intent.service.ports;
    let mut faults: Vec<Fault> = ports.iter().filter_map(|port| port_fault(sources, port)).collect();
    faults.extend(algorithm_fault(sources));
    faults.extend(ports.iter().filter_map(|port| monitor_fault(sources, port)));
    faults.extend(source_ranges::fault(sources));
    if !exists {
        faults.extend(vip_fault(sources.settings, sources.facts));
        faults.extend(family_fault(sources.settings, sources.facts));
    }
    faults
}

fn port_fault(sources: Sources<'_>, port: &ServicePort) -> Option<Fault> {
    let (settings, features) = (sources.settings, sources.facts.features);
    if port.protocol == Protocol::Sctp && !features.sctp {
        let message = format!(
            "SCTP port {} requires Octavia API 2.23, which this cloud does not have: remove the port from spec.ports",
            port.port
        );
        return Some(Fault::new([Aspect::Sctp], message));
    }
    let (listener, pool) = (settings.listener_protocol(port), settings.pool_protocol(port));
    let forwards_only =
        matches!(listener, ListenerProtocol::Tcp | ListenerProtocol::Udp | ListenerProtocol::Sctp)
            && matches!(pool, PoolProtocol::Tcp | PoolProtocol::Udp | PoolProtocol::Sctp);
    if !forwards_only && !features.layer_7 {
        let message = format!(
            "port {} requires a listener of protocol {listener} and a pool of protocol {pool}, but provider ovn only forwards packets: \
             remove the annotations for PROXY protocol, TLS and X-Forwarded headers, or use the provider amphora; with ovn, pods see the \
             addresses of clients without any header if externalTrafficPolicy is Local and there is a health monitor ({}: \"true\")",
            port.port, ENABLE_HEALTH_MONITOR.key
        );
        return Some(Fault::new(Aspect::of_protocols(), message));
    }
    (pool == PoolProtocol::ProxyV2 && !features.proxy_v2).then(|| {
        let message = format!(
            "annotation {}: \"v2\" requires Octavia API 2.22, which this cloud does not have: use \"v1\"",
            PROXY_PROTOCOL.key
        );
        Fault::new([Aspect::ProxyProtocol], message)
    })
}

fn algorithm_fault(sources: Sources<'_>) -> Option<Fault> {
    let algorithm = sources.pool().lb_algorithm;
    let features = sources.facts.features;
    if algorithm == LbAlgorithm::SourceIpPort && !features.source_ip_port {
        let message = "lb-method SOURCE_IP_PORT requires Octavia API 2.13, which this cloud does not have: use SOURCE_IP";
        return Some(Fault::new([Aspect::Of(Kind::Pool, "lb_algorithm")], message));
    }
    let hashes = matches!(algorithm, LbAlgorithm::SourceIpPort | LbAlgorithm::SourceIp);
    (!features.layer_7 && !hashes).then(|| {
        let message = format!("lb-method {algorithm} is not supported by provider ovn: use SOURCE_IP_PORT");
        Fault::new([Aspect::Of(Kind::Pool, "lb_algorithm")], message)
    })
}

fn monitor_fault(sources: Sources<'_>, port: &ServicePort) -> Option<Fault> {
    let (kind, _) = health_monitor::kind(sources, port)?;
    let delay = sources.settings.health_monitor.as_ref()?.attributes.delay;
    if kind == HealthMonitorType::UdpConnect && delay < MIN_UDP_DELAY {
        let message = format!(
            "health-monitor-delay is {delay}, but Octavia requires at least {MIN_UDP_DELAY} for UDP port {}: raise health-monitor-delay",
            port.port
        );
        return Some(Fault::new([Aspect::Of(Kind::Monitor, "delay")], message));
    }
    (kind != HealthMonitorType::Tcp && port.protocol == Protocol::Tcp && !sources.facts.features.http_monitor)
        .then(|| {
            let message = format!(
                "annotation {}: {:?} is not supported by provider ovn: use \"TCP\", or remove the annotation",
                HEALTH_MONITOR_TYPE.key,
                kind.to_string()
            );
            Fault::new([Aspect::MonitorCheck], message)
        })
}

/// Refuses an IPv4 address for an IPv6-only Service, which would be published with an unwanted address.
fn family_fault(settings: &Settings, facts: &Facts) -> Option<Fault> {
    let is_ipv6 = settings.families.as_slice() == [IpFamily::V6];
    (is_ipv6 && facts.vip_family == IpFamily::V4).then(|| {
        let message = "spec.ipFamilies asks for IPv6 only, but the load balancer's subnet is an IPv4 subnet: specify an IPv6 subnet with \
                       loadbalancer.openstack.org/subnet-id, or subnet-id in cloud.conf; or set spec.ipFamilies to IPv4";
        Fault::new([Aspect::Creation], message)
    })
}

/// Returns what is wrong with a requested VIP address.
fn vip_fault(settings: &Settings, facts: &Facts) -> Option<Fault> {
    let has = |asked: &IpAddr| facts.vip_families().any(|family| family == family_of(*asked));
    let asked = settings.vip.addresses().find(|asked| !has(asked))?;
    let message = format!(
        "{} {asked} has another IP family than the load balancer's subnet: specify an address of that subnet, or another subnet with \
         loadbalancer.openstack.org/subnet-id",
        settings.vip.asked_by
    );
    Some(Fault::new([Aspect::Creation], message))
}

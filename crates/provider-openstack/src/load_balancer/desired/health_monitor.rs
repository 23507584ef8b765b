//! The health monitors of the pools.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{ExternalTrafficPolicy, Protocol, ServicePort};
use openstack_ccm_openstack_api::octavia::{HealthMonitorType, HttpCheck, MonitorAttributes};

use super::sources::Sources;
use crate::load_balancer::annotations::ENABLE_HEALTH_MONITOR;
use crate::load_balancer::objects::{Features, MonitorSpec, monitor};

/// Nodes without endpoints receive traffic.
const LOCAL_WITHOUT_MONITOR: &str = "LoadBalancerLocalWithoutMonitor";

/// Octavia's minimum delay of a UDP check, unless its operator lowered `udp_connect_min_interval_health_monitor`.
pub(super) const MIN_UDP_DELAY: u32 = 3;

/// Returns the health monitor of a port, if the Service asks for monitors.
pub(super) fn of_port(sources: Sources<'_>, index: usize, port: &ServicePort) -> Option<MonitorSpec> {
    let settings = sources.settings.health_monitor.as_ref()?;
    let (kind, http) = kind(sources, port)?;
    Some(MonitorSpec {
        name: sources.names.monitor(index),
        kind,
        attributes: MonitorAttributes { http, ..settings.attributes.clone() },
        tags: sources.tags(&sources.settings.user_tags.all),
    })
}

/// Returns how the members of a port are checked, if the Service asks for monitors.
pub(super) fn kind(
    sources: Sources<'_>,
    port: &ServicePort,
) -> Option<(HealthMonitorType, Option<HttpCheck>)> {
    let settings = sources.settings.health_monitor.as_ref()?;
    if has_no_check(sources, port) {
        return None;
    }
    Some(match (http_check_port(sources, port.protocol), port.protocol, &settings.check) {
        (Some(_), _, _) => (HealthMonitorType::Http, Some(monitor::health_check_node_port())),
        (None, Protocol::Tcp, Some(check)) => (check.kind.clone(), check.http.clone()),
        (None, Protocol::Tcp, None) => (HealthMonitorType::Tcp, None),
        (None, Protocol::Udp, _) => (HealthMonitorType::UdpConnect, None),
        (None, Protocol::Sctp, _) => (HealthMonitorType::Sctp, None),
    })
}

/// Returns whether the provider has no check for this port's protocol.
pub(super) fn has_no_check(sources: Sources<'_>, port: &ServicePort) -> bool {
    port.protocol == Protocol::Sctp && !sources.facts.features.http_monitor
}

/// Returns the warning if nodes without endpoints receive traffic although `externalTrafficPolicy: Local` forbids it.
pub(super) fn notice(sources: Sources<'_>) -> Option<Notice> {
    let service = &sources.intent.service;
    let local = service.external_traffic_policy == ExternalTrafficPolicy::Local
        && service.health_check_node_port.is_some();
    (local && sources.settings.health_monitor.is_none()).then(|| {
        let message = format!(
            "externalTrafficPolicy is Local but the pools have no health monitor, so nodes without a pod of this Service receive traffic \
             and drop it: set {} to \"true\", or create-monitor = true in cloud.conf",
            ENABLE_HEALTH_MONITOR.key
        );
        Notice::warning(LOCAL_WITHOUT_MONITOR, message)
    })
}

/// Returns the port of the service proxy's health check, if members are checked on it: it reports which nodes have endpoints, which
/// matters only with `externalTrafficPolicy: Local`.
pub(super) fn http_check_port(sources: Sources<'_>, transport: Protocol) -> Option<u16> {
    let service = &sources.intent.service;
    let monitor = sources.settings.health_monitor.as_ref();
    // A check that the user chose for TCP ports uses the node port.
    let replaced = transport == Protocol::Tcp && monitor.is_some_and(|monitor| monitor.check.is_some());
    let wanted =
        monitor.is_some() && !replaced && service.external_traffic_policy == ExternalTrafficPolicy::Local;
    let possible = can_check_http(sources.facts.features, transport);
    service.health_check_node_port.filter(|_| wanted && possible)
}

fn can_check_http(features: Features, transport: Protocol) -> bool {
    match transport {
        Protocol::Tcp | Protocol::Sctp => features.http_monitor,
        Protocol::Udp => features.http_monitor_on_udp,
    }
}

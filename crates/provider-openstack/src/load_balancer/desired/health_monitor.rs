//! How the members of a port are checked.

use openstack_ccm_core::failure::Failure;
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{ExternalTrafficPolicy, Protocol, ServicePort};
use openstack_ccm_openstack_api::octavia::HealthMonitorType;

use super::Sources;
use crate::load_balancer::annotations::{ENABLE_HEALTH_MONITOR, HEALTH_MONITOR_TYPE};
use crate::load_balancer::model::facts::Features;
use crate::load_balancer::model::monitor::{HttpCheck, MonitorAttributes, MonitorSpec};
use crate::load_balancer::settings::HealthMonitorSettings;

/// Nodes without endpoints get traffic.
const LOCAL_WITHOUT_MONITOR: &str = "LoadBalancerLocalWithoutMonitor";

/// What Octavia asks of the delay of a UDP check, unless its operator lowered `udp_connect_min_interval_health_monitor`.
const SHORTEST_UDP_DELAY: u32 = 3;

/// The health monitor of a port, where the Service asks for monitors.
pub(super) fn of_port(
    sources: Sources<'_>,
    index: usize,
    port: &ServicePort,
) -> Result<Option<MonitorSpec>, Failure> {
    let Some(settings) = &sources.settings.health_monitor else { return Ok(None) };
    let (kind, http) = match (http_check_port(sources, port.protocol), port.protocol) {
        (Some(_), _) => (HealthMonitorType::Http, Some(HttpCheck::health_check_node_port())),
        (None, Protocol::Tcp) => chosen(sources, settings)?,
        (None, Protocol::Udp) => (HealthMonitorType::UdpConnect, None),
        (None, Protocol::Sctp) => (HealthMonitorType::Sctp, None),
    };
    if kind == HealthMonitorType::UdpConnect && settings.delay < SHORTEST_UDP_DELAY {
        return Err(Failure::user_input(format!(
            "health-monitor-delay is {}, and Octavia asks for at least {SHORTEST_UDP_DELAY} on the UDP port {}: raise \
             it",
            settings.delay, port.port
        )));
    }
    Ok(Some(MonitorSpec {
        name: sources.names.monitor(index),
        kind,
        attributes: MonitorAttributes {
            delay: settings.delay,
            timeout: settings.timeout,
            max_retries: settings.max_retries,
            max_retries_down: settings.max_retries_down,
            http,
        },
        tags: sources.tags(),
    }))
}

/// The check of a TCP port that the service proxy's health check does not stand for.
fn chosen(
    sources: Sources<'_>,
    settings: &HealthMonitorSettings,
) -> Result<(HealthMonitorType, Option<HttpCheck>), Failure> {
    let Some(check) = &settings.check else { return Ok((HealthMonitorType::Tcp, None)) };
    if check.kind != HealthMonitorType::Tcp && !sources.facts.features.http_monitor {
        return Err(Failure::user_input(format!(
            "annotation {}: {:?} does not exist with the provider ovn: write \"TCP\", or remove it",
            HEALTH_MONITOR_TYPE.key,
            check.kind.to_string()
        )));
    }
    Ok((check.kind.clone(), check.http.clone()))
}

/// What is said where nodes without endpoints get traffic although the Service asks that they do not.
pub(super) fn notice(sources: Sources<'_>) -> Option<Notice> {
    let service = &sources.intent.service;
    let local = service.external_traffic_policy == ExternalTrafficPolicy::Local
        && service.health_check_node_port.is_some();
    (local && sources.settings.health_monitor.is_none()).then(|| {
        let message = format!(
            "externalTrafficPolicy is Local and the load balancer checks no node, so that nodes without an endpoint of the \
             Service get traffic too and drop it: set {} to \"true\", or create-monitor in cloud.conf",
            ENABLE_HEALTH_MONITOR.key
        );
        Notice::warning(LOCAL_WITHOUT_MONITOR, message)
    })
}

/// The port of the service proxy's health check, where members are checked by it: it tells which nodes have
/// endpoints, which matters with `externalTrafficPolicy: Local` only.
pub(super) fn http_check_port(sources: Sources<'_>, transport: Protocol) -> Option<u16> {
    let service = &sources.intent.service;
    let monitor = sources.settings.health_monitor.as_ref();
    // What the user chooses for TCP ports is checked on the node port.
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

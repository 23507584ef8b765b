//! Settings of pools: algorithm, health monitor, and node selector.

use openstack_ccm_core::node_selector::NodeSelector;
use openstack_ccm_core::service::ExternalTrafficPolicy;
use openstack_ccm_openstack_api::octavia::{LbAlgorithm, MonitorAttributes, PoolAttributes};

use super::monitor_check;
use super::monitor_check::MonitorCheck;
use super::node_address::NodeAddressKind;
use super::origin::Origin;
use super::reader::{SettingsReader, Sourced};
use crate::config::CreateMonitor;
use crate::load_balancer::annotations::{
    Annotation, Aspect, ENABLE_HEALTH_MONITOR, Form, HEALTH_MONITOR_DELAY, HEALTH_MONITOR_MAX_RETRIES,
    HEALTH_MONITOR_MAX_RETRIES_DOWN, HEALTH_MONITOR_TIMEOUT, LB_METHOD, NODE_ADDRESS_TYPE, NODE_SELECTOR,
};

/// A health monitor's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthMonitorSettings {
    /// The numbers, without a request.
    pub attributes: MonitorAttributes,
    /// The check of TCP ports. Absent, the type follows from the port and the Service.
    pub check: Option<MonitorCheck>,
}

/// A check may last longer than the delay between checks.
const CHECKS_OVERLAP: &str = "LoadBalancerChecksOverlap";

pub(super) fn attributes(reader: &mut SettingsReader<'_>) -> PoolAttributes {
    let annotated = reader.word(&LB_METHOD).map(|value| LbAlgorithm::from(value.text));
    let lb_algorithm = annotated.unwrap_or_else(|| LbAlgorithm::from(reader.config.lb_method.as_str()));
    PoolAttributes { lb_algorithm, session_persistence: None }
}

/// Returns whether neither the user nor the operator chose the algorithm.
pub(super) fn lb_algorithm_is_default(reader: &SettingsReader<'_>) -> bool {
    reader.annotation(&LB_METHOD).is_none()
        && LbAlgorithm::from(reader.config.lb_method.as_str()) == LbAlgorithm::RoundRobin
}

pub(super) struct Monitor {
    pub(super) enabled: bool,
    /// Whether `enabled` applies to new load balancers only, and an existing one keeps what it has.
    pub(super) only_if_new: bool,
    /// Settings of the monitor, even if it is not enabled.
    pub(super) settings: HealthMonitorSettings,
}

/// Reads the health monitor. An invalid number is replaced by one that Octavia accepts.
pub(super) fn health_monitor(reader: &mut SettingsReader<'_>) -> Monitor {
    let local = reader.service.external_traffic_policy == ExternalTrafficPolicy::Local;
    let configured = match reader.config.create_monitor {
        CreateMonitor::No => false,
        CreateMonitor::Local => local,
        CreateMonitor::All => true,
    };
    let only_if_new = reader.config.create_monitor == CreateMonitor::Local
        && reader.annotation(&ENABLE_HEALTH_MONITOR).is_none();
    let enabled = reader.bool(&ENABLE_HEALTH_MONITOR, configured);
    let why_not = "the pools have no health monitor";
    // If that is not clear, an existing monitor stays with its settings.
    let used = enabled || only_if_new || reader.odd.contains(&Aspect::Monitor);
    let settings = reader.used_if(used, why_not, |reader| monitor_settings(reader, enabled));
    Monitor { enabled, only_if_new, settings }
}

fn monitor_settings(reader: &mut SettingsReader<'_>, enabled: bool) -> HealthMonitorSettings {
    let config = reader.config;
    let mut number = |annotation, configured, substitute| {
        monitor_number(reader, annotation, enabled, configured).unwrap_or(substitute)
    };
    let attributes = MonitorAttributes {
        delay: number(&HEALTH_MONITOR_DELAY, config.monitor_delay_seconds(), 5),
        timeout: number(&HEALTH_MONITOR_TIMEOUT, config.monitor_timeout_seconds(), 3),
        max_retries: number(&HEALTH_MONITOR_MAX_RETRIES, config.monitor_max_retries.into(), 1),
        max_retries_down: number(&HEALTH_MONITOR_MAX_RETRIES_DOWN, config.monitor_max_retries_down.into(), 3),
        http: None,
    };
    let settings = HealthMonitorSettings { attributes, check: monitor_check::check(reader, enabled) };
    let times = [&HEALTH_MONITOR_DELAY, &HEALTH_MONITOR_TIMEOUT];
    let are_read =
        times.iter().all(|one| one.aspects.iter().all(|one| !reader.faults.unreadable().contains(one)));
    if enabled && are_read {
        warn_of_long_timeout(reader, &settings.attributes);
    }
    settings
}

/// Reads a number of the monitor, within the range of the annotation; `None` if it is invalid. Annotations are checked even without
/// a monitor; cloud.conf is not.
fn monitor_number(
    reader: &mut SettingsReader<'_>,
    annotation: &Annotation,
    enabled: bool,
    configured: u64,
) -> Option<u32> {
    if reader.annotation(annotation).is_some() {
        return reader.integer(annotation).and_then(|number| u32::try_from(number).ok());
    }
    let Form::Integer { min, max, .. } = annotation.form else { return None };
    let number = i64::try_from(configured).ok().filter(|number| (min..=max).contains(number));
    if number.is_none() && enabled {
        let (text, origin) = (configured.to_string(), Origin::Config(annotation.default_in_code()));
        let fix = format!("use {min} to {max} in cloud.conf, or set annotation {}", annotation.key);
        let value = Sourced { text: &text, origin, aspects: annotation.aspects };
        reader.reject(&value, "is out of range", fix);
    }
    number.and_then(|number| u32::try_from(number).ok())
}

/// Warns of overlapping checks, which Octavia accepts although its documentation forbids them.
fn warn_of_long_timeout(reader: &mut SettingsReader<'_>, monitor: &MonitorAttributes) {
    let MonitorAttributes { delay, timeout, .. } = *monitor;
    if timeout <= delay {
        return;
    }
    let origin = match reader.annotation(&HEALTH_MONITOR_TIMEOUT) {
        Some(value) => value.origin,
        None => Origin::Config("monitor-timeout"),
    };
    let message = format!(
        "{origin}: {timeout} is longer than the time between two checks, {delay} seconds, so checks overlap; set annotation {} to {delay} \
         or less, or {} to {timeout} or more",
        HEALTH_MONITOR_TIMEOUT.key, HEALTH_MONITOR_DELAY.key
    );
    reader.warn(CHECKS_OVERLAP, message);
}

/// Returns the address type with which a node becomes a member.
pub(super) fn node_address_kind(reader: &mut SettingsReader<'_>) -> Option<NodeAddressKind> {
    let value = reader.word(&NODE_ADDRESS_TYPE)?;
    NodeAddressKind::WORDS.into_iter().find(|(word, _)| *word == value.text).map(|(_, kind)| kind)
}

/// Returns the selector of the nodes that become members.
pub(super) fn node_selector(reader: &mut SettingsReader<'_>) -> NodeSelector {
    let configured = reader.config.node_selector.as_deref();
    let Some(value) = reader.annotation_or_config(&NODE_SELECTOR, "node-selector", configured) else {
        return NodeSelector::default();
    };
    NodeSelector::parse(value.text).unwrap_or_else(|error| {
        let fix = "write key=value or key, separated by commas";
        reader.reject(&value, format!("cannot be read: {error}"), fix);
        NodeSelector::default()
    })
}

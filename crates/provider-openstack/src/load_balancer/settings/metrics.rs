//! Settings of the load balancer's metrics: whether it serves them, on which port, and to which networks.

use std::collections::BTreeSet;

use ipnet::IpNet;
use openstack_ccm_core::service::Protocol;

use super::listener::network;
use super::reader::{SettingsReader, Sourced};
use crate::load_balancer::annotations::{METRICS_ALLOW_CIDRS, METRICS_ENABLE, METRICS_PORT};

/// The default port proposed for OCCM.
const DEFAULT_PORT: u16 = 9100;

/// The listener for the load balancer's metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsSettings {
    pub port: u16,
    /// Networks that may read the metrics. Never empty in valid settings.
    pub allowed: BTreeSet<IpNet>,
}

pub(super) fn metrics(reader: &mut SettingsReader<'_>) -> Option<MetricsSettings> {
    let enabled = reader.bool(&METRICS_ENABLE, false);
    let settings = reader.used_if(enabled, "metrics-enable is not true", settings);
    if !enabled {
        reader.warn_without_effect([&METRICS_PORT, &METRICS_ALLOW_CIDRS], "metrics-enable is not true");
        return None;
    }
    if reader.annotation(&METRICS_ALLOW_CIDRS).is_none() {
        let value = Sourced::of(&METRICS_ENABLE, "true");
        let fix =
            format!("set {} to the networks of your Prometheus, such as 10.0.0.0/8", METRICS_ALLOW_CIDRS.key);
        reader.reject(&value, "does not say which clients are allowed to read the metrics", fix);
    }
    Some(settings)
}

fn settings(reader: &mut SettingsReader<'_>) -> MetricsSettings {
    let port =
        reader.integer(&METRICS_PORT).and_then(|port| u16::try_from(port).ok()).unwrap_or(DEFAULT_PORT);
    let mut tcp = reader.service.ports.iter().filter(|port| port.protocol == Protocol::Tcp);
    if tcp.any(|taken| taken.port == port) {
        let text = port.to_string();
        let value = Sourced::of(&METRICS_PORT, &text);
        reader.reject(&value, "is a port of the Service", "choose another port for the metrics");
    }
    let ranges: Vec<Sourced<'_>> =
        reader.annotation(&METRICS_ALLOW_CIDRS).iter().flat_map(Sourced::items).collect();
    let allowed = ranges.iter().filter_map(|value| network(reader, value)).collect();
    MetricsSettings { port, allowed }
}

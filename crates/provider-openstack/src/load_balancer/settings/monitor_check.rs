//! The health check of TCP ports that the user chose.

use openstack_ccm_openstack_api::octavia::{HealthMonitorType, HttpCheck};

use super::reader::SettingsReader;
use crate::load_balancer::annotations::{
    HEALTH_MONITOR_EXPECTED_CODES, HEALTH_MONITOR_METHOD, HEALTH_MONITOR_PATH, HEALTH_MONITOR_TYPE,
};
use crate::user_tag::MAX_OCTAVIA_LENGTH;

/// The health check of TCP ports that the user chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorCheck {
    /// `health-monitor-type`
    pub kind: HealthMonitorType,
    /// The request, for HTTP and HTTPS.
    pub http: Option<HttpCheck>,
}

/// Maximum length of Octavia's list of status codes, in characters.
const MAX_CODES_LENGTH: usize = 64;

/// Returns the check that the annotations describe; `None` lets the type follow from the port and the Service.
pub(super) fn check(reader: &mut SettingsReader<'_>, enabled: bool) -> Option<MonitorCheck> {
    let kind = reader.word(&HEALTH_MONITOR_TYPE).map(|value| HealthMonitorType::from(value.text));
    let request = HttpCheck {
        path: path(reader).unwrap_or_else(|| "/".to_owned()),
        method: reader
            .word(&HEALTH_MONITOR_METHOD)
            .map_or_else(|| "GET".to_owned(), |value| value.text.to_owned()),
        codes: codes(reader).unwrap_or_else(|| "200".to_owned()),
    };
    let asks = matches!(kind, Some(HealthMonitorType::Http | HealthMonitorType::Https));
    warn(reader, enabled, asks);
    kind.map(|kind| MonitorCheck { kind, http: asks.then_some(request) })
}

/// Warns about annotations without effect.
fn warn(reader: &mut SettingsReader<'_>, enabled: bool, asks: bool) {
    let of_requests = [HEALTH_MONITOR_PATH, HEALTH_MONITOR_METHOD, HEALTH_MONITOR_EXPECTED_CODES];
    if !enabled {
        let why = "the pools have no health monitor; set loadbalancer.openstack.org/enable-health-monitor: \"true\"";
        reader.warn_without_effect(std::iter::once(&HEALTH_MONITOR_TYPE).chain(&of_requests), why);
    } else if !asks {
        reader.warn_without_effect(
            &of_requests,
            "set loadbalancer.openstack.org/health-monitor-type to HTTP or HTTPS",
        );
    }
}

fn path(reader: &mut SettingsReader<'_>) -> Option<String> {
    let value = reader.annotation(&HEALTH_MONITOR_PATH)?;
    let printable = value.text.chars().all(|letter| letter.is_ascii_graphic());
    if !value.text.starts_with('/') || !printable || value.text.len() > MAX_OCTAVIA_LENGTH {
        reader.reject(
            &value,
            "is not a path",
            format!(
                "write a path that begins with /, has no blanks and at most {MAX_OCTAVIA_LENGTH} characters, such as /healthz"
            ),
        );
    }
    Some(value.text.to_owned())
}

fn codes(reader: &mut SettingsReader<'_>) -> Option<String> {
    let value = reader.annotation(&HEALTH_MONITOR_EXPECTED_CODES)?;
    let text: String = value.text.chars().filter(|letter| *letter != ' ').collect();
    let list = text.split(',').all(is_code);
    let range = text.split_once('-').is_some_and(|(from, to)| is_code(from) && is_code(to) && from < to);
    if (!list && !range) || text.len() > MAX_CODES_LENGTH {
        let fix = "write one code such as 200, several such as 200,204, or a range such as 200-299";
        reader.reject(&value, "is not a list of HTTP status codes", fix);
    }
    Some(text)
}

fn is_code(text: &str) -> bool {
    text.len() == 3 && text.parse::<u16>().is_ok_and(|code| (100..=599).contains(&code))
}

//! The notice about settings that the provider ovn ignores, since it only forwards packets.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_openstack_api::octavia::Fields as _;

use super::health_monitor;
use super::sources::Sources;
use super::tls::NOT_SUPPORTED;
use crate::load_balancer::annotations::Annotation;
use crate::load_balancer::settings::{Kind, names_of};

/// Returns the notice about listener limits and SCTP monitors. Source ranges, flavors and zones have their own notices.
pub(super) fn notice(sources: Sources<'_>) -> Option<Notice> {
    let (settings, features) = (sources.settings, sources.facts.features);
    if !features.keeps_client_addresses() {
        return None;
    }
    let limits = settings.limits.values();
    let limits = limits.iter().filter_map(|(name, value)| Some((Annotation::of(Kind::Limit, name)?, value)));
    let set =
        limits.filter(|(annotation, value)| annotation.default_in_code().parse().ok() != value.as_i64());
    let keys: Vec<&str> = set.map(|(annotation, _)| annotation.key).collect();
    let keys = (!keys.is_empty()).then(|| format!("{} without effect", keys.join(", ")));
    let monitored = settings.health_monitor.is_some();
    let unchecked = names_of(&sources.intent.service.ports, |port| {
        monitored && health_monitor::has_no_check(sources, port)
    });
    let unchecked = unchecked.map(|ports| format!("no health monitor for {ports}"));
    let said: Vec<String> = keys.into_iter().chain(unchecked).collect();
    (!said.is_empty()).then(|| {
        let message = format!("provider ovn only forwards packets: {}", said.join("; "));
        Notice::warning(NOT_SUPPORTED, message)
    })
}

//! The TLS attributes that this Octavia supports.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::ServicePort;
use openstack_ccm_openstack_api::octavia::{Fields as _, TlsAttributes};

use super::sources::Sources;
use crate::load_balancer::annotations::{Annotation, Kind};
use crate::load_balancer::objects::Features;

/// The cloud does not support a setting of the Service.
pub(super) const NOT_SUPPORTED: &str = "LoadBalancerSettingNotSupported";

/// Returns the TLS attributes of a port's listener.
pub(super) fn attributes(sources: Sources<'_>, port: &ServicePort) -> TlsAttributes {
    let mut supported = TlsAttributes::default();
    if sources.settings.tls_of(port).is_some() {
        supported.keep(&sources.settings.tls_options.attributes, |name| has(sources.facts.features, name));
    }
    supported
}

fn has(features: Features, name: &str) -> bool {
    TlsAttributes::since(name).is_none_or(|since| features.layer_7 && features.version >= since)
}

/// Returns the warnings about options that this Octavia does not support.
pub(super) fn notices(sources: Sources<'_>) -> Vec<Notice> {
    let features = sources.facts.features;
    let asked = sources.settings.tls_options.attributes.values();
    let notice = |name: &str| {
        let (key, (major, minor)) = (Annotation::of(Kind::Tls, name)?.key, TlsAttributes::since(name)?);
        let lack = features.lack(&format!("{major}.{minor}"));
        Some(Notice::warning(NOT_SUPPORTED, format!("annotation {key} is ignored: {lack}")))
    };
    let lacking = asked.iter().filter(|(name, _)| !has(features, name));
    lacking.filter_map(|(name, _)| notice(name)).collect()
}

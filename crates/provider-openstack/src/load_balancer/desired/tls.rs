//! The TLS attributes that this Octavia supports.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::ServicePort;

use super::sources::Sources;
use crate::load_balancer::annotations::{ALPN_PROTOCOLS, TLS_CIPHERS, TLS_VERSIONS};
use crate::load_balancer::objects::TlsAttributes;

/// The cloud does not support a setting of the Service.
pub(super) const NOT_SUPPORTED: &str = "LoadBalancerSettingNotSupported";

/// Returns the TLS attributes of a port's listener.
pub(super) fn attributes(sources: Sources<'_>, port: &ServicePort) -> TlsAttributes {
    if sources.settings.tls_of(port).is_none() {
        return TlsAttributes::default();
    }
    let (options, features) = (&sources.settings.tls_options, sources.facts.features);
    let references = |containers: &Vec<crate::load_balancer::settings::TlsContainer>| {
        containers.iter().map(|container| container.reference.clone()).collect()
    };
    TlsAttributes {
        sni_container_refs: options.sni.as_ref().map(references),
        versions: options.versions.clone().filter(|_| features.tls_versions),
        ciphers: options.ciphers.clone().filter(|_| features.tls_ciphers),
        alpn_protocols: options.alpn_protocols.clone().filter(|_| features.alpn_protocols),
    }
}

/// Returns the warnings about options that this Octavia does not support.
pub(super) fn notices(sources: Sources<'_>) -> impl Iterator<Item = Notice> {
    let (options, features) = (&sources.settings.tls_options, sources.facts.features);
    let asked = [
        (options.versions.is_some() && !features.tls_versions, TLS_VERSIONS.key, "2.17"),
        (options.ciphers.is_some() && !features.tls_ciphers, TLS_CIPHERS.key, "2.15"),
        (options.alpn_protocols.is_some() && !features.alpn_protocols, ALPN_PROTOCOLS.key, "2.20"),
    ];
    asked.into_iter().filter(|(missing, _, _)| *missing).map(move |(_, key, version)| {
        Notice::warning(NOT_SUPPORTED, format!("annotation {key} is ignored: {}", features.lack(version)))
    })
}

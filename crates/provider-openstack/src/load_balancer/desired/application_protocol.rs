//! Compares `spec.ports[].appProtocol` with the protocol of the load balancer.
//!
//! The field names the protocol of the pods. It sets nothing here, since annotations choose the protocols, and Services carry it
//! for other consumers. But where the load balancer speaks HTTP, the field may show that this cannot work.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::ServicePort;
use openstack_ccm_openstack_api::octavia::PoolProtocol;

use super::sources::Sources;
use crate::load_balancer::settings::Settings;

/// The load balancer speaks another protocol than the pods.
const MISMATCH: &str = "LoadBalancerAppProtocolMismatch";

/// HTTP/2 without TLS, as Kubernetes names it.
const H2C: &str = "kubernetes.io/h2c";
/// Protocols within TLS, as IANA and Kubernetes name them.
const WITHIN_TLS: [&str; 2] = ["https", "kubernetes.io/wss"];

/// Returns the warning about ports whose pods speak another protocol than the load balancer.
pub(super) fn notice(sources: Sources<'_>) -> Option<Notice> {
    let ports = &sources.intent.service.ports;
    let mismatches: Vec<String> = ports.iter().filter_map(|port| mismatch(sources.settings, port)).collect();
    (!mismatches.is_empty()).then(|| Notice::warning(MISMATCH, mismatches.join("; ")))
}

fn mismatch(settings: &Settings, port: &ServicePort) -> Option<String> {
    let says = port.app_protocol.as_deref()?;
    if settings.pool_protocol(port) != PoolProtocol::Http {
        return None;
    }
    let place = format!("port {}/{} has appProtocol {says:?}", port.port, port.protocol);
    if says == H2C {
        Some(format!(
            "{place}, but Octavia speaks HTTP/1.1 to the nodes: move the port to a Service without TLS termination and without inserted \
             headers, so the load balancer passes the stream through unchanged"
        ))
    } else if WITHIN_TLS.contains(&says) && settings.tls_of(port).is_none() {
        let keys: Vec<&str> =
            settings.inserted_headers(port).iter().map(|header| header.annotation().key).collect();
        Some(format!(
            "{place}, but with {} the load balancer expects plain HTTP on this port, so TLS connections fail: move the port to a Service \
             without this annotation",
            keys.join(" and ")
        ))
    } else {
        None
    }
}

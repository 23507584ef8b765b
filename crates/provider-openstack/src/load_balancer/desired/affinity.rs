//! Converts `spec.sessionAffinity` to session persistence.

use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{Protocol, ServicePort, SessionAffinity};
use openstack_ccm_openstack_api::octavia::{SessionPersistence, SessionPersistenceType};

use super::sources::Sources;
use crate::load_balancer::settings::{WITHOUT_EFFECT, names_of};

/// Default of Kubernetes, in seconds.
const DEFAULT_TIMEOUT: u32 = 10_800;

/// Returns the session persistence of a port's pool. Octavia accepts a timeout for UDP and SCTP only, and refuses it on other
/// pools.
pub(super) fn persistence(affinity: SessionAffinity, port: &ServicePort) -> Option<SessionPersistence> {
    match affinity {
        SessionAffinity::None => None,
        SessionAffinity::ClientIp { timeout_seconds } => Some(SessionPersistence {
            kind: SessionPersistenceType::SourceIp,
            persistence_timeout: timeout_seconds.filter(|_| port.protocol != Protocol::Tcp),
        }),
    }
}

/// Returns the warning about a timeout that the user chose and some ports cannot have.
pub(super) fn notice(sources: Sources<'_>) -> Option<Notice> {
    let service = &sources.intent.service;
    let SessionAffinity::ClientIp { timeout_seconds: Some(timeout) } = service.session_affinity else {
        return None;
    };
    let without = names_of(&service.ports, |port| port.protocol == Protocol::Tcp)?;
    (timeout != DEFAULT_TIMEOUT).then(|| {
        let message = format!(
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds is {timeout} and has no effect on {without}: Octavia supports a \
             timeout only for UDP and SCTP, and TCP clients keep their node until the load balancer's session table is full; remove \
             the field"
        );
        Notice::warning(WITHOUT_EFFECT, message)
    })
}

//! The annotation and the default of each limit of a listener.

use openstack_ccm_openstack_api::octavia::ListenerLimit;

use crate::load_balancer::annotations::{
    Annotation, CONNECTION_LIMIT, TIMEOUT_CLIENT_DATA, TIMEOUT_MEMBER_CONNECT, TIMEOUT_MEMBER_DATA,
    TIMEOUT_TCP_INSPECT,
};

/// Returns the annotation, and Octavia's default.
pub(crate) fn source(limit: ListenerLimit) -> (&'static Annotation, i64) {
    match limit {
        ListenerLimit::Connections => (&CONNECTION_LIMIT, -1),
        ListenerLimit::ClientData => (&TIMEOUT_CLIENT_DATA, 50_000),
        ListenerLimit::MemberConnect => (&TIMEOUT_MEMBER_CONNECT, 5_000),
        ListenerLimit::MemberData => (&TIMEOUT_MEMBER_DATA, 50_000),
        ListenerLimit::TcpInspect => (&TIMEOUT_TCP_INSPECT, 0),
    }
}

//! What Octavia refuses.

use openstack_ccm_openstack_api::octavia::{ListenerProtocol, PoolProtocol};

/// The pairs that Octavia allows.
pub(super) fn fits(listener: &ListenerProtocol, pool: &PoolProtocol) -> bool {
    use PoolProtocol::{Http, Https, Proxy, ProxyV2, Sctp, Tcp, Udp};
    match listener {
        ListenerProtocol::Tcp => matches!(pool, Tcp | Http | Https | Proxy | ProxyV2),
        ListenerProtocol::Http | ListenerProtocol::TerminatedHttps => matches!(pool, Http | Proxy | ProxyV2),
        ListenerProtocol::Https => matches!(pool, Https | Tcp | Proxy | ProxyV2),
        ListenerProtocol::Udp => *pool == Udp,
        ListenerProtocol::Sctp => *pool == Sctp,
        ListenerProtocol::Prometheus | ListenerProtocol::Other(_) => false,
    }
}

//! What the settings mean for single ports. What needs a TCP stream stays on TCP ports; a UDP or SCTP port beside
//! them stays what it is.

use openstack_ccm_core::advertise::{Needs, Path};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{Protocol, ServicePort};
use openstack_ccm_openstack_api::octavia::{ListenerProtocol, PoolProtocol};

use super::listener::TlsContainer;
use super::proxy_protocol::ProxyVersion;
use super::{CurrentPort, Settings};
use crate::load_balancer::annotations::{DEFAULT_TLS_CONTAINER_REF, PROXY_PROTOCOL, X_FORWARDED_FOR};

impl Settings {
    /// Protocol of the listener of a port.
    pub fn listener_protocol(&self, port: &ServicePort) -> ListenerProtocol {
        match port.protocol {
            Protocol::Tcp if self.tls_of(port).is_some() => ListenerProtocol::TerminatedHttps,
            Protocol::Tcp if self.inserts_x_forwarded_for(port) => ListenerProtocol::Http,
            Protocol::Tcp => ListenerProtocol::Tcp,
            Protocol::Udp => ListenerProtocol::Udp,
            Protocol::Sctp => ListenerProtocol::Sctp,
        }
    }

    /// Protocol of the pool of a port.
    pub fn pool_protocol(&self, port: &ServicePort) -> PoolProtocol {
        match (port.protocol, self.proxy_version(port)) {
            (Protocol::Tcp, Some(ProxyVersion::V1)) => PoolProtocol::Proxy,
            (Protocol::Tcp, Some(ProxyVersion::V2)) => PoolProtocol::ProxyV2,
            (Protocol::Tcp, None) if self.tls_of(port).is_some() || self.inserts_x_forwarded_for(port) => {
                PoolProtocol::Http
            }
            (Protocol::Tcp, None) => PoolProtocol::Tcp,
            (Protocol::Udp, _) => PoolProtocol::Udp,
            (Protocol::Sctp, _) => PoolProtocol::Sctp,
        }
    }

    /// The version of the PROXY protocol that the members of a port get.
    pub fn proxy_version(&self, port: &ServicePort) -> Option<ProxyVersion> {
        if port.protocol != Protocol::Tcp {
            return None;
        }
        let wanted = || self.proxy_ports.get(&port.port).copied().or(self.proxy_protocol);
        self.kept(port).and_then(|kept| kept.proxy).unwrap_or_else(wanted)
    }

    /// The certificate of the listener of a port.
    pub fn tls_of(&self, port: &ServicePort) -> Option<&TlsContainer> {
        if port.protocol != Protocol::Tcp {
            return None;
        }
        self.kept(port).and_then(|kept| kept.tls.as_ref()).map_or(self.tls.as_ref(), Option::as_ref)
    }

    /// Whether the listener of a port inserts `X-Forwarded-For`.
    pub fn inserts_x_forwarded_for(&self, port: &ServicePort) -> bool {
        let kept = self.kept(port).and_then(|kept| kept.x_forwarded_for);
        let wanted = kept.unwrap_or(self.x_forwarded_for);
        wanted && port.protocol == Protocol::Tcp && self.proxy_version(port).is_none()
    }

    fn kept(&self, port: &ServicePort) -> Option<&CurrentPort> {
        self.current_ports.get(&port.port)
    }

    /// Whether clients inside the cluster must go through the load balancer, and for what. One port that needs it
    /// decides for all: an address has one mode.
    pub fn path(&self, ports: &[ServicePort]) -> Path {
        if !ports.iter().any(|port| port.protocol == Protocol::Tcp) {
            return Path::Direct;
        }
        if ports.iter().any(|port| self.proxy_version(port).is_some()) {
            Path::ThroughLoadBalancer(Needs::ProxyProtocol)
        } else if ports.iter().any(|port| self.tls_of(port).is_some()) {
            Path::ThroughLoadBalancer(Needs::TlsTermination)
        } else if ports.iter().any(|port| self.inserts_x_forwarded_for(port)) {
            Path::ThroughLoadBalancer(Needs::HeaderInsertion)
        } else {
            Path::Direct
        }
    }

    /// What is said about settings that some ports, or all, cannot follow.
    pub(super) fn port_notices(&self, ports: &[ServicePort]) -> Vec<Notice> {
        let others: Vec<String> = ports
            .iter()
            .filter(|port| port.protocol != Protocol::Tcp)
            .map(|port| format!("{}/{}", port.port, port.protocol))
            .collect();
        if others.is_empty() {
            return Vec::new();
        }
        let asked = [
            (self.proxy_protocol.is_some(), PROXY_PROTOCOL.key),
            (self.x_forwarded_for, X_FORWARDED_FOR.key),
            (self.tls.is_some(), DEFAULT_TLS_CONTAINER_REF.key),
        ];
        let all = others.len() == ports.len();
        let notice = |key| {
            let message = format!("{key} works with TCP ports only: {} stays as it is", others.join(", "));
            if all { Notice::warning(WITHOUT_EFFECT, message) } else { Notice::normal(TCP_ONLY, message) }
        };
        asked.into_iter().filter(|(asked, _)| *asked).map(|(_, key)| notice(key)).collect()
    }
}

const TCP_ONLY: &str = "LoadBalancerTcpPortsOnly";
/// Something that is asked for does nothing.
pub(crate) const WITHOUT_EFFECT: &str = "LoadBalancerSettingWithoutEffect";

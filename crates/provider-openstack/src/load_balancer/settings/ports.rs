//! What the settings mean for single ports. What needs a TCP stream stays on TCP ports; a UDP or SCTP port beside
//! them stays what it is.

use std::collections::BTreeSet;

use openstack_ccm_core::advertise::{Needs, Path};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{Protocol, ServicePort};
use openstack_ccm_openstack_api::octavia::{ListenerProtocol, PoolProtocol};

use super::listener::TlsContainer;
use super::proxy_protocol::ProxyVersion;
use super::reader::WITHOUT_EFFECT;
use super::{CurrentPort, Settings};
use crate::load_balancer::annotations::{DEFAULT_TLS_CONTAINER_REF, PROXY_PROTOCOL};
use crate::load_balancer::objects::header::InsertedHeader;

impl Settings {
    pub fn listener_protocol(&self, port: &ServicePort) -> ListenerProtocol {
        match port.protocol {
            Protocol::Tcp if self.tls_of(port).is_some() => ListenerProtocol::TerminatedHttps,
            Protocol::Tcp if !self.inserted_headers(port).is_empty() => ListenerProtocol::Http,
            Protocol::Tcp => ListenerProtocol::Tcp,
            Protocol::Udp => ListenerProtocol::Udp,
            Protocol::Sctp => ListenerProtocol::Sctp,
        }
    }

    pub fn pool_protocol(&self, port: &ServicePort) -> PoolProtocol {
        match (port.protocol, self.proxy_version(port)) {
            (Protocol::Tcp, Some(ProxyVersion::V1)) => PoolProtocol::Proxy,
            (Protocol::Tcp, Some(ProxyVersion::V2)) => PoolProtocol::ProxyV2,
            (Protocol::Tcp, None) => match self.listener_protocol(port) {
                ListenerProtocol::Http | ListenerProtocol::TerminatedHttps => PoolProtocol::Http,
                _ => PoolProtocol::Tcp,
            },
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

    /// The headers that the listener of a port inserts.
    pub fn inserted_headers(&self, port: &ServicePort) -> BTreeSet<InsertedHeader> {
        let proxy = self.proxy_version(port).is_some();
        let is_inserted = |header: &InsertedHeader| {
            let kept = self.kept(port).and_then(|kept| kept.headers.get(header).copied());
            kept.unwrap_or_else(|| self.headers.contains(header)) && (header.goes_with_proxy() || !proxy)
        };
        let headers = InsertedHeader::ALL.into_iter().filter(|_| port.protocol == Protocol::Tcp);
        headers.filter(is_inserted).collect()
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
        } else if ports.iter().any(|port| !self.inserted_headers(port).is_empty()) {
            Path::ThroughLoadBalancer(Needs::HeaderInsertion)
        } else {
            Path::Direct
        }
    }

    /// What is said about settings that some ports, or all, cannot follow.
    pub(super) fn port_notices(&self, ports: &[ServicePort]) -> Vec<Notice> {
        let Some(others) = names_of(ports, |port| port.protocol != Protocol::Tcp) else { return Vec::new() };
        let proxy = self.proxy_protocol.map(|_| PROXY_PROTOCOL.key);
        let headers = self.headers.iter().map(|header| header.annotation().key);
        let asked =
            proxy.into_iter().chain(headers).chain(self.tls.iter().map(|_| DEFAULT_TLS_CONTAINER_REF.key));
        let all = ports.iter().all(|port| port.protocol != Protocol::Tcp);
        let notice = |key| {
            let message = format!("{key} applies to TCP ports only and has no effect on {others}");
            if all { Notice::warning(WITHOUT_EFFECT, message) } else { Notice::normal(TCP_ONLY, message) }
        };
        asked.map(notice).collect()
    }
}

/// The ports for which something holds, as messages name them; absent where it holds for none.
pub(crate) fn names_of(ports: &[ServicePort], holds: impl Fn(&ServicePort) -> bool) -> Option<String> {
    let names =
        ports.iter().filter(|port| holds(port)).map(|port| format!("{}/{}", port.port, port.protocol));
    Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
}

const TCP_ONLY: &str = "LoadBalancerTcpPortsOnly";

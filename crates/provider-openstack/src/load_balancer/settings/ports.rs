//! The effect of the settings on single ports. Settings that need a TCP stream apply to TCP ports; they do not change UDP and SCTP
//! ports of the same Service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use openstack_ccm_core::advertise::{Needs, Path};
use openstack_ccm_core::notice::Notice;
use openstack_ccm_core::service::{Protocol, ServicePort};
use openstack_ccm_openstack_api::octavia::{ListenerProtocol, PoolProtocol};

use super::listener::{SourceRanges, TlsContainer};
use super::node_address::family_of;
use super::proxy_protocol::ProxyVersion;
use super::reader::WITHOUT_EFFECT;
use super::{CurrentPort, Settings};
use crate::load_balancer::annotations::{DEFAULT_TLS_CONTAINER_REF, InsertedHeader, PROXY_PROTOCOL};

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

    /// Returns the PROXY protocol version that the members of a port receive.
    pub fn proxy_version(&self, port: &ServicePort) -> Option<ProxyVersion> {
        if port.protocol != Protocol::Tcp {
            return None;
        }
        let wanted = || self.proxy_ports.get(&port.port).copied().or(self.proxy_protocol);
        self.kept(port).and_then(|kept| kept.proxy).unwrap_or_else(wanted)
    }

    /// Returns the certificate of a port's listener.
    pub fn tls_of(&self, port: &ServicePort) -> Option<&TlsContainer> {
        if port.protocol != Protocol::Tcp {
            return None;
        }
        self.kept(port).and_then(|kept| kept.tls.as_ref()).map_or(self.tls.as_ref(), Option::as_ref)
    }

    /// Returns the headers that a port's listener inserts.
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

    /// Returns whether clients inside the cluster must use the load balancer, and why. One port that requires it decides for all,
    /// since an address has one mode.
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

    /// Returns the same for a cluster with these addresses of nodes. Nodes that short-circuit an address apply the source ranges, so
    /// only the load balancer can let in a cluster that they lack.
    pub fn path_in(&self, nodes: impl IntoIterator<Item = IpAddr>, ports: &[ServicePort]) -> Path {
        let SourceRanges { networks, requested } = &self.source_ranges;
        let is_shut_out = |node: IpAddr| {
            let mut ranges =
                networks.iter().filter(|range| family_of(range.addr()) == family_of(node)).peekable();
            ranges.peek().is_some() && !ranges.any(|range| range.contains(&node))
        };
        match self.path(ports) {
            Path::Direct
                if self.allow_cluster_sources && *requested && nodes.into_iter().any(is_shut_out) =>
            {
                Path::ThroughLoadBalancer(Needs::ClusterSources)
            }
            path => path,
        }
    }

    /// Returns the notices about settings that have no effect on some or all ports.
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

/// Lists the matching ports for messages; `None` if no port matches.
pub(crate) fn names_of(ports: &[ServicePort], holds: impl Fn(&ServicePort) -> bool) -> Option<String> {
    let names =
        ports.iter().filter(|port| holds(port)).map(|port| format!("{}/{}", port.port, port.protocol));
    Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
}

const TCP_ONLY: &str = "LoadBalancerTcpPortsOnly";

//! The decision how to publish an address, with its reason.

use std::fmt;

use k8s_openapi::api::core::v1::LoadBalancerIngress;
use openstack_ccm_core::advertise::Needs;

use crate::cluster::Obstacle;
use crate::entry::{PROXY, VIP};

/// How an address is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Addresses with `ipMode: Proxy`.
    Proxy,
    /// Addresses that nodes may short-circuit.
    Vip,
    Hostname,
}

impl Mode {
    /// Stable label value for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Vip => "vip",
            Self::Hostname => "hostname",
        }
    }

    /// Returns how a status is published, whoever wrote it. `None` if it is empty, or has entries that this program never writes.
    pub fn of(published: &[LoadBalancerIngress]) -> Option<Self> {
        let one = |entry: &LoadBalancerIngress| match (&entry.ip, &entry.hostname, entry.ip_mode.as_deref()) {
            (Some(_), None, None | Some(VIP)) => Some(Self::Vip),
            (Some(_), None, Some(PROXY)) => Some(Self::Proxy),
            (None, Some(_), None) => Some(Self::Hostname),
            _ => None,
        };
        let first = one(published.first()?)?;
        published.iter().all(|entry| one(entry) == Some(first)).then_some(first)
    }
}

/// The reason for a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The Service's hostname annotation.
    HostnameAnnotation,
    /// The operator enabled hostnames for PROXY load balancers.
    IngressHostnameEnabled,
    /// The load balancer adds nothing to the traffic.
    DirectPath,
    /// Traffic has to pass the load balancer, and the cluster honours the mode.
    PathNeedsLoadBalancer(Needs),
    /// The Service or the operator asked for `proxy`.
    ProxyRequested,
    /// The Service or the operator asked for `vip`.
    VipRequested,
    /// `Proxy` is needed but would have no effect; a hostname is published instead.
    FallbackToHostname(Obstacle),
    /// `Proxy` is needed but would have no effect, and there is no hostname: pods are short-circuited, on all nodes or on
    /// those that ignore the mode.
    NoFallback(Obstacle),
    /// `Proxy` is needed, but would send the cluster's pods to a load balancer whose source ranges reject them; the address was
    /// published without `Proxy` so far.
    SourceRangesLackCluster,
    /// `Proxy` was requested but would have no effect, and the path does not need it.
    ProxyNotPossible(Obstacle),
}

impl Reason {
    /// Stable label value for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::HostnameAnnotation => "hostname_annotation",
            Self::IngressHostnameEnabled => "ingress_hostname_enabled",
            Self::DirectPath => "direct_path",
            Self::PathNeedsLoadBalancer(Needs::ProxyProtocol) => "proxy_protocol",
            Self::PathNeedsLoadBalancer(Needs::TlsTermination) => "tls_termination",
            Self::PathNeedsLoadBalancer(Needs::HeaderInsertion) => "header_insertion",
            Self::PathNeedsLoadBalancer(Needs::ClusterSources) => "cluster_sources",
            Self::PathNeedsLoadBalancer(Needs::SharedAddress) => "shared_address",
            Self::ProxyRequested => "proxy_requested",
            Self::VipRequested => "vip_requested",
            Self::SourceRangesLackCluster => "source_ranges_lack_cluster",
            Self::FallbackToHostname(obstacle)
            | Self::NoFallback(obstacle)
            | Self::ProxyNotPossible(obstacle) => obstacle.as_str(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostnameAnnotation => f.write_str("the Service sets a hostname"),
            Self::IngressHostnameEnabled => f.write_str(
                "the operator's configuration publishes PROXY protocol load balancers by hostname",
            ),
            Self::DirectPath => f.write_str("the load balancer adds nothing to the traffic"),
            Self::PathNeedsLoadBalancer(needs) => needs.fmt(f),
            Self::ProxyRequested => f.write_str("ip-mode asks for proxy"),
            Self::VipRequested => f.write_str("ip-mode asks for vip"),
            Self::SourceRangesLackCluster => f.write_str(
                "the source ranges do not allow the cluster's own pods to connect through the load balancer",
            ),
            Self::FallbackToHostname(obstacle)
            | Self::NoFallback(obstacle)
            | Self::ProxyNotPossible(obstacle) => obstacle.fmt(f),
        }
    }
}

/// The decision: what the status is to say, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Advertisement {
    /// The wanted `status.loadBalancer.ingress`.
    pub entries: Vec<LoadBalancerIngress>,
    /// The mode of these entries.
    pub mode: Mode,
    /// The reason for the mode.
    pub reason: Reason,
    /// Set if nodes bypass a load balancer that the traffic has to pass; names the cause and the remedies.
    pub warning: Option<String>,
    /// Set if the load balancer rejects the cluster's own pods, or would; names the networks and the remedies.
    pub shut_out: Option<String>,
    /// Set if `vip` was requested although traffic has to pass the load balancer; says what happens to pods and how to send
    /// them through it.
    pub bypassed: Option<String>,
}

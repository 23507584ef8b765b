//! The decision how to publish an address, with its reason.

use std::fmt;

use k8s_openapi::api::core::v1::LoadBalancerIngress;
use openstack_ccm_core::advertise::Needs;

use crate::cluster::Obstacle;
use crate::entry::{PROXY, VIP};

/// What is published.
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

    /// How a status is published, by whoever wrote it. `None` where it is empty, or says what this program never writes.
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

/// Why it is published so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The Service's hostname annotation.
    HostnameAnnotation,
    /// The operator enabled hostnames for PROXY load balancers.
    IngressHostnameEnabled,
    /// The load balancer adds nothing.
    DirectPath,
    /// The load balancer is part of the protocol, and the cluster honours the mode.
    PathNeedsLoadBalancer(Needs),
    /// The Service or the operator asked for `proxy`.
    ProxyRequested,
    /// The Service or the operator asked for `vip`.
    VipRequested,
    /// `Proxy` is needed, cannot have its effect, and a hostname takes its place.
    FallbackToHostname(Obstacle),
    /// `Proxy` is needed, cannot have its effect, and there is no hostname: pods are short-circuited, on all nodes or on
    /// those that ignore the mode.
    NoFallback(Obstacle),
    /// `Proxy` is needed and would lead the cluster's pods to a load balancer whose source ranges turn them away; it was
    /// published without so far.
    SourceRangesLackCluster,
    /// `Proxy` was asked for and cannot have its effect, and the path does not need it.
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
    /// What kind of entries these are.
    pub mode: Mode,
    /// Why.
    pub reason: Reason,
    /// Set where nodes bypass the load balancer against what is needed; names the cause and the ways out.
    pub warning: Option<String>,
    /// Set where the load balancer turns the cluster's own pods away, or would; names the networks and the ways out.
    pub shut_out: Option<String>,
    /// Set where somebody asked for `vip` although the load balancer is part of the protocol; says what pods get and how
    /// to lead them through it.
    pub bypassed: Option<String>,
}

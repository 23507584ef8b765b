//! How the address of a load balancer is published on this cluster.
//!
//! A provider says what the way to the application needs ([`Path`]); the cluster says what it can do
//! ([`capability::Cluster`]); user and operator say what they prefer ([`Preference`]). [`decide`] turns the three into
//! the entries of `status.loadBalancer.ingress`, with the reason.
//!
//! Where `ipMode: Proxy` (KEP-1860) is needed and cannot have its effect, a hostname is published instead: service
//! proxies never short-circuit hostnames, in any version.

use std::fmt;
use std::net::IpAddr;

pub mod capability;
pub mod data_plane;
pub mod entry;
pub mod hostname;
pub mod shared;

use capability::{Cluster, Obstacle, ServerSupport};
use entry::{IngressEntry, IpMode};

/// Whether clients inside the cluster may reach the application without the load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// The load balancer adds nothing; a node may short-circuit.
    Direct,
    /// The load balancer is part of the protocol.
    ThroughLoadBalancer(Needs),
}

/// What the load balancer adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Needs {
    /// The PROXY protocol header.
    ProxyProtocol,
    /// The end of TLS.
    TlsTermination,
    /// HTTP headers such as X-Forwarded-For.
    HeaderInsertion,
    /// Nothing for this Service, but another one on the same address needs it.
    SharedAddress,
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProxyProtocol => "the load balancer adds the PROXY protocol header",
            Self::TlsTermination => "the load balancer terminates TLS",
            Self::HeaderInsertion => "the load balancer inserts HTTP headers",
            Self::SharedAddress => "another Service on the same address needs the load balancer",
        })
    }
}

/// What a user or an operator may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum IpModeChoice {
    /// Decide by the path.
    #[default]
    Auto,
    /// Clients inside the cluster go through the load balancer.
    Proxy,
    /// Nodes may short-circuit.
    Vip,
}

impl IpModeChoice {
    /// The values of the annotation and of the configuration key.
    pub const VALUES: [&'static str; 3] = ["auto", "proxy", "vip"];

    /// Reads `auto`, `proxy` or `vip`, in any case.
    pub fn parse(value: &str) -> Option<Self> {
        match value.to_ascii_lowercase().as_str() {
            "auto" => Some(Self::Auto),
            "proxy" => Some(Self::Proxy),
            "vip" => Some(Self::Vip),
            _ => None,
        }
    }
}

/// What user and operator prefer for one Service. Hostnames in here are valid ([`hostname::validate`]).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Preference {
    /// The Service's own choice. Where it is present, a hostname is only used when the choice cannot be honoured.
    pub service_mode: Option<IpModeChoice>,
    /// The operator's choice for all Services.
    pub cluster_mode: IpModeChoice,
    /// The Service's hostname annotation. Without `service_mode` it is always published, alone.
    pub hostname: Option<String>,
    /// `enable-ingress-hostname`: PROXY load balancers are always published by a hostname under `hostname_suffix`.
    pub always_hostname: bool,
    /// The suffix under which names of addresses resolve, if the operator configured or enabled one.
    pub hostname_suffix: Option<String>,
}

/// What is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Addresses with `ipMode: Proxy`.
    Proxy,
    /// Addresses that nodes may short-circuit.
    Vip,
    /// A hostname.
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
    /// `Proxy` is needed, cannot have its effect, and there is no hostname: pods are short-circuited.
    NoFallback(Obstacle),
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
            Self::FallbackToHostname(obstacle)
            | Self::NoFallback(obstacle)
            | Self::ProxyNotPossible(obstacle) => obstacle.as_str(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostnameAnnotation => f.write_str("the Service names a hostname"),
            Self::IngressHostnameEnabled => f.write_str("enable-ingress-hostname is set in cloud.conf"),
            Self::DirectPath => f.write_str("the load balancer adds nothing to the traffic"),
            Self::PathNeedsLoadBalancer(needs) => needs.fmt(f),
            Self::ProxyRequested => f.write_str("ip-mode asks for proxy"),
            Self::VipRequested => f.write_str("ip-mode asks for vip"),
            Self::FallbackToHostname(obstacle)
            | Self::NoFallback(obstacle)
            | Self::ProxyNotPossible(obstacle) => obstacle.fmt(f),
        }
    }
}

/// The decision: what the status is to say, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// The wanted `status.loadBalancer.ingress`.
    pub entries: Vec<IngressEntry>,
    /// What kind of entries these are.
    pub mode: Mode,
    /// Why.
    pub reason: Reason,
    /// Set where the user should act; names the cause and the ways out.
    pub warning: Option<String>,
}

/// Decides how to publish `addresses`.
pub fn decide(addresses: &[IpAddr], path: Path, preference: &Preference, cluster: &Cluster) -> Advertisement {
    if preference.service_mode.is_none() {
        if let Some(hostname) = &preference.hostname {
            return hostname_only(hostname, Reason::HostnameAnnotation);
        }
        if preference.always_hostname
            && path == Path::ThroughLoadBalancer(Needs::ProxyProtocol)
            && let Some(suffix) = &preference.hostname_suffix
        {
            return by_suffix(addresses, suffix, Reason::IngressHostnameEnabled);
        }
    }
    match (preference.service_mode.unwrap_or(preference.cluster_mode), path) {
        (IpModeChoice::Vip, _) => vip(addresses, cluster, Reason::VipRequested),
        // This Service works without: where the mode cannot have its effect there is nothing to fall back from.
        (IpModeChoice::Auto, Path::ThroughLoadBalancer(Needs::SharedAddress))
            if cluster.obstacle().is_some() =>
        {
            vip(addresses, cluster, Reason::DirectPath)
        }
        (IpModeChoice::Auto, Path::Direct) => vip(addresses, cluster, Reason::DirectPath),
        (IpModeChoice::Auto, Path::ThroughLoadBalancer(needs)) => {
            proxy(addresses, path, preference, cluster, Reason::PathNeedsLoadBalancer(needs))
        }
        (IpModeChoice::Proxy, _) => proxy(addresses, path, preference, cluster, Reason::ProxyRequested),
    }
}

/// `Proxy` is wanted: publish it where it has its effect, the next best elsewhere.
fn proxy(
    addresses: &[IpAddr],
    path: Path,
    preference: &Preference,
    cluster: &Cluster,
    reason: Reason,
) -> Advertisement {
    // The Service's own word is taken over the judgement of the nodes, which may be wrong; not over the server's.
    let insisted = preference.service_mode == Some(IpModeChoice::Proxy);
    let obstacle = if insisted { cluster.server_obstacle() } else { cluster.obstacle() };
    let Some(obstacle) = obstacle else {
        let warning = cluster
            .obstacle()
            .map(|obstacle| format!("ipMode Proxy is published as the Service asks, but {obstacle}; pods there may bypass the load balancer"));
        let entries = addresses.iter().map(|ip| IngressEntry::address(*ip, Some(IpMode::Proxy))).collect();
        return Advertisement { entries, mode: Mode::Proxy, reason, warning };
    };
    match path {
        Path::Direct => {
            let warning = insisted.then(|| format!("ipMode Proxy cannot be published: {obstacle}"));
            Advertisement { warning, ..vip(addresses, cluster, Reason::ProxyNotPossible(obstacle)) }
        }
        Path::ThroughLoadBalancer(needs) => fall_back(addresses, needs, preference, cluster, obstacle),
    }
}

fn fall_back(
    addresses: &[IpAddr],
    needs: Needs,
    preference: &Preference,
    cluster: &Cluster,
    obstacle: Obstacle,
) -> Advertisement {
    if let Some(hostname) = &preference.hostname {
        return hostname_only(hostname, Reason::FallbackToHostname(obstacle));
    }
    if let Some(suffix) = &preference.hostname_suffix {
        return by_suffix(addresses, suffix, Reason::FallbackToHostname(obstacle));
    }
    let warning = format!(
        "pods in this cluster may not reach the load balancer, because nodes bypass it although {needs}: {obstacle}. \
         Upgrade the cluster to Kubernetes 1.30 or newer on every node, or publish a hostname: set the annotation \
         loadbalancer.openstack.org/hostname on the Service, or ingress-hostname-suffix in cloud.conf"
    );
    Advertisement { warning: Some(warning), ..vip(addresses, cluster, Reason::NoFallback(obstacle)) }
}

fn vip(addresses: &[IpAddr], cluster: &Cluster, reason: Reason) -> Advertisement {
    // The mode is spelled out only where it is kept, so that what is written and what is read agree.
    let keeps = cluster.server == ServerSupport::Keeps;
    let entries =
        addresses.iter().map(|ip| IngressEntry::address(*ip, keeps.then_some(IpMode::Vip))).collect();
    Advertisement { entries, mode: Mode::Vip, reason, warning: None }
}

fn hostname_only(hostname: &str, reason: Reason) -> Advertisement {
    Advertisement {
        entries: vec![IngressEntry::hostname(hostname)],
        mode: Mode::Hostname,
        reason,
        warning: None,
    }
}

fn by_suffix(addresses: &[IpAddr], suffix: &str, reason: Reason) -> Advertisement {
    let entries = addresses
        .iter()
        .map(|address| IngressEntry::hostname(hostname::for_address(*address, suffix)))
        .collect();
    Advertisement { entries, mode: Mode::Hostname, reason, warning: None }
}

//! How the address of a load balancer is published on this cluster.
//!
//! A provider says what the way to the application needs ([`Path`]); the cluster says what it can do
//! ([`capability::Cluster`]); user and operator say what they prefer ([`Preference`]). [`decide`] turns the three into
//! the entries of `status.loadBalancer.ingress`, with the reason.
//!
//! Where `ipMode: Proxy` (KEP-1860) is needed and cannot have its effect, a hostname is published instead: service
//! proxies never short-circuit hostnames, in any version. Where there is none and the API server keeps the mode, `Proxy` is
//! published all the same: a node that ignores it loses nothing by it, and every other one needs it.

use std::fmt;
use std::net::IpAddr;

pub mod access;
pub mod capability;
pub mod data_plane;
pub mod entry;
pub mod hostname;
pub mod shared;

use access::{ClusterAccess, is_by_vip};
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
    /// What the Service asks for cannot be read: what is published for its address stays.
    pub keep_published: bool,
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

    /// How a status is published, by whoever wrote it. `None` where it is empty, or says what this program never writes.
    pub fn of(published: &[IngressEntry]) -> Option<Self> {
        let one = |entry: &IngressEntry| match (&entry.ip, &entry.hostname, &entry.ip_mode) {
            (Some(_), None, None | Some(IpMode::Vip)) => Some(Self::Vip),
            (Some(_), None, Some(IpMode::Proxy)) => Some(Self::Proxy),
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
            Self::HostnameAnnotation => f.write_str("the Service names a hostname"),
            Self::IngressHostnameEnabled => f.write_str("enable-ingress-hostname is set in cloud.conf"),
            Self::DirectPath => f.write_str("the load balancer adds nothing to the traffic"),
            Self::PathNeedsLoadBalancer(needs) => needs.fmt(f),
            Self::ProxyRequested => f.write_str("ip-mode asks for proxy"),
            Self::VipRequested => f.write_str("ip-mode asks for vip"),
            Self::SourceRangesLackCluster => {
                f.write_str("the source ranges would turn the cluster's own pods away at the load balancer")
            }
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
    /// Set where nodes bypass the load balancer against what is needed; names the cause and the ways out.
    pub warning: Option<String>,
    /// Set where the load balancer turns the cluster's own pods away, or would; names the networks and the ways out.
    pub shut_out: Option<String>,
    /// Set where somebody asked for `vip` although the load balancer is part of the protocol; says what pods get and how
    /// to lead them through it.
    pub bypassed: Option<String>,
}

/// What there is to publish for one Service.
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// The addresses of the load balancer.
    pub addresses: &'a [IpAddr],
    /// What the way to the application needs.
    pub path: Path,
    /// What user and operator prefer.
    pub preference: &'a Preference,
    /// Whether the load balancer lets the cluster's own pods in.
    pub access: &'a ClusterAccess,
    /// What the status says so far, by whoever published it.
    pub published: &'a [IngressEntry],
}

impl Publication<'_> {
    fn choice(&self) -> IpModeChoice {
        self.preference.service_mode.unwrap_or(self.preference.cluster_mode)
    }

    /// Whether the address stays published for the short circuit, although the path needs the load balancer: pods that
    /// reach the application now would be turned away. Not with the PROXY protocol, where the short circuit fails anyway,
    /// and not where somebody asked for a mode.
    fn keeps_vip(&self) -> bool {
        let works_without = matches!(
            self.path,
            Path::ThroughLoadBalancer(Needs::TlsTermination | Needs::HeaderInsertion | Needs::SharedAddress)
        );
        works_without
            && *self.access != ClusterAccess::Open
            && self.choice() == IpModeChoice::Auto
            && is_by_vip(self.published)
    }

    /// Whether the addresses must lead through the load balancer, also for other Services on them.
    pub fn needs_load_balancer(&self) -> bool {
        shared::needs_load_balancer(self.path, self.preference) && !self.keeps_vip()
    }
}

/// Decides how to publish the addresses of a load balancer.
pub fn decide(publication: &Publication<'_>, cluster: &Cluster) -> Advertisement {
    let Publication { addresses, path, preference, .. } = *publication;
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
    match (publication.choice(), path) {
        (IpModeChoice::Vip, _) => Advertisement {
            bypassed: bypassed(path, preference),
            ..vip(addresses, cluster, Reason::VipRequested)
        },
        (IpModeChoice::Auto, Path::Direct) => vip(addresses, cluster, Reason::DirectPath),
        (IpModeChoice::Auto, Path::ThroughLoadBalancer(_)) if publication.keeps_vip() => {
            let shut_out = publication.access.remedy().map(|remedy| {
                format!("the address stays published without ipMode Proxy, as it was, because {remedy}")
            });
            Advertisement { shut_out, ..vip(addresses, cluster, Reason::SourceRangesLackCluster) }
        }
        // This Service works without: where the server drops the mode there is nothing to fall back from. Nodes that
        // ignore it do no harm.
        (IpModeChoice::Auto, Path::ThroughLoadBalancer(needs @ Needs::SharedAddress)) => {
            match cluster.server_obstacle() {
                Some(_) => vip(addresses, cluster, Reason::DirectPath),
                None => by_proxy(publication, Reason::PathNeedsLoadBalancer(needs)),
            }
        }
        (IpModeChoice::Auto, Path::ThroughLoadBalancer(needs)) => {
            proxy(publication, cluster, Reason::PathNeedsLoadBalancer(needs))
        }
        (IpModeChoice::Proxy, _) => proxy(publication, cluster, Reason::ProxyRequested),
    }
}

/// `Proxy` is wanted: publish it where it has its effect, the next best elsewhere.
fn proxy(publication: &Publication<'_>, cluster: &Cluster, reason: Reason) -> Advertisement {
    // Who asks for the mode is believed over the judgement of the nodes, which may be wrong; not over the server's.
    let asked = reason == Reason::ProxyRequested;
    let obstacle = if asked { cluster.server_obstacle() } else { cluster.obstacle() };
    let Some(obstacle) = obstacle else {
        let warning = cluster.obstacle().map(|obstacle| {
            format!(
                "ipMode Proxy is published as ip-mode asks, but {obstacle}; pods there may bypass the load balancer"
            )
        });
        return Advertisement { warning, ..by_proxy(publication, reason) };
    };
    match publication.path {
        Path::Direct => {
            let insisted = publication.preference.service_mode == Some(IpModeChoice::Proxy);
            let warning = insisted.then(|| format!("ipMode Proxy cannot be published: {obstacle}"));
            let addresses = publication.addresses;
            Advertisement { warning, ..vip(addresses, cluster, Reason::ProxyNotPossible(obstacle)) }
        }
        Path::ThroughLoadBalancer(needs) => fall_back(publication, needs, cluster, obstacle),
    }
}

fn fall_back(
    publication: &Publication<'_>,
    needs: Needs,
    cluster: &Cluster,
    obstacle: Obstacle,
) -> Advertisement {
    let Publication { addresses, preference, .. } = *publication;
    let shut_out = shut_out(publication);
    if let Some(hostname) = &preference.hostname {
        return Advertisement { shut_out, ..hostname_only(hostname, Reason::FallbackToHostname(obstacle)) };
    }
    if let Some(suffix) = &preference.hostname_suffix {
        return Advertisement {
            shut_out,
            ..by_suffix(addresses, suffix, Reason::FallbackToHostname(obstacle))
        };
    }
    let warning = Some(format!(
        "pods in this cluster may not reach the load balancer, because nodes bypass it although {needs}: {obstacle}. \
         Upgrade the cluster to Kubernetes 1.30 or newer on every node, or publish a hostname: set the annotation \
         loadbalancer.openstack.org/hostname on the Service, or ingress-hostname-suffix in cloud.conf"
    ));
    if cluster.server_obstacle().is_none() {
        return Advertisement { warning, ..by_proxy(publication, Reason::NoFallback(obstacle)) };
    }
    Advertisement { warning, ..vip(addresses, cluster, Reason::NoFallback(obstacle)) }
}

fn by_proxy(publication: &Publication<'_>, reason: Reason) -> Advertisement {
    let proxied = |ip: &IpAddr| IngressEntry::address(*ip, Some(IpMode::Proxy));
    Advertisement {
        entries: publication.addresses.iter().map(proxied).collect(),
        mode: Mode::Proxy,
        reason,
        warning: None,
        shut_out: shut_out(publication),
        bypassed: None,
    }
}

/// What is said where the cluster's pods are led to the load balancer.
fn shut_out(publication: &Publication<'_>) -> Option<String> {
    let remedy = publication.access.remedy()?;
    Some(format!("the load balancer turns the cluster's own pods away, because {remedy}"))
}

/// What is said where `vip` was asked for against what the path needs.
fn bypassed(path: Path, preference: &Preference) -> Option<String> {
    let Path::ThroughLoadBalancer(needs) = path else { return None };
    let effect = match needs {
        Needs::ProxyProtocol => {
            "they send no PROXY protocol header, so an application that expects it closes their connections (nginx logs \
             `broken header`)"
        }
        Needs::TlsTermination => "nothing ends their TLS, so their requests over TLS fail",
        Needs::HeaderInsertion => {
            "their requests arrive without the HTTP headers that the load balancer inserts"
        }
        // What another Service needs is said there.
        Needs::SharedAddress => return None,
    };
    let remedy = if preference.service_mode.is_some() {
        "Remove the annotation loadbalancer.openstack.org/ip-mode, or replace it by the annotation \
         loadbalancer.openstack.org/hostname,"
    } else {
        "Set the annotation loadbalancer.openstack.org/ip-mode: auto or loadbalancer.openstack.org/hostname on the Service, \
         or remove ip-mode from cloud.conf,"
    };
    Some(format!(
        "ip-mode asks for vip, so pods in this cluster bypass the load balancer: {effect}. {remedy} if pods use this address"
    ))
}

fn vip(addresses: &[IpAddr], cluster: &Cluster, reason: Reason) -> Advertisement {
    // The mode is spelled out only where it is kept, so that what is written and what is read agree.
    let keeps = cluster.server == ServerSupport::Keeps;
    let entries =
        addresses.iter().map(|ip| IngressEntry::address(*ip, keeps.then_some(IpMode::Vip))).collect();
    Advertisement { entries, mode: Mode::Vip, reason, warning: None, shut_out: None, bypassed: None }
}

fn hostname_only(hostname: &str, reason: Reason) -> Advertisement {
    let entries = vec![IngressEntry::hostname(hostname)];
    Advertisement { entries, mode: Mode::Hostname, reason, warning: None, shut_out: None, bypassed: None }
}

fn by_suffix(addresses: &[IpAddr], suffix: &str, reason: Reason) -> Advertisement {
    let entries = addresses
        .iter()
        .map(|address| IngressEntry::hostname(hostname::for_address(*address, suffix)))
        .collect();
    Advertisement { entries, mode: Mode::Hostname, reason, warning: None, shut_out: None, bypassed: None }
}

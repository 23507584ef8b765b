//! How clients may reach an application, as the provider says, and what user and operator prefer.
//!
//! How the address is published follows from both and from what the cluster supports; another crate decides that. Nothing
//! here depends on a cluster.

pub mod hostname;

use std::fmt;

/// Whether clients inside the cluster may reach the application without the load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// The load balancer adds nothing to the traffic; nodes may short-circuit it.
    Direct,
    /// The load balancer adds something that the application needs.
    ThroughLoadBalancer(Needs),
}

/// What the load balancer adds to the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Needs {
    /// The PROXY protocol header.
    ProxyProtocol,
    /// TLS termination.
    TlsTermination,
    /// HTTP headers such as X-Forwarded-For.
    HeaderInsertion,
    /// Nothing, but it lets in clients inside the cluster, which nodes that apply the source ranges do not.
    ClusterSources,
    /// Nothing for this Service, but another Service on the same address needs the load balancer.
    SharedAddress,
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProxyProtocol => "the load balancer adds the PROXY protocol header",
            Self::TlsTermination => "the load balancer terminates TLS",
            Self::HeaderInsertion => "the load balancer inserts HTTP headers",
            Self::ClusterSources => {
                "nodes apply the source ranges, which lack the cluster, and only the load balancer lets the cluster in"
            }
            Self::SharedAddress => {
                "another Service on the same address requires traffic to pass the load balancer"
            }
        })
    }
}

/// The `ipMode` that a user or an operator may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum IpModeChoice {
    /// The mode follows from the [`Path`].
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
    /// The mode that the Service chooses. If present, a hostname is published only when this mode cannot be honoured.
    pub service_mode: Option<IpModeChoice>,
    /// The operator's choice for all Services.
    pub cluster_mode: IpModeChoice,
    /// The Service's hostname annotation. Without `service_mode`, always the only entry published.
    pub hostname: Option<String>,
    /// `enable-ingress-hostname`: PROXY load balancers are always published by a hostname under `hostname_suffix`.
    pub always_hostname: bool,
    /// The suffix under which names of addresses resolve, if the operator configured or enabled one.
    pub hostname_suffix: Option<String>,
    /// Keep what is published for the address, because the Service's settings cannot be parsed.
    pub keep_published: bool,
}

/// Whether the load balancer's source ranges admit clients inside the cluster.
///
/// With `ipMode: Proxy` or a hostname, such clients connect through the load balancer, so its source ranges apply to them. A
/// status must not cut off pods that reached the Service by the short circuit before.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ClusterAccess {
    /// There are no source ranges, or they hold all addresses from which the cluster connects.
    #[default]
    Open,
    /// The source ranges lack these networks (CIDRs), from which the cluster connects. Never empty.
    Without(Vec<String>),
    /// There are source ranges, but it is unknown from where the cluster connects; the text says why.
    Unknown(String),
}

/// Names of the settings, for messages that say what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingNames {
    /// Annotation of a Service that chooses the mode: `auto`, `proxy` or `vip`.
    pub ip_mode_annotation: &'static str,
    /// Annotation of a Service that names the hostname to publish.
    pub hostname_annotation: &'static str,
    /// Annotation of a Service that, set to `true`, adds the cluster's own addresses to the source ranges; absent if the provider
    /// has none.
    pub cluster_sources_annotation: Option<&'static str>,
    /// The operator's setting for the mode and where it is written, in words that follow `remove`.
    pub ip_mode_setting: &'static str,
    /// The operator's setting for the hostname suffix and where it is written, in words that follow `set`.
    pub hostname_suffix_setting: &'static str,
}

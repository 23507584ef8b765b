//! What a provider says about the way to an application, and what user and operator prefer.
//!
//! How the address is published follows from it and from what the cluster honours; that is decided elsewhere. Nothing here
//! depends on a cluster.

pub mod hostname;

use std::fmt;

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
            Self::SharedAddress => {
                "another Service on the same address requires traffic to pass the load balancer"
            }
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

/// Whether clients inside the cluster get through the load balancer's source ranges.
///
/// With `ipMode: Proxy`, and with a hostname, they come to it as every other client does, so source ranges hold for them
/// too. A Service whose pods reached it by the short circuit must not lose that to a status that is written for their good.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ClusterAccess {
    /// There are no source ranges, or they hold all addresses from which the cluster connects.
    #[default]
    Open,
    /// The source ranges lack these networks (CIDRs), from which the cluster connects. Never empty.
    Without(Vec<String>),
    /// There are source ranges, and from where the cluster connects could not be found out; the text says why.
    Unknown(String),
}

/// The names of the settings, for texts that say what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingNames {
    /// Annotation of a Service that chooses the mode: `auto`, `proxy` or `vip`.
    pub ip_mode_annotation: &'static str,
    /// Annotation of a Service that names the hostname to publish.
    pub hostname_annotation: &'static str,
    /// Annotation of a Service that, set to `true`, adds the cluster's own addresses to the source ranges; absent where there
    /// is none.
    pub cluster_sources_annotation: Option<&'static str>,
    /// The operator's choice of the mode and where it is written, in words that follow `remove`.
    pub ip_mode_setting: &'static str,
    /// The operator's suffix for hostnames and where it is written, in words that follow `set`.
    pub hostname_suffix_setting: &'static str,
}

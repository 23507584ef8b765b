//! The sections of cloud.conf, and the tables of their keys.
//!
//! The tables are the only places that name keys: parsing, suggestions for unknown keys and the reference page use them.

mod global;
mod key;
mod load_balancer;
mod small;

pub use global::{Global, LoginKind};
pub(super) use global::{endpoint, parse_endpoint_type};
pub use key::{Field, Key, Parsed};
pub use load_balancer::{CreateMonitor, DEFAULT_INGRESS_HOSTNAME_SUFFIX, ErrorRecovery, LoadBalancer};
pub use small::{ANY_NAMESPACE, LoadBalancerClass, LoadBalancerNamespace, Metadata, Networking, Route};

use std::fmt;

/// A known section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SectionName {
    /// Login and endpoints.
    Global,
    LoadBalancer,
    /// A named set of networks and subnets for load balancers.
    LoadBalancerClass,
    /// What the Services of a namespace may refer to.
    LoadBalancerNamespace,
    /// Addresses of nodes.
    Networking,
    /// Routes of pod networks.
    Route,
    /// Timeout of calls.
    Metadata,
    /// Volumes; not used by this controller.
    BlockStorage,
}

impl SectionName {
    /// All sections, in the order of the reference page.
    pub const ALL: [Self; 8] = [
        Self::Global,
        Self::LoadBalancer,
        Self::LoadBalancerClass,
        Self::LoadBalancerNamespace,
        Self::Networking,
        Self::Route,
        Self::Metadata,
        Self::BlockStorage,
    ];

    /// Returns the name as the documentation spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Global => "Global",
            Self::LoadBalancer => "LoadBalancer",
            Self::LoadBalancerClass => "LoadBalancerClass",
            Self::LoadBalancerNamespace => "LoadBalancerNamespace",
            Self::Networking => "Networking",
            Self::Route => "Route",
            Self::Metadata => "Metadata",
            Self::BlockStorage => "BlockStorage",
        }
    }

    /// Returns the section with this name; case is ignored.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.as_str().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for SectionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

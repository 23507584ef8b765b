//! The services that are simulated and where each answers.

use std::fmt;

/// An OpenStack service, named by its type in the service catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Keystone.
    Identity,
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Octavia.
    LoadBalancer,
    /// Barbican.
    KeyManager,
}

impl Service {
    /// All services, in the order of the catalog.
    pub const ALL: [Self; 5] =
        [Self::LoadBalancer, Self::Network, Self::KeyManager, Self::Identity, Self::Compute];

    /// The service with this catalog type (`identity`, `compute`, `network`, `load-balancer`, `key-manager`).
    pub fn from_catalog_type(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.catalog_type() == name)
    }

    /// The type in the service catalog; also the path prefix on the simulator's TCP port.
    pub fn catalog_type(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute => "compute",
            Self::Network => "network",
            Self::LoadBalancer => "load-balancer",
            Self::KeyManager => "key-manager",
        }
    }

    /// The project that implements the service, as the catalog names it.
    pub fn project_name(self) -> &'static str {
        match self {
            Self::Identity => "keystone",
            Self::Compute => "nova",
            Self::Network => "neutron",
            Self::LoadBalancer => "octavia",
            Self::KeyManager => "barbican",
        }
    }

    /// What the catalog's URL has after the service root: the version where a deployment usually puts it there.
    pub(crate) fn catalog_suffix(self) -> &'static str {
        match self {
            Self::Identity => "/v3",
            Self::Compute => "/v2.1",
            Self::Network | Self::LoadBalancer | Self::KeyManager => "",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.catalog_type())
    }
}

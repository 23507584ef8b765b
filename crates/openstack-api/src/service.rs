//! The services of a cloud.

use std::fmt;

/// A service in the catalog that this crate uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Octavia.
    LoadBalancer,
    /// Barbican.
    KeyManager,
    /// Keystone.
    Identity,
}

impl Service {
    /// All services.
    pub const ALL: [Self; 5] =
        [Self::Compute, Self::Network, Self::LoadBalancer, Self::KeyManager, Self::Identity];

    /// Returns the service type in the Keystone catalog.
    pub const fn catalog_type(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Network => "network",
            Self::LoadBalancer => "load-balancer",
            Self::KeyManager => "key-manager",
            Self::Identity => "identity",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.catalog_type())
    }
}

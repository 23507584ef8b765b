//! All services of one cloud together.

use crate::barbican::Barbican;
use crate::client::Client;
use crate::neutron::Neutron;
use crate::nova::Nova;
use crate::octavia::Octavia;

/// The services of one cloud. Clones share everything.
#[derive(Clone, Debug)]
pub struct OpenStack {
    /// Load balancers. A cloud without Octavia answers every call with [`crate::ErrorKind::NoEndpoint`].
    pub octavia: Octavia,
    /// Networks. A cloud without Neutron answers every call with [`crate::ErrorKind::NoEndpoint`].
    pub neutron: Neutron,
    /// Servers; `None` when the catalog has no Nova.
    pub nova: Option<Nova>,
    /// Certificates; `None` when the catalog has no Barbican.
    pub barbican: Option<Barbican>,
    /// What the services have in common.
    pub client: Client,
}

impl OpenStack {
    /// All services over `client`, as if the catalog listed them all.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            octavia: Octavia::new(client.clone()),
            neutron: Neutron::new(client.clone()),
            nova: Some(Nova::new(client.clone())),
            barbican: Some(Barbican::new(client.clone())),
            client,
        }
    }
}

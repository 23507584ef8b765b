//! The services of one cloud.

use std::sync::Arc;

use jiff::Timestamp;
use openstack_ccm_core::permit::Gate;

use crate::barbican::Barbican;
use crate::client::{Client, ClientSettings};
use crate::identity::{AuthError, AuthOptions, Keystone};
use crate::neutron::Neutron;
use crate::nova::Nova;
use crate::octavia::Octavia;
use crate::session_transport::SessionTransport;
use crate::transport::{Service, Transport};

/// The services of one cloud. Clones share all state.
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
    /// The client that the services share.
    pub client: Client,
    /// The services with an endpoint in the wanted region.
    pub services: Vec<Service>,
    /// The project of the login, if it has one.
    pub project_id: Option<String>,
    /// The regions with endpoints in the catalog, in alphabetical order.
    pub regions: Vec<String>,
    keystone: Option<Keystone>,
}

impl OpenStack {
    /// Creates all services over `client`, as if the catalog listed them all.
    pub fn new(client: Client) -> Self {
        Self::with_services(client, Service::ALL.to_vec(), None, Vec::new())
    }

    fn with_services(
        client: Client,
        services: Vec<Service>,
        project_id: Option<String>,
        regions: Vec<String>,
    ) -> Self {
        let has = |service: Service| services.contains(&service);
        Self {
            octavia: Octavia::new(client.clone()),
            neutron: Neutron::new(client.clone()),
            nova: has(Service::Compute).then(|| Nova::new(client.clone())),
            barbican: has(Service::KeyManager).then(|| Barbican::new(client.clone())),
            client,
            services,
            project_id,
            regions,
            keystone: None,
        }
    }

    /// Returns the same services, with each write passing `gate`.
    #[must_use]
    pub fn behind(&self, gate: &Gate) -> Self {
        let client = self.client.behind(gate);
        Self {
            octavia: Octavia::new(client.clone()),
            neutron: Neutron::new(client.clone()),
            nova: self.nova.as_ref().map(|_| Nova::new(client.clone())),
            barbican: self.barbican.as_ref().map(|_| Barbican::new(client.clone())),
            client,
            ..self.clone()
        }
    }

    /// Returns since when Keystone refuses the login; absent where it does not.
    pub fn log_in_refused_since(&self) -> Option<Timestamp> {
        self.keystone.as_ref()?.refused_since()
    }

    /// Returns whether the catalog has an endpoint of the service.
    pub fn has(&self, service: Service) -> bool {
        self.services.contains(&service)
    }
}

/// Logs in and reads from the catalog which services exist.
///
/// # Errors
/// The options are invalid, or Keystone does not return a token.
pub async fn connect(options: &AuthOptions, settings: ClientSettings) -> Result<OpenStack, Arc<AuthError>> {
    connect_through(options, settings, |transport, _| transport).await
}

/// As `connect`, but with a transport in between: `between` gets the transport to the cloud and the project of the login, and
/// returns the transport for the calls.
///
/// # Errors
/// As for [`connect`].
pub async fn connect_through(
    options: &AuthOptions,
    settings: ClientSettings,
    between: impl FnOnce(Arc<dyn Transport>, Option<&str>) -> Arc<dyn Transport>,
) -> Result<OpenStack, Arc<AuthError>> {
    let transport = SessionTransport::connect(options).await?;
    let token = transport.keystone().token().await?;
    let listed = |service: &Service| {
        let listed =
            token.catalog.endpoint(service.catalog_type(), options.interface, options.region.as_deref());
        options.endpoints.contains_key(service) || listed.is_some()
    };
    let services = Service::ALL.into_iter().filter(listed).collect();
    let project_id = token.project_id.clone();
    let regions = token.catalog.regions();
    let keystone = Some(transport.keystone().clone());
    let transport = between(Arc::new(transport), project_id.as_deref());
    let client = Client::new(transport, settings);
    Ok(OpenStack { keystone, ..OpenStack::with_services(client, services, project_id, regions) })
}

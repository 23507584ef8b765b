//! Connections to the API server, whose name is resolved by the same resolver as OpenStack's.

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use openstack_ccm_dns::Resolver;
use tower::{BoxError, ServiceBuilder};

/// Whether connections are kept after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connections {
    /// Kept for other requests.
    Kept,
    /// Closed; each request opens a new one.
    New,
}

/// Creates a client with kube's own stack and another resolver. Behind a proxy, which resolves names, it is kube's client.
///
/// # Errors
/// Certificates or tokens that cannot be used.
pub(super) fn client(config: Config, connections: Connections) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let mut connector = HttpConnector::new_with_resolver(Resolver::default());
    connector.enforce_http(false);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let mut http = HttpClient::builder(TokioExecutor::new());
    if connections == Connections::New {
        http.pool_max_idle_per_host(0);
    }
    let http: HttpClient<_, Body> = http.build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

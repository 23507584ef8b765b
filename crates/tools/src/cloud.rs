//! The cloud as a person asks it: no answer is waited for longer than `--request-timeout`, and a long wait is told.

use std::sync::Arc;

use async_trait::async_trait;
use openstack_ccm_core::failure::Failure;
use openstack_ccm_manager::args::PersonArgs;
use openstack_ccm_manager::waiting::told;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::transport::{Request, Response, Transport, TransportError};
use openstack_ccm_provider_openstack::cloud::OpenStackProvider;

/// Logs in; `between` receives the transport to the cloud, and the project of the login.
///
/// # Errors
/// The cloud cannot be used.
pub(crate) async fn log_in(
    provider: &OpenStackProvider,
    person: &PersonArgs,
    between: impl FnOnce(Arc<dyn Transport>, Option<&str>) -> Arc<dyn Transport>,
) -> Result<OpenStack, Failure> {
    let provider = provider.clone().with_request_timeout(person.patience());
    let keystone =
        format!("Keystone at {}", provider.config().global.auth_url.as_deref().unwrap_or_default());
    let telling = |transport, project: Option<&str>| between(Arc::new(Telling(transport)), project);
    told(keystone, provider.log_in_through(telling)).await
}

/// Passes requests on, and tells who is waited for.
#[derive(Debug)]
struct Telling(Arc<dyn Transport>);

#[async_trait]
impl Transport for Telling {
    async fn send(&self, request: Request) -> Result<Response, TransportError> {
        let whom = format!("the {} service of the cloud", request.service);
        told(whom, self.0.send(request)).await
    }
}

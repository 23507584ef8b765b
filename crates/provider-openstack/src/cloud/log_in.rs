//! Logging in to the cloud.

use std::error::Error as _;
use std::sync::Arc;

use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_openstack_api::client::ClientSettings;
use openstack_ccm_openstack_api::identity::{AuthError, AuthOptions};
use openstack_ccm_openstack_api::transport::Transport;
use openstack_ccm_openstack_api::{ErrorKind, OpenStack, connect_through};

/// Keystone has one answer for everything that may be wrong.
const WRONG_LOGIN: &str = "; Keystone does not say what is wrong: check in [Global] of cloud.conf the user, the password, \
                           the project and their domains, or the application credential";

/// Logs in, with something between the calls and the cloud.
///
/// # Errors
/// It does not work; the message has the whole cause.
pub(super) async fn log_in(
    login: &AuthOptions,
    settings: ClientSettings,
    between: impl FnOnce(Arc<dyn Transport>, Option<&str>) -> Arc<dyn Transport>,
) -> Result<OpenStack, Failure> {
    connect_through(login, settings, between).await.map_err(|error| explained(&error))
}

/// The error is shared between all who wait for one log-in, so its chain is written out here.
fn explained(error: &AuthError) -> Failure {
    let mut message = format!("OpenStack cannot be used yet: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    match error.kind() {
        ErrorKind::Unauthorized => Failure::new(FailureClass::Auth, message + WRONG_LOGIN),
        _ => Failure::new(FailureClass::Unavailable, message),
    }
}

//! Logging in to the cloud.

use std::sync::Arc;

use openstack_ccm_openstack_api::client::ClientSettings;
use openstack_ccm_openstack_api::identity::AuthOptions;
use openstack_ccm_openstack_api::transport::Transport;
use openstack_ccm_openstack_api::{ErrorKind, OpenStack};

/// Keystone has one answer for everything that may be wrong.
const WRONG_LOGIN: &str = "; Keystone does not say what is wrong: check in [Global] of cloud.conf the user, the password, \
                           the project and their domains, or the application credential";

/// Logs in.
///
/// # Errors
/// It does not work; the message has the whole cause.
pub(crate) async fn connect(login: &AuthOptions, settings: ClientSettings) -> anyhow::Result<OpenStack> {
    connect_through(login, settings, |transport, _| transport).await
}

/// The same, with something between the calls and the cloud.
///
/// # Errors
/// As for [`connect`].
pub(crate) async fn connect_through(
    login: &AuthOptions,
    settings: ClientSettings,
    between: impl FnOnce(Arc<dyn Transport>, Option<&str>) -> Arc<dyn Transport>,
) -> anyhow::Result<OpenStack> {
    // The error is shared between all who wait for one log-in, so its chain is written out here.
    openstack_ccm_openstack_api::connect_through(login, settings, between).await.map_err(|error| {
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&*error);
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        if error.kind() == ErrorKind::Unauthorized {
            message.push_str(WRONG_LOGIN);
        }
        anyhow::anyhow!("OpenStack cannot be used yet: {message}")
    })
}

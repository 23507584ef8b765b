//! OpenStack with its configuration read.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use openstack_ccm_core::cloud::{CallObserver, Cloud, Entry, LogIn, Part, Provider};
use openstack_ccm_core::failure::Failure;
use openstack_ccm_openstack_api::client::{CallObserver as ApiCallObserver, ClientSettings};
use openstack_ccm_openstack_api::identity::AuthOptions;
use openstack_ccm_openstack_api::transport::Transport;
use openstack_ccm_openstack_api::{ErrorKind, OpenStack};

use super::OpenStackCloud;
use super::log_in::log_in;
use crate::config::{self, Config, ConfigErrors, Loaded, ProcessEnvironment};
use crate::instances::is_regional;

/// OpenStack among the providers of a binary. The metrics are spelled as the Go implementation spells them.
pub const ENTRY: Entry = Entry {
    name: "openstack",
    call_metric_prefix: "openstack_api",
    load: |files| Ok(Box::new(OpenStackProvider::load(files)?)),
};

/// OpenStack as cloud.conf describes it.
#[derive(Clone, Debug)]
pub struct OpenStackProvider {
    config: Arc<Config>,
    login: AuthOptions,
    regional_provider_ids: bool,
}

impl OpenStackProvider {
    /// Reads the configuration and logs its warnings.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn load(files: &[PathBuf]) -> Result<Self, ConfigErrors> {
        let loaded = config::load(files, &ProcessEnvironment);
        let warnings = match &loaded {
            Ok(loaded) => &loaded.warnings,
            Err(errors) => &errors.warnings,
        };
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        loaded.map(Self::from)
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Logs in with something between the calls and the cloud: `between` gets the way to the cloud and the project that the log-in
    /// is for.
    ///
    /// # Errors
    /// The cloud cannot be used yet; the message has the whole cause.
    pub async fn log_in_through(
        &self,
        between: impl FnOnce(Arc<dyn Transport>, Option<&str>) -> Arc<dyn Transport>,
    ) -> Result<OpenStack, Failure> {
        log_in(&self.login, ClientSettings::default(), between).await
    }

    /// The cloud for the controllers.
    #[must_use]
    pub fn cloud(&self, openstack: OpenStack) -> OpenStackCloud {
        OpenStackCloud::new(openstack, Arc::clone(&self.config), &self.login, self.regional_provider_ids)
    }
}

impl From<Loaded> for OpenStackProvider {
    fn from(loaded: Loaded) -> Self {
        let Loaded { config, auth_options, warnings: _ } = loaded;
        let regional_provider_ids = is_regional(&ProcessEnvironment);
        Self { config: Arc::new(config), login: auth_options, regional_provider_ids }
    }
}

#[async_trait]
impl Provider for OpenStackProvider {
    fn left_out(&self, part: Part) -> Option<String> {
        let setting = match part {
            Part::LoadBalancers if !self.config.load_balancer.enabled => {
                "enabled=false in [LoadBalancer] of cloud.conf"
            }
            Part::Routes if self.config.route.router_id.is_none() => {
                "router-id in [Route] of cloud.conf is not set"
            }
            Part::LoadBalancers | Part::Routes | Part::Instances => return None,
        };
        Some(setting.to_owned())
    }

    async fn log_in(&self, request: LogIn) -> Result<Arc<dyn Cloud>, Failure> {
        let LogIn { observer, user_agent } = request;
        let settings = ClientSettings { observer: Arc::new(Calls(observer)), ..ClientSettings::default() };
        let login = AuthOptions { user_agent, ..self.login.clone() };
        let openstack = log_in(&login, settings, |transport, _| transport).await?;
        Ok(Arc::new(self.cloud(openstack)))
    }
}

/// Tells the binary of calls.
struct Calls(Arc<dyn CallObserver>);

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Calls").finish_non_exhaustive()
    }
}

impl ApiCallObserver for Calls {
    fn observe(&self, call: &'static str, duration: Duration, outcome: Result<(), ErrorKind>) {
        self.0.observe(call, duration, outcome.is_ok());
    }
}

//! OpenStack as a provider of the binary: configuration, login, and what controllers use.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use openstack_ccm_core::cloud::{Cloud, ClusterIdentity, Entry, LoadBalancing, LoginRequest, Part, Provider};
use openstack_ccm_core::failure::{Failure, FailureClass};
use openstack_ccm_core::instance::Instances;
use openstack_ccm_core::permit::Gate;
use openstack_ccm_core::provider::Wake;
use openstack_ccm_core::route::Routes;
use openstack_ccm_openstack_api::client::ClientSettings;
use openstack_ccm_openstack_api::identity::{AuthError, AuthOptions, Reload};
use openstack_ccm_openstack_api::transport::{Service, Transport};
use openstack_ccm_openstack_api::{ErrorKind, OpenStack, connect_through};
use tokio_util::sync::CancellationToken;

use crate::config::{self, Config, ConfigErrors, Environment, Loaded, ProcessEnvironment};
use crate::instances::{OpenStackInstances, is_regional};
use crate::load_balancer::failure::chain;
use crate::load_balancer::{OpenStackLoadBalancers, annotations};
use crate::routes::OpenStackRoutes;

/// The entry of OpenStack among the providers of a binary. Metrics are spelled as in the Go implementation.
pub const ENTRY: Entry = Entry {
    name: "openstack",
    call_metric_prefix: "openstack_api",
    load: |files| Ok(Box::new(OpenStackProvider::load(files)?)),
};

/// OpenStack as configured in cloud.conf.
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
    /// All errors of the configuration.
    pub fn load(files: &[PathBuf]) -> Result<Self, ConfigErrors> {
        let loaded = config::load(files, &ProcessEnvironment);
        let files = files.to_vec();
        let reload = Reload::new(move || {
            let loaded = config::load(&files, &ProcessEnvironment);
            loaded.map(|loaded| loaded.auth_options).map_err(|errors| errors.to_string())
        });
        let (Ok(Loaded { warnings, .. }) | Err(ConfigErrors { warnings, .. })) = &loaded;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let mut provider = loaded.map(Self::from)?;
        provider.login.reload = Some(reload);
        Ok(provider)
    }

    /// The same, whose requests wait for so long.
    #[must_use]
    pub fn with_request_timeout(mut self, timeout: Duration) -> Self {
        self.login.request_timeout = timeout;
        self
    }

    /// Reads the configuration where no file of it is on this machine, and logs its warnings.
    ///
    /// # Errors
    /// All errors of the configuration.
    pub fn load_in_memory(files: &[PathBuf], environment: &dyn Environment) -> Result<Self, InMemoryError> {
        let loaded = config::load(files, environment)?;
        loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let mut provider = Self::from(loaded);
        provider.regional_provider_ids = is_regional(environment);
        let tls = &mut provider.login.tls;
        let of_client = tls.client_certificate.iter_mut();
        let of_client = of_client.flat_map(|client| [&mut client.certificate_file, &mut client.key_file]);
        for file in tls.ca_file.iter_mut().chain(of_client) {
            let content = environment.read(&file.path)?;
            file.content = Some(String::from_utf8_lossy(&content).into_owned().into());
        }
        Ok(provider)
    }

    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Logs in with an additional transport: `between` receives the transport to the cloud and the project of the login.
    ///
    /// # Errors
    /// The cloud cannot be used yet; the message contains the whole cause.
    pub async fn log_in_through(
        &self,
        between: impl FnOnce(Arc<dyn Transport>, Option<&str>) -> Arc<dyn Transport>,
    ) -> Result<OpenStack, Failure> {
        let connected = connect_through(&self.login, self.client_settings(), between).await;
        connected.map_err(|error| explained(&error))
    }

    fn client_settings(&self) -> ClientSettings {
        let default = ClientSettings::default();
        let lacking_for = self.drift_check_interval().unwrap_or(default.lacking_for);
        let octavia_api_version = self.config.load_balancer.octavia_api_version;
        ClientSettings { octavia_api_version, lacking_for, ..default }
    }

    fn drift_check_interval(&self) -> Option<Duration> {
        Some(self.config.load_balancer.drift_check_interval).filter(|interval| !interval.is_zero())
    }

    /// Returns the cloud for the controllers.
    #[must_use]
    pub fn cloud(&self, openstack: OpenStack) -> OpenStackCloud {
        OpenStackCloud { openstack, provider: self.clone() }
    }
}

impl From<Loaded> for OpenStackProvider {
    fn from(loaded: Loaded) -> Self {
        let Loaded { config, auth_options, warnings: _ } = loaded;
        let regional_provider_ids = is_regional(&ProcessEnvironment);
        Self { config: Arc::new(config), login: auth_options, regional_provider_ids }
    }
}

/// Why a configuration cannot be used that is on no disk.
#[derive(Debug, thiserror::Error)]
pub enum InMemoryError {
    /// It is not valid.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// A file that it names cannot be read.
    #[error("a file that [Global] of cloud.conf names: {0}")]
    File(#[from] std::io::Error),
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

    fn location(&self) -> Option<String> {
        self.config.global.region.clone().filter(|region| !region.is_empty())
    }

    async fn log_in(&self, request: LoginRequest) -> Result<Arc<dyn Cloud>, Failure> {
        let LoginRequest { observer, user_agent } = request;
        let settings = ClientSettings { observer, ..self.client_settings() };
        let login = AuthOptions { user_agent, ..self.login.clone() };
        let connected = connect_through(&login, settings, |transport, _| transport).await;
        Ok(Arc::new(self.cloud(connected.map_err(|error| explained(&error))?)))
    }
}

/// Keystone answers every wrong login in the same way.
const WRONG_LOGIN: &str =
    "Check user, password, project and domains, or the application credential, in [Global] of cloud.conf";

/// Keystone uses the same status for an unknown path and an unknown application credential.
const WRONG_PATH: &str =
    "Check auth-url, which usually ends with /v3, and the application credential, in [Global] of cloud.conf";

/// Converts a login error. All that wait for one login share it, so its causes are written out here.
fn explained(error: &AuthError) -> Failure {
    let chain = chain(error);
    match error {
        AuthError::Refused { status, .. } if status.as_u16() == 404 => {
            Failure::new(FailureClass::Auth, format!("{}. {WRONG_PATH}", chain.trim_end_matches('.')))
        }
        _ if error.kind() == ErrorKind::Unauthorized => {
            Failure::new(FailureClass::Auth, format!("{}. {WRONG_LOGIN}", chain.trim_end_matches('.')))
        }
        _ => Failure::new(FailureClass::Unavailable, format!("OpenStack cannot be used yet: {chain}")),
    }
}

/// One project of an OpenStack.
#[derive(Clone, Debug)]
pub struct OpenStackCloud {
    openstack: OpenStack,
    provider: OpenStackProvider,
}

impl OpenStackCloud {
    /// Creates the cloud of a login. `regional_provider_ids`: provider ids of new nodes contain the region.
    pub fn new(
        openstack: OpenStack,
        config: Arc<Config>,
        login: AuthOptions,
        regional_provider_ids: bool,
    ) -> Self {
        Self { openstack, provider: OpenStackProvider { config, login, regional_provider_ids } }
    }
}

impl Cloud for OpenStackCloud {
    fn lacks(&self, part: Part) -> Option<String> {
        let missing = needs(part).iter().filter(|service| !self.openstack.has(**service));
        let types: Vec<&str> = missing.map(|service| service.catalog_type()).collect();
        let interface = self.provider.login.interface;
        let text = || format!("the catalog has no {interface} endpoint of type {}", types.join(" and "));
        (!types.is_empty()).then(text)
    }

    fn problem(&self) -> Option<String> {
        let since = self.openstack.log_in_refused_since()?;
        Some(format!(
            "Keystone has refused the login since {since:.0}: correct the credentials in cloud.conf, which is read again at each attempt"
        ))
    }

    fn missing_parts(&self) -> Vec<String> {
        let lacking = self.openstack.client.lacking().into_iter();
        lacking.map(|lacking| lacking.part.feature().name.to_owned()).collect()
    }

    fn remedy(&self) -> String {
        let known = || match self.openstack.regions.as_slice() {
            [] => "no region".to_owned(),
            regions => regions.join(", "),
        };
        let region = self.provider.login.region.as_ref();
        let region =
            region.map(|region| format!("The region is {region:?}; the catalog lists {}. ", known()));
        region.unwrap_or_default()
            + "Correct region or os-endpoint-type in [Global] of cloud.conf; if the cloud does not have the service, disable the \
               controller with --controllers=*,-NAME, or set enabled=false in [LoadBalancer]"
    }

    fn drift_check_interval(&self) -> Option<Duration> {
        self.provider.drift_check_interval()
    }

    fn load_balancers(&self, cluster: ClusterIdentity, gate: Gate, wake: Arc<dyn Wake>) -> LoadBalancing {
        let config = &self.provider.config;
        let section = &config.load_balancer;
        let openstack = self.openstack.behind(&gate);
        let (load_balancers, poller) =
            OpenStackLoadBalancers::new(openstack, Arc::clone(config), cluster, wake);
        LoadBalancing {
            load_balancers: Arc::new(load_balancers),
            background: Box::pin(poller.run(CancellationToken::new())),
            node_selector_annotation: Some(annotations::NODE_SELECTOR.key.to_owned()),
            node_selector: section.node_selector.clone(),
        }
    }

    fn instances(&self) -> Option<Arc<dyn Instances>> {
        let OpenStackProvider { config, regional_provider_ids, .. } = &self.provider;
        let instances = OpenStackInstances::new(&self.openstack, Arc::clone(config), *regional_provider_ids)?;
        Some(Arc::new(instances))
    }

    fn routes(&self, gate: Gate) -> Arc<dyn Routes> {
        Arc::new(OpenStackRoutes::new(&self.openstack.behind(&gate), &self.provider.config))
    }
}

/// Returns the services without which a controller cannot work at all.
fn needs(part: Part) -> &'static [Service] {
    match part {
        Part::LoadBalancers => &[Service::LoadBalancer],
        Part::Routes => &[Service::Network],
        Part::Instances => &[Service::Compute, Service::Network],
    }
}

//! OpenStack as the binary sees it.
//!
//! | module | does |
//! | --- | --- |
//! | `log_in` | logs in, and explains why it does not work |
//! | this one | what controllers work on, and what a catalog lacks |
//! | `provider` | the configuration, and what comes after it |

mod log_in;
mod provider;

use std::sync::Arc;

use openstack_ccm_core::cloud::{Cloud, ClusterIdentity, LoadBalancing, Part};
use openstack_ccm_core::instance::Instances;
use openstack_ccm_core::provider::Wake;
use openstack_ccm_core::route::Routes;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::identity::{AuthOptions, InterfaceType};
use openstack_ccm_openstack_api::transport::Service;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::instances::OpenStackInstances;
use crate::load_balancer::{OpenStackLoadBalancers, annotations};
use crate::routes::OpenStackRoutes;

pub use provider::{ENTRY, OpenStackProvider};

/// One project of an OpenStack.
#[derive(Clone, Debug)]
pub struct OpenStackCloud {
    openstack: OpenStack,
    config: Arc<Config>,
    interface: InterfaceType,
    region: Option<String>,
    regional_provider_ids: bool,
}

impl OpenStackCloud {
    /// The cloud that `login` led to. `regional_provider_ids` says whether provider ids of new nodes name the region.
    pub fn new(
        openstack: OpenStack,
        config: Arc<Config>,
        login: &AuthOptions,
        regional_provider_ids: bool,
    ) -> Self {
        let (interface, region) = (login.interface, login.region.clone());
        Self { openstack, config, interface, region, regional_provider_ids }
    }
}

impl Cloud for OpenStackCloud {
    fn lacks(&self, part: Part) -> Option<String> {
        let missing = needs(part).iter().filter(|service| !self.openstack.has(**service));
        let types: Vec<&str> = missing.map(|service| service.catalog_type()).collect();
        let text =
            || format!("the catalog has no {} endpoint of type {}", self.interface, types.join(" and "));
        (!types.is_empty()).then(text)
    }

    fn remedy(&self) -> String {
        let known = || match self.openstack.regions.as_slice() {
            [] => "no region".to_owned(),
            regions => regions.join(", "),
        };
        let region = self.region.as_ref();
        let region =
            region.map(|region| format!("The region is {region:?}, and the catalog knows {}. ", known()));
        region.unwrap_or_default()
            + "Correct region or os-endpoint-type in [Global] of cloud.conf; where the cloud really lacks the service, leave the \
               controller out with --controllers=*,-NAME, or set enabled=false in [LoadBalancer]"
    }

    fn load_balancers(&self, cluster: ClusterIdentity, wake: Arc<dyn Wake>) -> LoadBalancing {
        let section = &self.config.load_balancer;
        let (load_balancers, poller) =
            OpenStackLoadBalancers::new(self.openstack.clone(), Arc::clone(&self.config), cluster, wake);
        LoadBalancing {
            load_balancers: Arc::new(load_balancers),
            background: Box::pin(poller.run(CancellationToken::new())),
            node_selector_annotation: Some(annotations::NODE_SELECTOR.key.to_owned()),
            node_selector: section.node_selector.clone(),
            drift_check_interval: Some(section.drift_check_interval).filter(|interval| !interval.is_zero()),
        }
    }

    fn instances(&self) -> Option<Arc<dyn Instances>> {
        let config = Arc::clone(&self.config);
        let instances = OpenStackInstances::new(&self.openstack, config, self.regional_provider_ids)?;
        Some(Arc::new(instances))
    }

    fn routes(&self) -> Arc<dyn Routes> {
        Arc::new(OpenStackRoutes::new(&self.openstack, &self.config))
    }
}

/// Services without which a controller can do nothing at all.
fn needs(part: Part) -> &'static [Service] {
    match part {
        Part::LoadBalancers => &[Service::LoadBalancer],
        Part::Routes => &[Service::Network],
        Part::Instances => &[Service::Compute, Service::Network],
    }
}

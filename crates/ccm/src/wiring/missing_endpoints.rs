//! Controllers that were asked for and cannot start, because the cloud lacks what they need.

use std::fmt;

use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::identity::AuthOptions;
use openstack_ccm_openstack_api::transport::Service;

use super::ProgramOptions;
use crate::args::controllers::ControllerName;

/// The endpoints that controllers need and the catalog does not have. A program without them would look healthy and do
/// nothing, so it neither becomes ready nor asks for the lease.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct MissingEndpoints {
    controllers: Vec<(ControllerName, Vec<Service>)>,
    interface: &'static str,
    region: Option<String>,
    regions: Vec<String>,
}

impl MissingEndpoints {
    /// Checks that the catalog has what the controllers need.
    ///
    /// # Errors
    /// All that is missing, at once.
    pub(crate) fn check(
        options: &ProgramOptions,
        openstack: &OpenStack,
        login: &AuthOptions,
    ) -> Result<(), Self> {
        let missing = |controller: ControllerName| -> Vec<Service> {
            needs(controller).iter().copied().filter(|service| !openstack.has(*service)).collect()
        };
        let controllers: Vec<_> = ControllerName::ALL
            .into_iter()
            .filter(|controller| options.runs(*controller))
            .map(|controller| (controller, missing(controller)))
            .filter(|(_, missing)| !missing.is_empty())
            .collect();
        if controllers.is_empty() {
            return Ok(());
        }
        let (interface, region) = (login.interface.as_str(), login.region.clone());
        Err(Self { controllers, interface, region, regions: openstack.regions.clone() })
    }
}

/// Services without which a controller can do nothing at all.
fn needs(controller: ControllerName) -> &'static [Service] {
    match controller {
        ControllerName::ServiceLb => &[Service::LoadBalancer],
        ControllerName::NodeRoute => &[Service::Network],
        ControllerName::CloudNode | ControllerName::CloudNodeLifecycle => {
            &[Service::Compute, Service::Network]
        }
    }
}

impl fmt::Display for MissingEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (controller, missing)) in self.controllers.iter().enumerate() {
            let types: Vec<&str> = missing.iter().map(|service| service.catalog_type()).collect();
            let separator = if index == 0 { "" } else { "; " };
            write!(
                f,
                "{separator}{} cannot start: the catalog has no {} endpoint of type {}",
                controller.canonical(),
                self.interface,
                types.join(" and ")
            )?;
        }
        if let Some(region) = &self.region {
            write!(f, ". The region is {region:?}, and the catalog knows {}", listed(&self.regions))?;
        }
        f.write_str(
            ". Correct region or os-endpoint-type in [Global] of cloud.conf; where the cloud really lacks the service, leave the \
             controller out with --controllers=*,-NAME, or set enabled=false in [LoadBalancer]",
        )
    }
}

fn listed(regions: &[String]) -> String {
    if regions.is_empty() { "no region".to_owned() } else { regions.join(", ") }
}

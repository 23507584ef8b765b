//! Requested controllers that cannot start, because the cloud lacks what they need.

use openstack_ccm_core::cloud::{Cloud, Part};

use crate::args::controllers::ControllerName;

/// What the cloud lacks for controllers. The program would look healthy and do nothing, so it neither becomes
/// ready nor asks for the Lease.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}. {remedy}", listed(controllers))]
pub struct MissingParts {
    controllers: Vec<(ControllerName, String)>,
    remedy: String,
}

impl MissingParts {
    /// Checks that the cloud has what the controllers need.
    ///
    /// # Errors
    /// Everything that is missing, in one error.
    pub fn check(cloud: &dyn Cloud, runs: impl Fn(ControllerName) -> bool) -> Result<(), Self> {
        let controllers: Vec<_> = ControllerName::ALL
            .into_iter()
            .filter(|controller| runs(*controller))
            .filter_map(|controller| Some((controller, cloud.lacks(part_of(controller))?)))
            .collect();
        if controllers.is_empty() { Ok(()) } else { Err(Self { controllers, remedy: cloud.remedy() }) }
    }
}

/// The part of the cloud that a controller works on.
pub fn part_of(controller: ControllerName) -> Part {
    match controller {
        ControllerName::ServiceLb => Part::LoadBalancers,
        ControllerName::NodeRoute => Part::Routes,
        ControllerName::CloudNode | ControllerName::CloudNodeLifecycle => Part::Instances,
    }
}

/// `service-lb-controller cannot start: …; node-route-controller cannot start: …`
fn listed(controllers: &[(ControllerName, String)]) -> String {
    let one = |(controller, lack): &(ControllerName, String)| {
        format!("{} cannot start: {lack}", controller.canonical())
    };
    controllers.iter().map(one).collect::<Vec<_>>().join("; ")
}

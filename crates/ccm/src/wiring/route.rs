//! The route controller over the routes of the cloud.

use openstack_ccm_controllers::route::{RouteController, RouteControllerOptions};
use openstack_ccm_core::cloud::{Part, Provider};
use openstack_ccm_core::route::range::ClusterRanges;

use super::Controller;
use super::context::ControllerContext;
use crate::args::controllers::{ControllerName, ControllerSelection};
use crate::args::{ClusterCidrError, RouteArgs};

/// Settings of the controller; absent when it does not run, for a reason that is logged.
///
/// # Errors
/// It should run and does not know the cluster's ranges.
pub(crate) fn options(
    arguments: &RouteArgs,
    selection: &ControllerSelection,
    provider: &dyn Provider,
) -> Result<Option<RouteControllerOptions>, ClusterCidrError> {
    if !selection.runs(ControllerName::NodeRoute) || !arguments.configure_cloud_routes {
        tracing::info!("the route controller is switched off");
        return Ok(None);
    }
    if let Some(setting) = provider.left_out(Part::Routes) {
        tracing::info!("the route controller does not run: {setting}");
        return Ok(None);
    }
    let ranges = ClusterRanges::new(arguments.cluster_cidrs()?);
    Ok(Some(RouteControllerOptions {
        period: arguments.route_reconciliation_period,
        ..RouteControllerOptions::new(ranges)
    }))
}

/// Puts the controller together.
pub(crate) fn build(
    context: &mut ControllerContext<'_>,
    options: &RouteControllerOptions,
) -> RouteController {
    let (client, options) = (context.clients.of(ControllerName::NodeRoute), options.clone());
    RouteController::new(client, context.cloud.routes(), options, context.nodes, context.registry)
}

/// The controller at work.
pub(crate) fn at_work(controller: RouteController) -> Controller {
    Controller {
        name: "node-route-controller",
        listed: Box::pin(controller.listed()),
        work: Box::new(|stop| Box::pin(controller.run(stop))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use openstack_ccm_openstack_api::identity::{AuthOptions, Credentials, Scope};
    use openstack_ccm_provider_openstack::cloud::OpenStackProvider;
    use openstack_ccm_provider_openstack::config::{Config, Loaded};
    use rstest::rstest;

    use super::*;

    /// The route controller runs where it is asked for and the cloud is configured for it; a missing or wrong
    /// `--cluster-cidr` is an error only then.
    ///
    /// Contract: T9, same.
    #[rstest]
    #[case::all("*", true, Some("r1"), "10.244.0.0/16", Ok(true))]
    #[case::by_alias("route", true, Some("r1"), "10.244.0.0/16,fd00::/48", Ok(true))]
    #[case::no_router("*", true, None, "", Ok(false))]
    #[case::not_chosen("service", true, Some("r1"), "", Ok(false))]
    #[case::switched_off("*", false, Some("r1"), "", Ok(false))]
    #[case::no_ranges("*", true, Some("r1"), "", Err(ClusterCidrError::Missing))]
    #[case::no_network("*", true, Some("r1"), "pods", Err(ClusterCidrError::NotARange("pods".to_owned())))]
    fn t9_the_route_controller_runs_only_where_there_is_a_router(
        #[case] controllers: &str,
        #[case] configure_cloud_routes: bool,
        #[case] router_id: Option<&str>,
        #[case] cluster_cidr: &str,
        #[case] expected: Result<bool, ClusterCidrError>,
    ) {
        let arguments = RouteArgs {
            configure_cloud_routes,
            cluster_cidr: cluster_cidr.to_owned(),
            route_reconciliation_period: Duration::from_secs(10),
        };
        let selection = ControllerSelection::parse(&[controllers.to_owned()]).unwrap();
        let mut config = Config::default();
        config.route.router_id = router_id.map(str::to_owned);
        let credentials = Credentials::Token { token: "t".into() };
        let auth_options = AuthOptions::new("http://keystone.example.org", credentials, Scope::Unscoped);
        let provider = OpenStackProvider::from(Loaded { config, auth_options, warnings: Vec::new() });
        assert_eq!(options(&arguments, &selection, &provider).map(|options| options.is_some()), expected);
    }
}

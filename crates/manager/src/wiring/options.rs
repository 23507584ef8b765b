//! Which controllers run, and with which settings: from the flags, the configuration and what the cloud has.

use std::time::Duration;

use openstack_ccm_canary::CLASS;
use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_controllers::route::RouteControllerOptions;
use openstack_ccm_controllers::service::ServiceControllerOptions;
use openstack_ccm_core::cloud::{Cloud, Part, Provider};
use openstack_ccm_core::route::range::ClusterRanges;

use super::missing_parts::MissingParts;
use crate::args::controllers::{ControllerName, ControllerSelection};
use crate::args::feature_gates::FeatureGates;
use crate::args::{ClusterCidrError, RouteArgs, RunArgs};

/// How long running reconciliations may take to end after a stop.
const RECONCILIATION_GRACE: Duration = Duration::from_secs(10);

/// Settings of the controllers from the command line. A controller without settings does not run.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    pub cluster_name: String,
    /// Settings of the service controller.
    pub service: Option<ServiceControllerOptions>,
    /// Settings of the route controller.
    pub route: Option<RouteControllerOptions>,
    /// Settings of the node controller.
    pub node: Option<NodeControllerOptions>,
    /// Settings of the node lifecycle controller.
    pub node_lifecycle: Option<NodeLifecycleOptions>,
}

impl ProgramOptions {
    pub fn runs(&self, controller: ControllerName) -> bool {
        match controller {
            ControllerName::ServiceLb => self.service.is_some(),
            ControllerName::NodeRoute => self.route.is_some(),
            ControllerName::CloudNode => self.node.is_some(),
            ControllerName::CloudNodeLifecycle => self.node_lifecycle.is_some(),
        }
    }

    /// Returns the canonical names of the controllers that are to run.
    pub fn names(&self) -> Vec<String> {
        let run = ControllerName::ALL.into_iter().filter(|controller| self.runs(*controller));
        run.map(|controller| controller.canonical().to_owned()).collect()
    }
}

/// Chooses the controllers to run, and their settings.
///
/// # Errors
/// The cloud lacks something that a requested controller needs.
pub fn choose(
    arguments: &RunArgs,
    selection: &ControllerSelection,
    provider: &dyn Provider,
    cloud: &dyn Cloud,
    route: Option<RouteControllerOptions>,
) -> Result<ProgramOptions, MissingParts> {
    let asked_for = |controller| selection.runs(controller);
    let options = ProgramOptions {
        cluster_name: arguments.controller.cluster_name.clone(),
        service: serves_load_balancers(selection, provider).then(|| service(arguments)),
        route,
        node: asked_for(ControllerName::CloudNode).then(|| node(arguments)),
        node_lifecycle: asked_for(ControllerName::CloudNodeLifecycle).then(|| node_lifecycle(arguments)),
    };
    MissingParts::check(cloud, |controller| options.runs(controller))?;
    Ok(options)
}

/// Whether Services of type LoadBalancer are served at all.
pub(crate) fn serves_load_balancers(selection: &ControllerSelection, provider: &dyn Provider) -> bool {
    selection.runs(ControllerName::ServiceLb) && provider.left_out(Part::LoadBalancers).is_none()
}

/// Returns the settings of the route controller; `None` if it does not run, for a reason that is logged.
///
/// # Errors
/// The controller should run, but the cluster's ranges are unknown.
pub fn route(
    arguments: &RouteArgs,
    selection: &ControllerSelection,
    provider: &dyn Provider,
) -> Result<Option<RouteControllerOptions>, ClusterCidrError> {
    if !selection.runs(ControllerName::NodeRoute) || !arguments.configure_cloud_routes {
        tracing::info!("the route controller is disabled");
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

fn service(arguments: &RunArgs) -> ServiceControllerOptions {
    ServiceControllerOptions {
        concurrency: arguments.concurrent_service_syncs.into(),
        load_balancer_class: arguments.controller.load_balancer_class.clone(),
        ip_mode_gate: FeatureGates::merged(&arguments.controller.feature_gates).load_balancer_ip_mode,
        canary: arguments.controller.service_proxies.canary.options(CLASS),
        kube_proxy_metrics_port: Some(arguments.controller.service_proxies.kube_proxy_metrics_port)
            .filter(|port| *port != 0),
        shutdown_grace: RECONCILIATION_GRACE,
        ..ServiceControllerOptions::default()
    }
}

fn node(arguments: &RunArgs) -> NodeControllerOptions {
    NodeControllerOptions {
        concurrency: arguments.node.concurrent_node_syncs.into(),
        status_concurrency: arguments.node.status_updates().into(),
        status_update_frequency: arguments.node.node_status_update_frequency,
        ..NodeControllerOptions::default()
    }
}

fn node_lifecycle(arguments: &RunArgs) -> NodeLifecycleOptions {
    NodeLifecycleOptions {
        monitor_period: arguments.node.node_monitor_period,
        concurrency: arguments.node.concurrent_node_lifecycle_syncs.into(),
        deletion_delay: arguments.node.node_deletion_delay,
        ..NodeLifecycleOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use openstack_ccm_openstack_api::OpenStack;
    use openstack_ccm_openstack_api::client::Client;
    use openstack_ccm_openstack_api::identity::{AuthOptions, Credentials, Scope};
    use openstack_ccm_openstack_api::transport::{FnTransport, Service, TransportError};
    use openstack_ccm_provider_openstack::cloud::{ENTRY, OpenStackProvider};
    use openstack_ccm_provider_openstack::config::{Config, Loaded};
    use rstest::rstest;

    use super::*;

    /// A cloud whose catalog lacks a service.
    fn cloud_without(missing: &[Service]) -> OpenStack {
        let transport = FnTransport::new(|request| async move {
            Err(TransportError::Request { service: request.service, source: "nothing is asked here".into() })
        });
        let mut cloud = OpenStack::new(Client::over(transport));
        cloud.services.retain(|service| !missing.contains(service));
        cloud
    }

    fn provider(config: Config) -> OpenStackProvider {
        let credentials = Credentials::Token { token: "t".into() };
        let login = AuthOptions::new("http://keystone.example.org", credentials, Scope::Unscoped);
        let auth_options = AuthOptions { region: Some("RegionX".to_owned()), ..login };
        Loaded { config, auth_options, warnings: Vec::new() }.into()
    }

    fn chosen(flags: &[&str], openstack: OpenStack) -> Result<ProgramOptions, MissingParts> {
        let flags = ["openstack-ccm", "--cloud-config=x"].into_iter().chain(flags.iter().copied());
        let arguments = RunArgs::try_parse(flags).unwrap();
        let (_, selection) = arguments.validate(&[ENTRY]).unwrap();
        let provider = provider(Config::default());
        choose(&arguments, &selection, &provider, &provider.cloud(openstack), None)
    }

    /// A program that lacks what one of its controllers needs does not become ready; without such controllers
    /// it does the remaining work.
    ///
    /// Defect: 69, better: it says what the catalog lacks, stays unready and off the lease, and tries again.
    #[rstest]
    #[case::all("*", &[], Ok([true, true, true]))]
    #[case::no_octavia("*", &[Service::LoadBalancer], Err("service-lb-controller"))]
    #[case::no_nova("*", &[Service::Compute], Err("cloud-node-controller"))]
    #[case::no_neutron("*", &[Service::Network], Err("cloud-node-lifecycle-controller"))]
    #[case::chosen("cloud-node", &[], Ok([false, true, false]))]
    #[case::left_out("*,-cloud-node-lifecycle", &[], Ok([true, true, false]))]
    #[case::nodes_without_octavia("*,-service", &[Service::LoadBalancer], Ok([false, true, true]))]
    fn controllers_run_where_they_are_chosen_and_the_cloud_has_what_they_need(
        #[case] controllers: &str,
        #[case] missing: &[Service],
        #[case] expected: Result<[bool; 3], &str>,
    ) {
        let controllers = format!("--controllers={controllers}");
        match (chosen(&[&controllers], cloud_without(missing)), expected) {
            (Ok(options), Ok(expected)) => {
                let runs =
                    [options.service.is_some(), options.node.is_some(), options.node_lifecycle.is_some()];
                assert_eq!(runs, expected);
            }
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (result, expected) => panic!("{result:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn the_refusal_names_all_that_is_missing_the_regions_and_the_ways_out() {
        let mut cloud = cloud_without(&[Service::LoadBalancer, Service::Compute]);
        cloud.regions = vec!["RegionOne".to_owned(), "RegionTwo".to_owned()];
        assert_eq!(
            chosen(&["--controllers=service,cloud-node"], cloud).unwrap_err().to_string(),
            "cloud-node-controller cannot start: the catalog has no public endpoint of type compute; service-lb-controller cannot start: \
             the catalog has no public endpoint of type load-balancer. The region is \"RegionX\"; the catalog lists RegionOne, RegionTwo. \
             Correct region or os-endpoint-type in [Global] of cloud.conf; if the cloud does not have the service, disable the controller \
             with --controllers=*,-NAME, or set enabled=false in [LoadBalancer]"
        );
    }

    #[test]
    fn flags_of_nodes_reach_their_controllers() {
        let flags =
            ["--concurrent-node-syncs=7", "--node-status-update-frequency=1m", "--node-monitor-period=9s"];
        let options = chosen(&flags, cloud_without(&[])).unwrap();
        let (node, lifecycle) = (options.node.unwrap(), options.node_lifecycle.unwrap());
        assert_eq!((node.concurrency, node.status_concurrency), (7, 7));
        assert_eq!(node.status_update_frequency, Duration::from_secs(60));
        assert_eq!(lifecycle.monitor_period, Duration::from_secs(9));
    }

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
        let options = route(&arguments, &selection, &provider(config));
        assert_eq!(options.map(|options| options.is_some()), expected);
    }
}

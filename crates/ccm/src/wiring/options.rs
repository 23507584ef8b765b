//! Which controllers run, and with which settings: from the flags, the configuration and what the cloud has.

use std::time::Duration;

use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_controllers::route::RouteControllerOptions;
use openstack_ccm_controllers::service::ServiceControllerOptions;
use openstack_ccm_core::cloud::{Cloud, Part, Provider};

use super::ProgramOptions;
use crate::args::RunArgs;
use crate::args::controllers::{ControllerName, ControllerSelection};
use crate::args::feature_gates::FeatureGates;
use crate::wiring::lacks::Lacks;

/// How long running reconciliations may take to end after a stop.
const PASS_GRACE: Duration = Duration::from_secs(10);

/// What the program is to run.
///
/// # Errors
/// The cloud lacks what a controller needs that was asked for.
pub(crate) fn choose(
    arguments: &RunArgs,
    selection: &ControllerSelection,
    provider: &dyn Provider,
    cloud: &dyn Cloud,
    route: Option<RouteControllerOptions>,
) -> Result<ProgramOptions, Lacks> {
    let asked_for = |controller| selection.runs(controller);
    let options = ProgramOptions {
        cluster_name: arguments.controller.cluster_name.clone(),
        service: serves_load_balancers(selection, provider).then(|| service(arguments)),
        route,
        node: asked_for(ControllerName::CloudNode).then(|| node(arguments)),
        node_lifecycle: asked_for(ControllerName::CloudNodeLifecycle).then(|| node_lifecycle(arguments)),
    };
    Lacks::check(cloud, |controller| options.runs(controller))?;
    Ok(options)
}

/// Whether Services of type LoadBalancer are served at all.
pub(crate) fn serves_load_balancers(selection: &ControllerSelection, provider: &dyn Provider) -> bool {
    selection.runs(ControllerName::ServiceLb) && provider.left_out(Part::LoadBalancers).is_none()
}

fn service(arguments: &RunArgs) -> ServiceControllerOptions {
    ServiceControllerOptions {
        concurrency: arguments.concurrent_service_syncs.into(),
        load_balancer_class: arguments.controller.load_balancer_class.clone(),
        ip_mode_gate: FeatureGates::merged(&arguments.controller.feature_gates).load_balancer_ip_mode,
        canary: arguments.controller.service_proxies.canary(),
        kube_proxy_metrics_port: Some(arguments.controller.service_proxies.kube_proxy_metrics_port)
            .filter(|port| *port != 0),
        shutdown_grace: PASS_GRACE,
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
    use crate::args::RunArgs;

    /// A cloud whose catalog lacks a service.
    fn cloud_without(missing: &[Service]) -> OpenStack {
        let transport = FnTransport::new(|request| async move {
            Err(TransportError::Request { service: request.service, source: "nothing is asked here".into() })
        });
        let mut cloud = OpenStack::new(Client::over(transport));
        cloud.services.retain(|service| !missing.contains(service));
        cloud
    }

    fn provider() -> OpenStackProvider {
        let credentials = Credentials::Token { token: "t".into() };
        let login = AuthOptions::new("http://keystone.example.org", credentials, Scope::Unscoped);
        let auth_options = AuthOptions { region: Some("RegionX".to_owned()), ..login };
        Loaded { config: Config::default(), auth_options, warnings: Vec::new() }.into()
    }

    fn chosen(flags: &[&str], openstack: OpenStack) -> Result<ProgramOptions, Lacks> {
        let flags = ["openstack-ccm", "--cloud-config=x"].into_iter().chain(flags.iter().copied());
        let arguments = RunArgs::try_parse(flags).unwrap();
        let (_, selection) = arguments.validate(&[ENTRY]).unwrap();
        let provider = provider();
        choose(&arguments, &selection, &provider, &provider.cloud(openstack), None)
    }

    /// A program that lacks what one of its controllers needs does not become ready; one that was told which controllers
    /// to leave out does all that is left.
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
            "cloud-node-controller cannot start: the catalog has no public endpoint of type compute; \
             service-lb-controller cannot start: the catalog has no public endpoint of type load-balancer. The region is \
             \"RegionX\", and the catalog knows RegionOne, RegionTwo. Correct region or os-endpoint-type in [Global] of \
             cloud.conf; where the cloud really lacks the service, leave the controller out with --controllers=*,-NAME, or \
             set enabled=false in [LoadBalancer]"
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
}

//! Which controllers run, and with which settings: from the flags, the configuration and what the cloud has.

use std::time::Duration;

use openstack_ccm_controllers::node::NodeControllerOptions;
use openstack_ccm_controllers::node_lifecycle::NodeLifecycleOptions;
use openstack_ccm_controllers::service::ServiceControllerOptions;
use openstack_ccm_openstack_api::OpenStack;
use openstack_ccm_openstack_api::transport::Service;
use openstack_ccm_provider_openstack::config::{Config, ProcessEnvironment};
use openstack_ccm_provider_openstack::instances::is_regional;

use crate::args::RunArgs;
use crate::args::controllers::{ControllerName, ControllerSelection};
use crate::args::feature_gates::FeatureGates;
use crate::program::ProgramOptions;

/// How long running passes may take to end after a stop.
const PASS_GRACE: Duration = Duration::from_secs(10);

/// What the program is to run, without routes: those are checked before the cloud is known. Why a controller that was
/// asked for does not run is logged.
pub(crate) fn choose(
    arguments: &RunArgs,
    selection: &ControllerSelection,
    config: &Config,
    openstack: &OpenStack,
) -> ProgramOptions {
    ProgramOptions {
        cluster_name: arguments.cluster_name.clone(),
        service: service(arguments, selection, config, openstack),
        node: node(arguments, selection, config, openstack),
        node_lifecycle: node_lifecycle(arguments, selection, config, openstack),
        regional_provider_ids: is_regional(&ProcessEnvironment),
        ..ProgramOptions::default()
    }
}

fn service(
    arguments: &RunArgs,
    selection: &ControllerSelection,
    config: &Config,
    openstack: &OpenStack,
) -> Option<ServiceControllerOptions> {
    if !selection.runs(ControllerName::ServiceLb) || !config.load_balancer.enabled {
        tracing::warn!("the service controller is switched off");
        return None;
    }
    if !openstack.has(Service::LoadBalancer) {
        tracing::error!(
            region = config.global.region,
            "the service controller does not run: the catalog of the cloud has no endpoint of type load-balancer in \
             the region; Services of type LoadBalancer get no load balancer"
        );
        return None;
    }
    Some(ServiceControllerOptions {
        concurrency: arguments.concurrent_service_syncs.into(),
        load_balancer_class: arguments.load_balancer_class.clone(),
        ip_mode_gate: FeatureGates::merged(&arguments.feature_gates).load_balancer_ip_mode,
        shutdown_grace: PASS_GRACE,
        ..ServiceControllerOptions::default()
    })
}

fn node(
    arguments: &RunArgs,
    selection: &ControllerSelection,
    config: &Config,
    openstack: &OpenStack,
) -> Option<NodeControllerOptions> {
    node_controller_runs(ControllerName::CloudNode, selection, config, openstack).then(|| {
        NodeControllerOptions {
            concurrency: arguments.node.concurrent_node_syncs.into(),
            status_concurrency: arguments.node.status_updates().into(),
            status_update_frequency: arguments.node.node_status_update_frequency,
            ..NodeControllerOptions::default()
        }
    })
}

fn node_lifecycle(
    arguments: &RunArgs,
    selection: &ControllerSelection,
    config: &Config,
    openstack: &OpenStack,
) -> Option<NodeLifecycleOptions> {
    node_controller_runs(ControllerName::CloudNodeLifecycle, selection, config, openstack).then(|| {
        NodeLifecycleOptions {
            monitor_period: arguments.node.node_monitor_period,
            ..NodeLifecycleOptions::default()
        }
    })
}

fn node_controller_runs(
    controller: ControllerName,
    selection: &ControllerSelection,
    config: &Config,
    openstack: &OpenStack,
) -> bool {
    if !selection.runs(controller) {
        return false;
    }
    let missing = [Service::Compute, Service::Network].into_iter().find(|service| !openstack.has(*service));
    if let Some(missing) = missing {
        tracing::error!(
            region = config.global.region,
            "the controller {} does not run: the catalog of the cloud has no endpoint of type {missing} in the region",
            controller.canonical()
        );
    }
    missing.is_none()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use openstack_ccm_openstack_api::client::Client;
    use openstack_ccm_openstack_api::transport::{FnTransport, TransportError};
    use rstest::rstest;

    use super::*;
    use crate::args::CommandLine;

    /// A cloud whose catalog lacks a service.
    fn cloud_without(missing: &[Service]) -> OpenStack {
        let transport = FnTransport::new(|request| async move {
            Err(TransportError::Request { service: request.service, source: "nothing is asked here".into() })
        });
        let mut cloud = OpenStack::new(Client::over(transport));
        cloud.services.retain(|service| !missing.contains(service));
        cloud
    }

    /// A cloud that lacks one service still gets everything that works without it.
    ///
    /// Defect: 69, better: the program starts, says which controller does not run and why, and the others work.
    #[rstest]
    #[case::all("*", &[], [true, true, true])]
    #[case::no_octavia("*", &[Service::LoadBalancer], [false, true, true])]
    #[case::no_nova("*", &[Service::Compute], [true, false, false])]
    #[case::no_neutron("*", &[Service::Network], [true, false, false])]
    #[case::chosen("cloud-node", &[], [false, true, false])]
    #[case::left_out("*,-cloud-node-lifecycle", &[], [true, true, false])]
    fn controllers_run_where_they_are_chosen_and_the_cloud_has_what_they_need(
        #[case] controllers: &str,
        #[case] missing: &[Service],
        #[case] expected: [bool; 3],
    ) {
        let controllers = format!("--controllers={controllers}");
        let arguments = CommandLine::parse_from([
            "openstack-ccm",
            "--cloud-config=x",
            "--cloud-provider=openstack",
            &controllers,
        ])
        .run;
        let selection = arguments.validate().unwrap();
        let options = choose(&arguments, &selection, &Config::default(), &cloud_without(missing));
        let runs = [options.service.is_some(), options.node.is_some(), options.node_lifecycle.is_some()];
        assert_eq!(runs, expected);
    }

    #[test]
    fn flags_of_nodes_reach_their_controllers() {
        let flags = [
            "openstack-ccm",
            "--cloud-config=x",
            "--cloud-provider=openstack",
            "--concurrent-node-syncs=7",
            "--node-status-update-frequency=1m",
            "--node-monitor-period=9s",
        ];
        let arguments = CommandLine::parse_from(flags).run;
        let selection = arguments.validate().unwrap();
        let options = choose(&arguments, &selection, &Config::default(), &cloud_without(&[]));
        let (node, lifecycle) = (options.node.unwrap(), options.node_lifecycle.unwrap());
        assert_eq!((node.concurrency, node.status_concurrency), (7, 7));
        assert_eq!(node.status_update_frequency, Duration::from_secs(60));
        assert_eq!(lifecycle.monitor_period, Duration::from_secs(9));
    }
}

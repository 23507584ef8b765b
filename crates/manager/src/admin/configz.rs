//! `/configz`: the settings in effect, in upstream's form. No flag is a secret, so that nothing has to be left out.

use serde_json::{Value, json};

use crate::args::RunArgs;
use crate::args::controllers::ControllerSelection;
use crate::args::duration::format;

pub fn page(arguments: &RunArgs, selection: &ControllerSelection) -> Value {
    json!({"cloudcontrollermanager.config.k8s.io": {
        "kind": "CloudControllerManagerConfiguration",
        "apiVersion": "cloudcontrollermanager.config.k8s.io/v1alpha1",
        "Generic": generic(arguments, selection),
        "KubeCloudShared": shared(arguments),
        "NodeController": {
            "ConcurrentNodeSyncs": arguments.node.concurrent_node_syncs,
            "ConcurrentNodeStatusUpdates": arguments.node.status_updates(),
        },
        "NodeLifecycleController": {
            "NodeMonitorPeriod": format(arguments.node.node_monitor_period),
            "ConcurrentNodeLifecycleSyncs": arguments.node.concurrent_node_lifecycle_syncs,
        },
        "ServiceController": {"ConcurrentServiceSyncs": arguments.concurrent_service_syncs},
        "NodeStatusUpdateFrequency": format(arguments.node.node_status_update_frequency),
        "Webhook": {"Webhooks": []},
    }})
}

fn generic(arguments: &RunArgs, selection: &ControllerSelection) -> Value {
    let election = &arguments.leader_election;
    json!({
        "Port": arguments.serving.secure_port,
        "Address": arguments.serving.bind_address,
        "MinResyncPeriod": "0s",
        "ClientConnection": {
            "kubeconfig": arguments.kubernetes.kubeconfig.clone().unwrap_or_default(),
            "acceptContentTypes": "",
            "contentType": "application/json",
            "qps": arguments.kubernetes.kube_api_qps,
            "burst": arguments.kubernetes.kube_api_burst,
        },
        "ControllerStartInterval": "0s",
        "LeaderElection": {
            "leaderElect": election.leader_elect,
            "leaseDuration": format(election.leader_elect_lease_duration),
            "renewDeadline": format(election.leader_elect_renew_deadline),
            "retryPeriod": format(election.leader_elect_retry_period),
            "resourceLock": election.leader_elect_resource_lock,
            "resourceName": election.lease.leader_elect_resource_name,
            "resourceNamespace": election.lease.leader_elect_resource_namespace,
        },
        "Controllers": selection.entries(),
        "Debugging": {"enableProfiling": false, "enableContentionProfiling": false},
        "LeaderMigrationEnabled": election.enable_leader_migration,
    })
}

fn shared(arguments: &RunArgs) -> Value {
    let files: Vec<String> =
        arguments.controller.config.cloud_config.iter().map(|file| file.display().to_string()).collect();
    json!({
        "CloudProvider": {"Name": arguments.cloud_provider, "CloudConfigFile": files.join(",")},
        "ExternalCloudVolumePlugin": "",
        "UseServiceAccountCredentials": arguments.kubernetes.use_service_account_credentials,
        "AllowUntaggedCloud": false,
        "RouteReconciliationPeriod": format(arguments.controller.route.route_reconciliation_period),
        "NodeMonitorPeriod": format(arguments.node.node_monitor_period),
        "ClusterName": arguments.controller.cluster_name,
        "ClusterCIDR": arguments.controller.route.cluster_cidr,
        "AllocateNodeCIDRs": false,
        "CIDRAllocatorType": "",
        "ConfigureCloudRoutes": arguments.controller.route.configure_cloud_routes,
        "NodeSyncPeriod": "0s",
    })
}
